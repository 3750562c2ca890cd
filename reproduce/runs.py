"""What a run is, and where its result, its model and the answers of its teachers lie."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS, LEDGER = FOLDER / "results", FOLDER / "ledger.csv"
MODELS = FOLDER.parent / "runs" / "reproduce"  # of teachers and warm-ups; not committed
ANSWERS = FOLDER / "answers"  # of teachers, so that their students need no teacher at hand
GLOVE = "vectors/glove.6B.100d.f16.npz"


@dataclass(frozen=True)
class Variant:
    """Settings under a name: a preset and what differs from it.

    Args:
        name: of the folder of its results.
        preset: as `routepool train --preset` takes it.
        changes: setting -> value, as `--set` takes them.
        vectors: of the words; files are looked for in the data folder.
        shown: a sentence whose couplings go into the result.
        kept: the model stays in `MODELS`, to teach or to go on with.
        start: a run whose model this one goes on with.
        teachers: runs whose models teach this one, beside its own texts on sentences of reviews.
    """

    name: str
    preset: str = "paper"
    changes: dict[str, Any] = field(default_factory=dict, hash=False)
    vectors: str = GLOVE
    shown: str = ""
    kept: bool = False
    start: str = ""
    teachers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One model to train.

    Args:
        data: a set of `reproduce.data`.
        variant: how.
        seed: of weights, batches and dropout.
        scored: whether test is read, once; choices are made on runs that do not.
    """

    data: str
    variant: Variant
    seed: int
    scored: bool = True

    @property
    def name(self) -> str:
        """Of its result, below the folder of results."""
        return f"{self.data}/{self.variant.name}/{self.seed}"


def models_wanted(run: Run) -> list[str]:
    """The runs whose models this one learns from or goes on with, and that are not at hand."""
    start, taught_by = run.variant.start, run.variant.teachers
    earlier = (*([start] if start else []), *(() if answered(taught_by).exists() else taught_by))
    return [name for name in earlier if not (MODELS / name).exists()]


def answered(teachers: tuple[str, ...]) -> Path:
    """Where the mean of their answers is kept."""
    trained_on = {name.partition("/")[0] for name in teachers}
    return ANSWERS / f"{'-'.join(sorted(trained_on))}-by-{len(teachers)}.npz"
