"""What a model is worth: its scores, in a line and in the model card."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from routepool.datasets import Dataset
from routepool.errors import NotFiniteError
from routepool.runs.sets import HELD, SEED, Sets, named_rows
from routepool.scoring.metrics import FEWEST, Evaluation, evaluate
from routepool.scoring.predictor import Predictor
from routepool.text import Truncation, Unread

MOST_CONFUSED = 20  # labels whose confusion still fits a screen


def scores_of(predictor: Predictor, data: Dataset, note: Callable[[str], None]) -> Evaluation:
    """How good a model is on a labelled set; what it could not read of the texts is noted."""
    try:
        predictions = predictor.predictions([example.text for example in data.examples])
    except NotFiniteError as error:
        raise NotFiniteError(error.place, f"{data.source}, row {data.examples[error.place].row}") from error
    unread = Unread()
    for example, prediction in zip(data.examples, predictions, strict=True):
        unread.add(example.row, prediction.reading)
    for line in unread.lines(named_rows):
        note(f"{data.source}: {line}")
    probabilities = np.stack([one.probabilities for one in predictions])
    truth = [example.labels or () for example in data.examples]
    return evaluate(truth, probabilities, predictor.labels, thresholds=predictor.thresholds)


def summary(scores: Evaluation) -> str:
    """The scores that matter most, in a line."""
    interval = f"{scores.accuracy_low:.4f} to {scores.accuracy_high:.4f}"
    line = f"accuracy {scores.accuracy:.4f} (95 % interval {interval}), macro F1 {scores.macro_f1:.4f}"
    line += f", micro F1 {scores.micro_f1:.4f}"
    if scores.calibration_error is not None:
        line += f", calibration error {scores.calibration_error:.4f}"
    elif scores.brier is not None:
        line += f", calibration error not told of fewer than {FEWEST} texts"
    return line if scores.brier is None else f"{line}, Brier score {scores.brier:.4f}"


def card_of(title: str, sets: Sets, scores: Mapping[str, Evaluation], **more: Any) -> dict[str, Any]:
    """The fields of a model card.

    Args:
        title: of the data.
        sets: that it learned from and was scored on.
        scores: of each set that was scored; the last one's confusion is shown.
        more: `versions`, `limits`, and what hubs know of the data.
    """
    last = list(scores.values())[-1]
    return {
        "title": f"Text classifier trained on {title}",
        "data": data_facts(sets),
        "scores": [row for name, one in scores.items() for row in _rows(name, one)],
        "calibration": {key: value for name, one in scores.items() for key, value in _calibration(name, one).items()},
        "confusion": last.confusion if len(last.classes) <= MOST_CONFUSED else None,
        **more,
    }


def data_facts(sets: Sets) -> dict[str, dict[str, Any]]:
    """File, size and hash of each set."""
    read = {"train": sets.train, "dev": sets.dev, "test": sets.test}
    facts = {
        name: {
            "file": ", ".join(Path(file).name for file in data.files),
            "examples": len(data.examples),
            "sha256": ", ".join(data.files.values()),
        }
        for name, data in read.items()
        if data is not None
    }
    if sets.was_split:
        facts["dev"]["split"] = f"a stratified {HELD:.0%} of the file, seed {SEED}"
    return facts


def limits_of(truncation: Truncation, coverage: Sequence[object]) -> list[str]:
    """What a reader of the scores should know."""
    limits = ["The dev set chose the best epoch and the calibration: its scores are a little too good."]
    if truncation.words:
        limits.append(truncation.told())
    return limits + [f"Word vectors: {one}" for one in coverage]


def _rows(name: str, scores: Evaluation) -> list[dict[str, Any]]:
    accuracy = {"value": scores.accuracy, "low": scores.accuracy_low, "high": scores.accuracy_high}
    return [
        {"set": name, "score": "accuracy", **accuracy},
        {"set": name, "score": "macro F1", "value": scores.macro_f1},
        {"set": name, "score": "micro F1", "value": scores.micro_f1},
    ]


def _calibration(name: str, scores: Evaluation) -> dict[str, float]:
    told = {"calibration error": scores.calibration_error, "Brier score": scores.brier}
    return {f"{what}, {name}": value for what, value in told.items() if value is not None}
