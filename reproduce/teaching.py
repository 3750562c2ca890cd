"""Students: the texts that they learn from beside their own, and what their teachers answer to all of them."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from reproduce.plan import MODELS, Run
from reproduce.review_sentences import sentences_of_reviews
from routepool.config import Preset, change, split_source
from routepool.datasets import Example, Parts
from routepool.errors import InputError
from routepool.training import Task, Teacher, teacher_logits

SENTENCES = 60_000  # of reviews


def taught(run: Run, task: Task, parts: Parts) -> Task:
    """The task of a student, whose texts without labels come after the others; any other task as it is."""
    if not run.variant.teachers:
        return task
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
