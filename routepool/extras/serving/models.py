"""The model that is served: loaded, tried, described, asked, and changed for a new one without a pause."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import nn

from routepool.errors import InputError, NotFiniteError
from routepool.explaining import METHODS, Subject, costs_of
from routepool.explaining.methods import usual_method
from routepool.extras.serving.lane import Abandoned, Lane, Question, Wanted, within
from routepool.extras.serving.prometheus import Metrics
from routepool.extras.serving.refusals import Refused
from routepool.persistence import SavedModel
from routepool.scoring.predictor import Predictor, load, of_saved
from routepool.serving import Service
from routepool.text import Reading

logger = logging.getLogger(__name__)

BATCH_TEXTS = 512  # sorted by length, these are cheaper to read than twice as many batches of half the size
TURN_CHARACTERS, TURN_WORDS = 200_000, 200_000  # of predictions and encodings; read for explanations: two seconds or so
SECONDS_A_CHARACTER, SECONDS_A_WORD = 3e-6, 15e-6  # on one core and with the usual sizes: who waits for whom, no more
_TRIAL = "A fine day."


@dataclass(frozen=True)
class Loaded:
    """A model that works.

    Args:
        predictors: one for each lane, in their order: for predictions and encodings; the same weights in a copy, so
            that an explanation holds up no prediction; another module on the weights of that copy, so that a long
            explanation holds up no short one.
        description: what `/labels` answers.
    """

    predictors: tuple[Predictor, Predictor, Predictor]
    description: dict[str, Any]


def load_model(run: str) -> Loaded:
    """Read a model folder and try it: what can fail, fails here, before the old model is let go."""
    predictor = load(run)
    saved = predictor.saved
    if saved is None:
        raise InputError(f"{run}: an exported model cannot be served; give the folder it was exported from")
    copy = _copied(saved)
    weights = chain(copy.classifier.parameters(), copy.classifier.buffers())
    explainer, long_explainer = of_saved(copy), of_saved(_copied(copy, {id(tensor): tensor for tensor in weights}))
    try:
        predictor.predictions([_TRIAL])
    except NotFiniteError as error:
        raise InputError(f"{run}: {NotFiniteError(0, 'a text it was tried with')}") from error
    subject = Subject.of(saved)
    layer = subject.levels[-1].aggregator
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
        "default_method": usual_method(subject),
    }
    return Loaded((predictor, explainer, long_explainer), description)


def _copied(saved: SavedModel, shared: dict[int, Any] | None = None) -> SavedModel:
    """The model for another thread: what is watched and changed is its own, and so are weights that are not shared."""
    return replace(saved, classifier=deepcopy(saved.classifier, shared))


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
        metrics: count batches and reloads.
    """

    def __init__(self, service: Service, loaded: Loaded, metrics: Metrics) -> None:
        self._service, self._metrics, self._turn = service, metrics, asyncio.Lock()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="routepool-load")
        self._loading: Future[Loaded] | None = None
        self._reloads: set[asyncio.Task[None]] = set()
        self.description = loaded.description
        limits = service.limits
        of_all: dict[str, Any] = {
            "compute": compute,
            "start": lambda: torch.set_num_threads(service.threads),
            "metrics": metrics,
        }
        of_answers = of_all | {
            "batch": BATCH_TEXTS,
            "turn": TURN_CHARACTERS,
            "queue": limits.queue,
            "pace": SECONDS_A_CHARACTER,
        }
        of_explanations = of_all | {
            "batch": limits.explained_texts,
            "turn": TURN_WORDS,
            "queue": limits.queue * limits.explained_texts // limits.texts,
            "pace": SECONDS_A_WORD,
        }
        predictor, explainer, long_explainer = loaded.predictors
        self._lanes = (
            Lane("answers", model=predictor, **of_answers),
            Lane("explanations", model=explainer, **of_explanations),
            Lane("long explanations", model=long_explainer, **of_explanations),
        )

    @property
    def is_alive(self) -> bool:
        """Is there a thread to answer each kind of request?"""
        return all(lane.is_alive for lane in self._lanes)

    async def ask(self, question: Question, texts: Sequence[str]) -> list[str]:
        """The results of a request's texts, each as JSON; refused late if they take too long."""
        if not texts:
            return []
        answers, explanations, long_explanations = self._lanes
        async with within(self._service.limits.request_seconds):
            if question.kind != "explain":
                return await answers.ask(question, texts)
            costs = list(map(int, await answers.ask(Question("cost", question.method), texts)))
            self._check_cost(sum(costs), question.method or self.description["default_method"])
            lane = explanations if sum(costs) <= TURN_WORDS else long_explanations
            return await lane.ask(question, texts, costs)

    def _check_cost(self, cost: int, method: str) -> None:
        most = self._service.limits.explained_cost
        if cost > most:
            raise Refused(
                422,
                f"explaining this by {method} costs as much as predicting {cost} words, wanted at most {most}; send "
                "fewer or shorter texts, or name a method that costs less, such as gradient-message",
            )

    def begin_reload(self) -> "asyncio.Task[None]":
        """Load the folder again and use it from the next request on; if it cannot be used, the old model stays.

        Once begun it goes on, though nobody waits for it any more.
        """
        task = asyncio.get_running_loop().create_task(self._reload())
        self._reloads.add(task)
        task.add_done_callback(self._forget)
        return task

    async def _reload(self) -> None:
        async with self._turn:
            try:
                self._loading = self._loader.submit(_load_again, self._service.run)
                loaded = await asyncio.wrap_future(self._loading)
            except Exception as error:
                self._metrics.reloads.labels("kept").inc()
                logger.warning("the old model stays: %s", error)
                raise
            for lane, predictor in zip(self._lanes, loaded.predictors, strict=True):
                lane.model = predictor
            self.description = loaded.description
            self._metrics.reloads.labels("loaded").inc()

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._reloads.discard(task)
        if not task.cancelled():
            task.exception()  # which has been logged

    def close(self, seconds: float) -> bool:
        """Compute and load no further. Has every thread ended within this time?"""
        end = time.monotonic() + seconds
        for lane in self._lanes:
            lane.close()
        self._loader.shutdown(wait=False, cancel_futures=True)
        ended = [lane.join(max(0.0, end - time.monotonic())) for lane in self._lanes]
        loading = [self._loading] if self._loading else []
        return all(ended) and not wait(loading, max(0.0, end - time.monotonic())).not_done


def _load_again(run: str) -> Loaded:
    try:
        return load_model(run)
    except Exception:
        raise
    except BaseException as error:  # a panic of compiled code is no Exception: it would end the server
        raise InputError(f"{run}: loading it ended in {type(error).__name__}; copy the model folder again") from error


def compute(model: Predictor, question: Question, texts: Sequence[str], wanted: Wanted) -> list[str]:
    """What a lane's thread does with texts: the JSON of each result; `Abandoned` soon after they are not wanted."""
    subject = Subject.of(model.saved)
    with _abandoning(subject.model, wanted):
        if question.kind == "cost":
            return [str(cost) for cost in costs_of(subject, texts, method=question.method)]
        if question.kind == "explain":
            shown = model.explain(texts, method=question.method, label=question.label, iterations=question.rounds)
            return [each.to_json() for each in shown]
        if question.kind == "encode":
            encodings = model.stream_encodings(texts)  # without warnings, which nobody would see here
            return [_json({"vector": one.vector.tolist()}, one.reading) for one in encodings]
        results = []
        for one in model.predictions(texts):
            probabilities = dict(zip(model.labels, one.probabilities.tolist(), strict=True))
            results.append(_json({"labels": one.labels, "probabilities": probabilities}, one.reading))
        return results


@contextmanager
def _abandoning(model: nn.Module, wanted: Wanted) -> Iterator[None]:
    """Every layer asks whether its result is wanted before it computes: whatever a model is used for passes its layers.

    The longest computation between two questions is a batch of a few thousand words, a fraction of a second.
    """

    def ask(*_: object) -> None:
        if not wanted():
            raise Abandoned

    with ExitStack() as hooks:
        for layer in model.modules():
            hooks.enter_context(layer.register_forward_pre_hook(ask))
        yield


def _json(result: dict[str, Any], reading: Reading) -> str:
    return json.dumps({**result, **reading._asdict()}, allow_nan=False)
