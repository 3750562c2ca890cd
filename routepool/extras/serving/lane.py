"""One thread that computes with one model, for many clients at once."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from routepool.errors import InputError, NotFiniteError
from routepool.extras.serving.metrics import Metrics
from routepool.extras.serving.refusals import RETRY, Refused
from routepool.predictor import Predictor

logger = logging.getLogger(__name__)

GATHER_SECONDS = 0.003  # a request waits this long for others to share its batch
BATCH_CHARACTERS = 200_000


class Question(NamedTuple):
    """What is asked of texts; requests with the same question share a batch."""

    kind: str
    method: str | None = None
    label: str | None = None
    rounds: bool = False


# Texts -> the JSON of each text's result.
Compute = Callable[[Predictor, Question, Sequence[str]], list[str]]
Outcome = list[str] | Exception


@dataclass(eq=False)
class Job:
    """The texts of one request."""

    question: Question
    texts: Sequence[str]
    answer: "asyncio.Future[list[str]]"
    arrived: float = field(default_factory=time.monotonic)

    @property
    def characters(self) -> int:
        """Of all its texts."""
        return sum(map(len, self.texts))


class Lane:
    """A queue before a model: bounded, in order, and emptied in batches by the one thread that owns the model.

    Args:
        name: of its thread and in the metrics.
        compute: what the thread does with a batch.
        model: the first one; assign `model` to change it between two batches.
        batch: texts computed together, unless one request alone has more.
        queue: texts that may wait.
        seconds: until a request is given up.
        start: called by the thread before its first batch.
        metrics: told of batches.
    """

    def __init__(
        self,
        name: str,
        compute: Compute,
        model: Predictor,
        *,
        batch: int,
        queue: int,
        seconds: float,
        start: Callable[[], None],
        metrics: Metrics,
    ) -> None:
        self.name, self.compute, self.model = name, compute, model
        self.batch, self.queue, self.seconds = batch, queue, seconds
        self._start, self._metrics = start, metrics
        self._jobs: deque[Job] = deque()
        self._texts = 0
        self._arrival = threading.Condition()
        metrics.waiting.labels(name).set_function(lambda: self._texts)
        threading.Thread(target=self._work, name=f"routepool-{name}", daemon=True).start()

    async def ask(self, question: Question, texts: Sequence[str]) -> list[str]:
        """The results of a request's texts; refused at once if too many are waiting, and late if it takes too long."""
        job = Job(question, texts, asyncio.get_running_loop().create_future())
        with self._arrival:
            if self._jobs and self._texts + len(texts) > self.queue:
                raise Refused(503, "too many texts are waiting; try again in a moment", RETRY)
            self._jobs.append(job)
            self._texts += len(texts)
            self._arrival.notify()
        try:
            async with asyncio.timeout(self.seconds):
                return await job.answer
        except TimeoutError as error:  # the future is cancelled: a job not yet begun is dropped
            raise Refused(504, f"not ready within {self.seconds:g} seconds; send fewer or shorter texts") from error

    def _work(self) -> None:
        self._start()
        while True:
            jobs = self._next_batch()
            if jobs:
                outcomes = self._computed(jobs)
                self._deliver(jobs, outcomes)

    def _next_batch(self) -> list[Job]:
        with self._arrival:
            while not self._jobs:
                self._arrival.wait()
            young = self._jobs[0].arrived + GATHER_SECONDS - time.monotonic()
        if young > 0:
            time.sleep(young)
        with self._arrival:
            taken = self._take()
            self._texts = sum(len(job.texts) for job in self._jobs)
        return taken

    def _take(self) -> list[Job]:
        """The first job and those after it that ask the same, up to a full batch; the others stay in their order."""
        taken: list[Job] = []
        left: deque[Job] = deque()
        texts = characters = 0
        for job in self._jobs:
            if job.answer.done():  # given up
                continue
            fits = texts + len(job.texts) <= self.batch and characters + job.characters <= BATCH_CHARACTERS
            if not taken or (fits and job.question == taken[0].question):
                taken.append(job)
                texts, characters = texts + len(job.texts), characters + job.characters
            else:
                left.append(job)
        self._jobs = left
        return taken

    def _computed(self, jobs: Sequence[Job]) -> list[Outcome]:
        """What becomes of each job; if a batch fails, each is tried alone, so that one cannot spoil the others."""
        texts = [text for job in jobs for text in job.texts]
        try:
            self._metrics.batches.labels(self.name).observe(len(texts))
            results = self.compute(self.model, jobs[0].question, texts)
        except Exception as error:
            if len(jobs) > 1:
                return [outcome for job in jobs for outcome in self._computed([job])]
            return [_failure(error)]
        outcomes: list[Outcome] = []
        start = 0
        for job in jobs:
            outcomes.append(results[start : start + len(job.texts)])
            start += len(job.texts)
        return outcomes

    def _deliver(self, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
        def hand_over() -> None:
            for job, outcome in zip(jobs, outcomes, strict=True):
                if job.answer.done():
                    continue
                if isinstance(outcome, Exception):
                    job.answer.set_exception(outcome)
                else:
                    job.answer.set_result(outcome)

        try:
            jobs[0].answer.get_loop().call_soon_threadsafe(hand_over)
        except RuntimeError:  # the loop is closed: nobody waits any more
            logger.debug("an answer came after the server had stopped")


def _failure(error: Exception) -> Refused:
    if isinstance(error, InputError):
        return Refused(422, str(error))
    if isinstance(error, NotFiniteError):
        return Refused(500, str(error))
    # Without the message, which may quote a text.
    logger.error("the model failed with %s; --verbose shows more", type(error).__name__)
    logger.debug("the error in full", exc_info=error)
    return Refused(500, "the model failed on this request; the server's log has the kind of error")
