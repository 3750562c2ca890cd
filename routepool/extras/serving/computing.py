"""What a lane's thread does with texts: JSON is made here too, off the event loop."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from routepool.explaining import Subject, costs_of
from routepool.extras.serving.lane import Abandoned, Question, Wanted
from routepool.scoring.backends import Prediction
from routepool.scoring.predictor import Predictor
from routepool.text import Reading

if TYPE_CHECKING:
    from torch import nn


def compute(model: Predictor, question: Question, texts: Sequence[str], wanted: Wanted) -> list[str]:
    """The JSON of each text's result; `Abandoned` soon after it is no longer wanted."""
    assert model.saved is not None
    with abandoning(model.saved.classifier, wanted):
        return _results(model, question, texts)


@contextmanager
def abandoning(model: "nn.Module", wanted: Wanted) -> Iterator[None]:
    """Every layer asks whether it is wanted before it computes: all that a model is used for goes through them.

    A batch of a few thousand words is what the longest of them reads at a time, a fraction of a second.
    """

    def ask(*_: object) -> None:
        if not wanted():
            raise Abandoned

    with ExitStack() as hooks:
        for layer in model.modules():
            hooks.callback(layer.register_forward_pre_hook(ask).remove)
        yield


def _results(model: Predictor, question: Question, texts: Sequence[str]) -> list[str]:
    if question.kind == "cost":
        assert model.saved is not None
        return [str(cost) for cost in costs_of(Subject.of(model.saved), texts, method=question.method)]
    if question.kind == "explain":
        shown = model.explain(texts, method=question.method, label=question.label, iterations=question.rounds)
        return [each.to_json() for each in shown]
    if question.kind == "encode":
        encodings = model.stream_encodings(texts)  # which warns of nothing: that would be seen by nobody here
        return [_json({"vector": one.vector.tolist()}, one.reading) for one in encodings]
    return [_json(_prediction(model, one), one.reading) for one in model.predictions(texts)]


def _prediction(model: Predictor, prediction: Prediction) -> dict[str, Any]:
    probabilities = dict(zip(model.labels, prediction.probabilities.tolist(), strict=True))
    return {"labels": prediction.labels, "probabilities": probabilities}


def _json(result: dict[str, Any], reading: Reading) -> str:
    return json.dumps({**result, **reading._asdict()}, allow_nan=False)
