"""The model that is served: loaded, tried, described, and changed for a new one without a pause."""

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from routepool.errors import InputError, NotFiniteError
from routepool.explaining import METHODS, Subject
from routepool.explaining.methods import usual_method
from routepool.extras.serving.computing import compute
from routepool.extras.serving.lane import Lane, Question, within
from routepool.extras.serving.prometheus import Metrics
from routepool.extras.serving.refusals import Refused
from routepool.scoring.predictor import Predictor, load, of_saved
from routepool.serving import Service

logger = logging.getLogger(__name__)

BATCH_TEXTS = 512  # sorted by length, these are cheaper to read than twice as many batches of half the size
TURN_CHARACTERS, TURN_WORDS = 200_000, 200_000  # of predictions and encodings; read for explanations: two seconds or so
SECONDS_A_CHARACTER, SECONDS_A_WORD = 3e-6, 15e-6  # on one core and with the usual sizes: who waits for whom, no more
_TRIAL = "A fine day."


@dataclass(frozen=True)
class Loaded:
    """A model that works.

    Args:
        predictor: for predictions and encodings.
        explainer: the same weights in a copy, so that an explanation holds up no prediction.
        long_explainer: another module on the weights of that copy, so that a long explanation holds up no short one.
        description: what `/labels` tells.
    """

    predictor: Predictor
    explainer: Predictor
    long_explainer: Predictor
    description: dict[str, Any]


def load_model(run: str) -> Loaded:
    """Read a model folder and try it: what can fail, fails here, before the old model is let go."""
    predictor = load(run)
    saved = predictor.saved
    if saved is None:
        raise InputError(f"{run}: an exported model cannot be served; give the folder it was exported from")
    explainer = of_saved(replace(saved, classifier=deepcopy(saved.classifier)))
    long_explainer = _sharing(explainer)
    try:
        predictor.predictions([_TRIAL])
    except NotFiniteError as error:
        raise InputError(f"{run}: {NotFiniteError(0, 'a text it was tried with')}") from error
    layer = Subject.of(saved).levels[-1].aggregator
    description = {
        "model": Path(run).resolve().name,
        "labels": list(predictor.labels),
        "multi_label": predictor.multi_label,
        "aggregator": saved.model_config.aggregator,
        "capsules": layer.parts.number,
        "part": layer.parts.name,
        "share_of": layer.parts.share_of,
        "iterations": layer.iterations,
        "depth": predictor.backend.depth,
        "methods": [name for name in METHODS.names() if _works(explainer, name)],
        "default_method": usual_method(Subject.of(saved)),
    }
    return Loaded(predictor, explainer, long_explainer, description)


def _sharing(model: Predictor) -> Predictor:
    """The same model to be used by another thread: what is watched and changed is its own, the weights are not."""
    assert model.saved is not None
    own = model.saved.classifier
    shared = {id(tensor): tensor for tensor in chain(own.parameters(), own.buffers())}
    return of_saved(replace(model.saved, classifier=deepcopy(own, shared)))


def _works(model: Predictor, method: str) -> bool:
    try:
        model.explain([_TRIAL], method=method)
    except (InputError, NotFiniteError):
        return False
    return True


class Models:
    """The lanes of the model in use.

    Args:
        service: the folder, and the limits of the lanes.
        loaded: the model to begin with.
        metrics: told of batches and reloads.
    """

    def __init__(self, service: Service, loaded: Loaded, metrics: Metrics) -> None:
        self._service, self._metrics, self._turn = service, metrics, asyncio.Lock()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="routepool-load")
        self._loading: Future[Loaded] | None = None
        self._reloads: set[asyncio.Task[dict[str, Any]]] = set()
        self.description = loaded.description
        limits = service.limits
        asked: dict[str, Any] = {"compute": compute, "start": self._set_threads, "metrics": metrics}
        self.answers = Lane(
            "answers",
            model=loaded.predictor,
            batch=BATCH_TEXTS,
            turn=TURN_CHARACTERS,
            queue=limits.queue,
            pace=SECONDS_A_CHARACTER,
            **asked,
        )
        asked |= {
            "batch": limits.explained_texts,
            "turn": TURN_WORDS,
            "queue": limits.queue * limits.explained_texts // limits.texts,
            "pace": SECONDS_A_WORD,
        }
        self.explanations = Lane("explanations", model=loaded.explainer, **asked)
        self.long_explanations = Lane("long explanations", model=loaded.long_explainer, **asked)
        self._lanes = (self.answers, self.explanations, self.long_explanations)

    @property
    def is_alive(self) -> bool:
        """Is there a thread to answer each kind of request?"""
        return all(lane.is_alive for lane in self._lanes)

    async def ask(self, question: Question, texts: Sequence[str]) -> list[str]:
        """The results of a request's texts, each as JSON; refused late if they take too long."""
        if not texts:
            return []
        async with within(self._service.limits.request_seconds):
            if question.kind != "explain":
                return await self.answers.ask(question, texts)
            costs = list(map(int, await self.answers.ask(Question("cost", question.method), texts)))
            self._check_cost(sum(costs), question.method or self.description["default_method"])
            lane = self.explanations if sum(costs) <= TURN_WORDS else self.long_explanations
            return await lane.ask(question, texts, costs)

    def _check_cost(self, cost: int, method: str) -> None:
        most = self._service.limits.explained_cost
        if cost > most:
            told = f"explaining this by {method} costs as much as predicting {cost} words, wanted at most {most}"
            instead = "send fewer or shorter texts, or name a method that costs less, such as gradient-message"
            raise Refused(422, f"{told}; {instead}")

    async def reload(self) -> dict[str, Any]:
        """Load the folder again and use it from the next request on; if it cannot be used, the old model stays.

        Once begun it goes on, though nobody waits for it any more.
        """
        task = asyncio.create_task(self._reload())
        self._reloads.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def _reload(self) -> dict[str, Any]:
        async with self._turn:
            try:
                self._loading = self._loader.submit(_load_again, self._service.run)
                loaded = await asyncio.wrap_future(self._loading)
            except Exception as error:
                self._metrics.reloads.labels("kept").inc()
                logger.warning("the old model stays: %s", error)
                raise
            self.answers.model, self.explanations.model = loaded.predictor, loaded.explainer
            self.long_explanations.model = loaded.long_explainer
            self.description = loaded.description
            self._metrics.reloads.labels("loaded").inc()
            return self.description

    def _forget(self, task: "asyncio.Task[dict[str, Any]]") -> None:
        self._reloads.discard(task)
        if not task.cancelled():
            task.exception()  # which was told already

    def close(self, seconds: float) -> bool:
        """Compute and load no further. Has every thread ended within this time?"""
        end = time.monotonic() + seconds
        for lane in self._lanes:
            lane.close()
        self._loader.shutdown(wait=False, cancel_futures=True)
        ended = [lane.join(max(0.0, end - time.monotonic())) for lane in self._lanes]
        loading = [self._loading] if self._loading else []
        return all(ended) and not wait(loading, max(0.0, end - time.monotonic())).not_done

    def _set_threads(self) -> None:
        import torch  # noqa: PLC0415

        torch.set_num_threads(self._service.threads)


def _load_again(run: str) -> Loaded:
    try:
        return load_model(run)
    except Exception:
        raise
    except BaseException as error:  # a panic of compiled code is no Exception: it would end the server
        raise InputError(f"{run}: loading it ended in {type(error).__name__}; copy the model folder again") from error
