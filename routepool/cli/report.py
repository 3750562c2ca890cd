"""Scores on the screen and in the model card."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from routepool.cli import screen
from routepool.cli.reading import HELD, SEED, Material
from routepool.datasets import Dataset
from routepool.scoring.bulk import naming_rows
from routepool.scoring.metrics import FEWEST, Evaluation, evaluate
from routepool.scoring.predictor import Predictor
from routepool.text import Truncation, Unread

_MOST_CONFUSED = 20  # labels whose confusion still fits a screen


def scores_of(predictor: Predictor, data: Dataset) -> Evaluation:
    """How good a model is on a labelled set; what it could not read of the texts is said."""
    with naming_rows(data.source, data.examples):
        predictions = predictor.predictions([example.text for example in data.examples])
    rows = [example.row for example in data.examples]
    screen.note_unread(data.source, Unread.of((one.reading for one in predictions), rows))
    shares = np.stack([one.probabilities for one in predictions])
    truth = [example.labels or () for example in data.examples]
    return evaluate(truth, shares, predictor.labels, thresholds=predictor.thresholds)


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


def show(scores: Evaluation) -> None:
    """All scores as tables."""
    screen.say(f"{scores.examples} examples: {summary(scores)}")
    rows = [
        (one.label, f"{one.precision:.4f}", f"{one.recall:.4f}", f"{one.f1:.4f}", one.support) for one in scores.classes
    ]
    screen.table("", ("label", "precision", "recall", "F1", "examples"), rows)
    if scores.confusion and len(scores.classes) <= _MOST_CONFUSED:
        labels = [one.label for one in scores.classes]
        counts = [(label, *row) for label, row in zip(labels, scores.confusion, strict=True)]
        screen.table("confusion: rows are the true labels", ("", *labels), counts)


def card_of(title: str, material: Material, scores: Mapping[str, Evaluation], **more: Any) -> dict[str, Any]:
    """The fields of a model card.

    Args:
        title: of the data.
        material: the sets.
        scores: of each set that was scored; the last one's confusion is shown.
        more: `versions`, `limits`, and what hubs know of the data.
    """
    last = list(scores.values())[-1]
    return {
        "title": f"Text classifier trained on {title}",
        "data": data_facts(material),
        "scores": [row for name, one in scores.items() for row in _rows(name, one)],
        "calibration": {key: value for name, one in scores.items() for key, value in _calibration(name, one).items()},
        "confusion": last.confusion if len(last.classes) <= _MOST_CONFUSED else None,
        **more,
    }


def data_facts(material: Material) -> dict[str, dict[str, Any]]:
    """File, size and hash of each set."""
    sets = {"train": material.train, "dev": material.dev, "test": material.test}
    facts = {
        name: {
            "file": ", ".join(Path(file).name for file in data.files),
            "examples": len(data.examples),
            "sha256": ", ".join(data.files.values()),
        }
        for name, data in sets.items()
        if data is not None
    }
    if material.was_split:
        facts["dev"]["split"] = f"a stratified {HELD:.0%} of the file, seed {SEED}"
    return facts


def limits_of(truncation: Truncation, coverage: Sequence[object]) -> list[str]:
    """What a reader of the scores should know."""
    limits = ["The dev set chose the best epoch and the calibration: its scores are a little too good."]
    if truncation.words:
        limits.append(truncation.line())
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
