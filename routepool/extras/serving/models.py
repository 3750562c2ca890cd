"""The model that is served: loaded, tried, described, and changed for a new one without a pause."""

import asyncio
import json
import logging
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from routepool.errors import InputError, NotFiniteError
from routepool.explaining import METHODS, Subject
from routepool.explaining.methods import usual_method
from routepool.extras.serving.lane import Lane, Question
from routepool.extras.serving.metrics import Metrics
from routepool.predictor import Predictor, load, of_saved
from routepool.results import Prediction
from routepool.serving import Service

logger = logging.getLogger(__name__)

BATCH_TEXTS = 512  # sorted by length, these are cheaper to read than twice as many batches of half the size
_TRIAL = "A fine day."


@dataclass(frozen=True)
class Loaded:
    """A model that works.

    Args:
        predictor: for predictions and encodings.
        explainer: the same weights in a copy, so that a long explanation holds up no prediction.
        description: what `/labels` tells.
    """

    predictor: Predictor
    explainer: Predictor
    description: dict[str, Any]


def load_model(run: str) -> Loaded:
    """Read a model folder and try it: what can fail, fails here, before the old model is let go."""
    predictor = load(run)
    saved = predictor.saved
    if saved is None:
        raise InputError(f"{run}: an exported model cannot be served; give the folder it was exported from")
    explainer = of_saved(replace(saved, classifier=deepcopy(saved.classifier)))
    try:
        predictor.predictions([_TRIAL])
    except NotFiniteError as error:
        raise InputError(f"{run}: {NotFiniteError(0, 'a text it was tried with')}") from error
    layer = saved.classifier.levels[-1].aggregator
    description = {
        "model": Path(run).resolve().name,
        "labels": list(predictor.labels),
        "multi_label": predictor.multi_label,
        "aggregator": saved.model_config.aggregator,
        "capsules": predictor.backend.units,
        "iterations": getattr(layer, "iterations", None),
        "depth": predictor.backend.depth,
        "methods": [name for name in METHODS.names() if _works(explainer, name)],
        "default_method": usual_method(Subject.of(saved)),
    }
    return Loaded(predictor, explainer, description)


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
        self.description = loaded.description
        limits = service.limits
        self.answers = Lane(
            "answers",
            compute,
            loaded.predictor,
            batch=BATCH_TEXTS,
            queue=limits.queue,
            seconds=limits.request_seconds,
            start=self._set_threads,
            metrics=metrics,
        )
        self.explanations = Lane(
            "explanations",
            compute,
            loaded.explainer,
            batch=limits.explained_texts,
            queue=limits.queue * limits.explained_texts // limits.texts,
            seconds=limits.request_seconds,
            start=self._set_threads,
            metrics=metrics,
        )

    async def ask(self, question: Question, texts: Sequence[str]) -> list[str]:
        """The results of a request's texts, each as JSON."""
        lane = self.explanations if question.kind == "explain" else self.answers
        return await lane.ask(question, texts) if texts else []

    async def reload(self) -> dict[str, Any]:
        """Load the folder again and use it from the next batch on; if it cannot be used, the old model stays."""
        async with self._turn:
            try:
                loaded = await asyncio.to_thread(load_model, self._service.run)
            except Exception as error:
                self._metrics.reloads.labels("kept").inc()
                logger.warning("the old model stays: %s", error)
                raise
            self.answers.model, self.explanations.model = loaded.predictor, loaded.explainer
            self.description = loaded.description
            self._metrics.reloads.labels("loaded").inc()
            return self.description

    def _set_threads(self) -> None:
        import torch  # noqa: PLC0415

        torch.set_num_threads(self._service.threads)


def compute(model: Predictor, question: Question, texts: Sequence[str]) -> list[str]:
    """What a lane's thread does with a batch: JSON is made here too, off the event loop."""
    if question.kind == "explain":
        shown = model.explain(texts, method=question.method, label=question.label, iterations=question.rounds)
        return [each.to_json() for each in shown]
    if question.kind == "encode":
        encodings = model.stream_encodings(texts)  # which warns of nothing: that would be seen by nobody here
        return [json.dumps(one.vector.tolist(), allow_nan=False) for one in encodings]
    return [json.dumps(_answer(model, one), allow_nan=False) for one in model.predictions(texts)]


def _answer(model: Predictor, prediction: Prediction) -> dict[str, Any]:
    shares = dict(zip(model.labels, prediction.probabilities.tolist(), strict=True))
    return {"labels": prediction.labels, "probabilities": shares, **prediction.reading._asdict()}
