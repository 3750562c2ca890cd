"""How good a model is: its scores in a line, in its provenance and in its card."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from routepool.datasets import Dataset
from routepool.errors import NotFiniteError
from routepool.runs.record import RunRecord
from routepool.runs.reporter import Reporter
from routepool.runs.sets import HELD, SEED, Note, Sets
from routepool.scoring.metrics import FEWEST, Evaluation, evaluate
from routepool.scoring.predictor import Predictor
from routepool.text import Unread
from routepool.training import Fitted

MOST_CONFUSED = 20  # labels whose confusion still fits a screen


def score_sets(predictor: Predictor, sets: Sets, reporter: Reporter) -> dict[str, Evaluation]:
    """Score a new model on dev and test, and say the scores."""
    scores: dict[str, Evaluation] = {}
    for name, data in zip(("dev", "test"), sets.all[1:], strict=False):
        scores[name] = scores_of(predictor, data, reporter.note)
        reporter.say(f"{name}: {summary(scores[name])}")
    return scores


def scores_of(predictor: Predictor, data: Dataset, note: Note) -> Evaluation:
    """Score a model on a labelled set, and note what it could not read of the texts."""
    try:
        predictions = predictor.predictions([example.text for example in data.examples])
    except NotFiniteError as error:
        raise NotFiniteError(error.place, f"{data.source}, row {data.examples[error.place].row}") from error
    unread = Unread.of((one.reading for one in predictions), rows=(example.row for example in data.examples))
    for line in unread.lines():
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
        line += f", no calibration error of fewer than {FEWEST} texts"
    return line if scores.brier is None else f"{line}, Brier score {scores.brier:.4f}"


def facts_of(record: RunRecord, sets: Sets, fitted: Fitted, scores: Mapping[str, Evaluation]) -> dict[str, Any]:
    """What a model remembers of its run; its card too, so that a copy of the model has the same one."""
    student = record.distillation
    return {
        "run": record.id,
        "created": record.created,
        "preset": record.preset_name,
        "data": _data_facts(sets),
        "vectors": record.vectors and [Path(part).name for part in record.vectors.split(",")],
        "teachers": student and [Path(folder).name for folder in student.teachers],
        "threads": record.threads,
        "versions": record.versions,
        "scores": {name: {**one.to_dict(), "classes": None, "confusion": None} for name, one in scores.items()},
        "best_epoch": fitted.progress.best_epoch + 1,
        "card": _card(record, sets, fitted, scores),
    }


def _card(record: RunRecord, sets: Sets, fitted: Fitted, scores: Mapping[str, Evaluation]) -> dict[str, Any]:
    last = list(scores.values())[-1]
    limits = ["The dev set chose the best epoch and the calibration: its scores are a little too good."]
    limits += [fitted.truncation.line()] if fitted.truncation.words else []
    limits += [f"Word vectors: {one}" for one in fitted.coverage]
    limits += [record.distillation.limit()] if record.distillation else []
    known = {"datasets": [record.data.title], "language": "en"} if record.data.is_named else {}
    return {
        "title": f"Text classifier trained on {record.data.title}",
        "data": _data_facts(sets),
        "scores": [row for name, one in scores.items() for row in _rows(name, one)],
        "calibration": {key: value for name, one in scores.items() for key, value in _calibration(name, one).items()},
        "confusion": last.confusion if len(last.classes) <= MOST_CONFUSED else None,
        "versions": dict(record.versions),
        "limits": limits,
        **known,
    }


def _data_facts(sets: Sets) -> dict[str, dict[str, Any]]:
    facts: dict[str, dict[str, Any]] = {
        name: {
            "file": ", ".join(Path(file).name for file in data.files),
            "examples": len(data.examples),
            "sha256": ", ".join(data.files.values()),
        }
        for name, data in zip(("train", "dev", "test"), sets.all, strict=False)
    }
    if sets.was_split:
        facts["dev"]["split"] = f"a stratified {HELD:.0%} of the file, seed {SEED}"
    return facts


def _rows(name: str, scores: Evaluation) -> list[dict[str, Any]]:
    accuracy = {"value": scores.accuracy, "low": scores.accuracy_low, "high": scores.accuracy_high}
    return [
        {"set": name, "score": "accuracy", **accuracy},
        {"set": name, "score": "macro F1", "value": scores.macro_f1},
        {"set": name, "score": "micro F1", "value": scores.micro_f1},
    ]


def _calibration(name: str, scores: Evaluation) -> dict[str, float]:
    values = {"calibration error": scores.calibration_error, "Brier score": scores.brier}
    return {f"{what}, {name}": value for what, value in values.items() if value is not None}
