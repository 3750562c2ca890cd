"""One thread that computes with one model, for many clients at once, some texts of a request at a time."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from routepool.errors import InputError, NotFiniteError
from routepool.extras.serving.prometheus import Metrics
from routepool.extras.serving.refusals import RETRY, STOPPING, Refused
from routepool.scoring.predictor import Predictor

logger = logging.getLogger(__name__)

GATHER_SECONDS = 0.003  # a request waits this long for others to share its turn


class Question(NamedTuple):
    """What is asked of texts; requests with the same question share a turn."""

    kind: str
    method: str | None = None
    label: str | None = None
    rounds: bool = False


@dataclass(eq=False)
class Job:
    """The texts of one request."""

    question: Question
    texts: Sequence[str]  # at least one
    costs: Sequence[int]  # of each text, in whatever the lane counts
    answer: "asyncio.Future[list[str]]"  # also done when nobody waits any more
    model: Predictor | None = None  # computed the first texts, and so the rest: no answer mixes two
    results: list[str] = field(default_factory=list)  # of the texts computed so far
    failed: bool = False  # some texts could not be computed, so the rest need not be
    arrived: float = field(default_factory=time.monotonic)

    @property
    def is_wanted(self) -> bool:
        """Does anybody wait for it?"""
        return not self.answer.done()

    @property
    def is_done(self) -> bool:
        """Is there nothing left to compute?"""
        return self.failed or len(self.results) == len(self.texts)

    @property
    def cost_left(self) -> int:
        """Of the texts not yet computed."""
        return sum(self.costs[len(self.results) :])

    def next_slice(self, texts: int, cost: int) -> "Slice":
        """The next texts, at most so many and at most of that cost; one at least."""
        start = len(self.results)
        end, taken = start + 1, self.costs[start]
        while end < min(len(self.texts), start + texts) and taken + self.costs[end] <= cost:
            taken += self.costs[end]
            end += 1
        return Slice(self, self.texts[start:end], taken)


class Slice(NamedTuple):
    """Texts of one job that are computed in one turn."""

    job: Job
    texts: Sequence[str]
    cost: int


Wanted = Callable[[], bool]
# Texts -> the JSON of each text's result, or `Abandoned` as soon as nobody wants them.
Compute = Callable[[Predictor, Question, Sequence[str], Wanted], list[str]]
Outcome = list[str] | Refused


class Abandoned(BaseException):
    """Ends a computation that nobody waits for. It is no error, so nothing that handles errors may catch it."""


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """Give up what takes longer; a job awaited in here is then computed no further."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise Refused(504, f"not ready within {seconds:g} seconds; send fewer or shorter texts") from error


class Lane:
    """A bounded queue before a model, and the one thread that owns the model and works in turns.

    A turn takes some texts of the job whose turn it is, and whole jobs that ask the same while there is room. Jobs that
    nobody waits for are dropped between turns, and wherever the computation asks.

    Args:
        name: of its thread and in the metrics.
        compute: what the thread does in a turn.
        model: the first one; assign another to `model` for the jobs that are not yet begun.
        batch: most texts of a turn.
        turn: most cost of a turn, unless one text alone costs more.
        queue: texts that may wait.
        pace: about how many seconds a cost of 1 takes. A job gives way to those that come while it would be computed:
            a long one does not hold up short ones, and is not held up by them for ever. At 0 the first comes first.
        start: called by the thread before its first turn.
        metrics: count turns.
    """

    def __init__(
        self,
        name: str,
        compute: Compute,
        model: Predictor,
        *,
        batch: int,
        turn: int,
        queue: int,
        pace: float = 0.0,
        start: Callable[[], None],
        metrics: Metrics,
    ) -> None:
        self.name, self.compute, self.model = name, compute, model
        self.batch, self.turn, self.queue, self.pace = batch, turn, queue, pace
        self._start, self._metrics = start, metrics
        self._jobs: list[Job] = []
        self._texts = 0
        self._closed = False
        self._arrival = threading.Condition()
        metrics.waiting.labels(name).set_function(lambda: self._texts)
        self._thread = threading.Thread(target=self._work, name=f"routepool-{name}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Is there a thread that computes?"""
        return self._thread.is_alive()

    async def ask(self, question: Question, texts: Sequence[str], costs: Sequence[int] | None = None) -> list[str]:
        """The results of a request's texts; refused at once if too many are waiting.

        Args:
            question: what is asked.
            texts: at least one.
            costs: of each text; None for their characters.
        """
        job = Job(question, texts, costs or list(map(len, texts)), asyncio.get_running_loop().create_future())
        with self._arrival:
            if self._closed or not self.is_alive:
                raise Refused(503, STOPPING, RETRY)
            if self._texts and self._texts + len(texts) > self.queue:
                raise Refused(503, "too many texts are waiting; try again in a moment", RETRY)
            self._jobs.append(job)
            self._texts += len(texts)
            self._arrival.notify()
        try:
            return await job.answer
        except asyncio.CancelledError:  # given up: what waited makes room
            with self._arrival:
                self._count()
            raise

    def close(self) -> None:
        """Compute no further: the thread ends as soon as the computation asks whether it is wanted."""
        with self._arrival:
            self._closed = True
            self._arrival.notify()

    def join(self, seconds: float) -> bool:
        """Has the thread of a closed lane ended within this time?"""
        self._thread.join(seconds)
        return not self.is_alive

    def _count(self) -> None:
        """Drop what is done or given up, and count the texts of the jobs that are not begun."""
        self._jobs = [job for job in self._jobs if job.is_wanted and not job.is_done]
        self._texts = sum(len(job.texts) for job in self._jobs if job.model is None)

    def _work(self) -> None:
        self._start()
        while not self._closed:
            slices = self._next_turn()
            if slices:
                self._deliver(slices, self._computed(slices))

    def _next_turn(self) -> list[Slice]:
        with self._arrival:
            while not (self._jobs or self._closed):
                self._arrival.wait()
            left = self._jobs[0].arrived + GATHER_SECONDS - time.monotonic() if self._jobs else 0
        if left > 0:
            time.sleep(left)
        with self._arrival:
            self._count()
            slices = self._take()
            self._count()
        return slices

    def _take(self) -> list[Slice]:
        if not self._jobs:
            return []
        first = min(self._jobs, key=lambda job: job.arrived + self.pace * job.cost_left)
        first.model = first.model or self.model
        slices = [first.next_slice(self.batch, self.turn)]
        texts, cost = self.batch - len(slices[0].texts), self.turn - slices[0].cost
        for job in self._jobs:
            alike = (job.question, job.model or self.model) == (first.question, first.model)
            if job is first or not alike or len(job.texts) - len(job.results) > texts or job.cost_left > cost:
                continue
            job.model = first.model
            slices.append(job.next_slice(texts, cost))
            texts, cost = texts - len(slices[-1].texts), cost - slices[-1].cost
        return slices

    def _computed(self, slices: Sequence[Slice]) -> list[Outcome]:
        """The outcome of each slice; if a turn fails, each is tried alone, so that one cannot spoil the others."""
        texts = [text for some in slices for text in some.texts]
        first = slices[0].job
        assert first.model is not None

        def wanted() -> bool:
            return not self._closed and any(some.job.is_wanted for some in slices)

        try:
            self._metrics.batches.labels(self.name).observe(len(texts))
            results = iter(self.compute(first.model, first.question, texts, wanted))
            return [[next(results) for _ in some.texts] for some in slices]
        except Abandoned:
            return [Refused(503, STOPPING, RETRY) for _ in slices]
        except BaseException as error:  # a panic of compiled code is no Exception, and must not end the thread either
            if len(slices) > 1:
                return [outcome for some in slices for outcome in self._computed([some])]
            return [_failure(error, done=len(slices[0].job.results))]

    def _deliver(self, slices: Sequence[Slice], outcomes: Sequence[Outcome]) -> None:
        for some, outcome in zip(slices, outcomes, strict=True):
            if isinstance(outcome, Refused):
                some.job.failed = True
            else:
                some.job.results += outcome

        def hand_over() -> None:
            for some, outcome in zip(slices, outcomes, strict=True):
                if not some.job.is_wanted or not some.job.is_done:
                    continue
                if isinstance(outcome, Refused):
                    some.job.answer.set_exception(outcome)
                else:
                    some.job.answer.set_result(some.job.results)

        try:
            slices[0].job.answer.get_loop().call_soon_threadsafe(hand_over)
        except RuntimeError:  # the loop is closed: nobody waits any more
            logger.debug("an answer came after the server had stopped")


def _failure(error: BaseException, *, done: int) -> Refused:
    """The refusal for an error in texts of a request, of which so many were done before."""
    if isinstance(error, InputError):
        return Refused(422, str(error))
    if isinstance(error, NotFiniteError):
        return Refused(500, str(NotFiniteError(done + error.place)))
    # Without the message, which may quote a text.
    logger.error("the model failed with %s; --verbose shows more", type(error).__name__)
    logger.debug("the error in full", exc_info=error)
    return Refused(500, "the model failed on this request; the server's log has the kind of error")
