"""What is searched: settings, the values each may have, and space.toml, which lists them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path
from typing import Any, NamedTuple

import torch

from routepool.errors import InputError, unknown
from routepool.model import Classifier
from routepool.settings import PRESETS, Preset, assign
from routepool.settings.choosing import Typed, value_of
from routepool.settings.toml import read_toml, toml_value

_MOST_VALUES, _MOST_STEPS = 1000, 100_000
_CLASSES = ("aggregator", "encoder")  # these decide which other settings there are


@dataclass(frozen=True)
class Choice:
    """A setting is one of these values.

    >>> Choice((1, 1))
    Traceback (most recent call last):
    routepool.errors.InputError: wanted different values, got 1 twice
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InputError("wanted a list of at least one value, got an empty one")
        if len(self.values) > _MOST_VALUES:
            raise InputError(
                f"wanted a list of at most {_MOST_VALUES:,} values, got {len(self.values):,}; give a range"
            )
        for place, value in enumerate(self.values):
            if value in self.values[:place]:
                raise InputError(f"wanted different values, got {value!r} twice")

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.values)

    @property
    def samples(self) -> tuple[Any, ...]:
        """Values that must all be good for the choice to be good."""
        return self.values

    def map(self, change: Callable[[Any], Any]) -> "Choice":
        """The same choice with every value changed."""
        return Choice(tuple(change(value) for value in self.values))

    def to_plain(self) -> list[Any]:
        """The plain value of a file."""
        return list(self.values)


@dataclass(frozen=True)
class Range:
    """A setting is a number from `low` to `high`, both included; whole if both are.

    Args:
        low: the smallest.
        high: the largest.
        step: between two values; None for any.
        log: each power of ten is as likely as the next.

    >>> Range(0.1, 0.5, step=0.2).values
    (0.1, 0.3, 0.5)
    """

    low: float
    high: float
    step: float | None = None
    log: bool = False

    def __post_init__(self) -> None:
        for name in ("low", "high", *(["step"] if self.step is not None else [])):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
                raise InputError(f"{name} must be a number, got {value!r}")
        if not isinstance(self.log, bool):
            raise InputError(f"log must be true or false, got {self.log!r}")
        if not self.low < self.high:
            raise InputError(f"low must be below high, got {self.low!r} and {self.high!r}")
        if self.log and (self.step is not None or self.low <= 0):
            raise InputError("a range with log = true starts above 0 and has no step; give a list of values instead")
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise InputError(f"step must be above 0 and fit between low and high, got {self.step!r}")
        if self.step is not None and (self.high - self.low) / self.step > _MOST_STEPS:
            raise InputError(f"step must be at least a {_MOST_STEPS:,}th of the range, got {self.step!r}")

    @property
    def is_whole(self) -> bool:
        """Only whole numbers lie in it."""
        return all(isinstance(end, int) for end in (self.low, self.high, self.step or 1))

    @property
    def values(self) -> tuple[float, ...]:
        """Every step from `low` on."""
        if self.step is None:
            raise InputError("a grid needs a list of values, or a range with a step; or search with --sampler tpe")
        number = int((self.high - self.low) / self.step + 1e-9) + 1
        values = (self.low + place * self.step for place in range(number))
        # Rounded: nobody asks for the setting 0.1 + 0.2 = 0.30000000000000004.
        return tuple(value if isinstance(value, int) else float(f"{value:.12g}") for value in values)

    @property
    def size(self) -> int | None:
        """The number of values; None if there is no end of them."""
        if self.step is None:
            return int(self.high) - int(self.low) + 1 if self.is_whole else None
        return len(self.values)

    @property
    def samples(self) -> tuple[float, ...]:
        """Values that must all be good for the range to be good."""
        return (self.low, self.high)

    def map(self, change: Callable[[Any], Any]) -> "Range":
        """The same range with every number changed, the step to the kind of `low`."""
        low = change(self.low)
        step = float(self.step) if self.step is not None and isinstance(low, float) else self.step
        return Range(low, change(self.high), step, self.log)

    def to_plain(self) -> dict[str, Any]:
        """The plain value of a file."""
        step = {} if self.step is None else {"step": self.step}
        return {"low": self.low, "high": self.high, **step, **({"log": True} if self.log else {})}


Space = Mapping[str, Choice | Range]


def read_domain(plain: Any) -> Choice | Range:
    """A list is a choice, a table a range.

    >>> read_domain([1, 2]), read_domain({"low": 0.1, "high": 0.7})
    (Choice(values=(1, 2)), Range(low=0.1, high=0.7, step=None, log=False))
    """
    if isinstance(plain, list):
        return Choice(tuple(tuple(value) if isinstance(value, list) else value for value in plain))
    if not isinstance(plain, Mapping):
        raise InputError(f"wanted a list of values, [1, 2], or a range, {{ low = 1, high = 2 }}, got {plain!r}")
    for key in plain:
        if key not in ("low", "high", "step", "log"):
            raise unknown("part of a range", key, ["low", "high", "step", "log"])
    if not {"low", "high"} <= plain.keys():
        raise InputError(f"a range wants low and high, got {', '.join(plain) or 'neither'}")
    return Range(**plain)


def number_of_points(space: Space) -> int | None:
    """The number of different settings; None if there is no end of them.

    >>> number_of_points({"capsules": Range(1, 5), "dropout": Choice((0.2, 0.5))})
    10
    """
    sizes = [domain.size for domain in space.values()]
    return None if None in sizes else prod(size for size in sizes if size is not None)


def paper_space() -> dict[str, Choice | Range]:
    """The values of table 2 of the paper, those that its grid search found for its five sets.

    >>> paper_space()["learning_rate"]
    Choice(values=(0.0001, 0.0002, 0.0003))
    """
    rows = [row for name, row in PRESETS.items() if name.startswith("paper-")]
    columns = {
        "learning_rate": {row.training.learning_rate for row in rows},
        "dropout": {row.model.dropout for row in rows},
        "l2": {row.training.l2 for row in rows},
    }
    return {name: Choice(tuple(sorted(values))) for name, values in columns.items()}


class SpaceFile(NamedTuple):
    """What space.toml holds."""

    source: str  # the file, for messages
    base: str  # name or file of a preset
    space: Space


PAPER = SpaceFile("the paper's grid", "paper", paper_space())


def read_space(path: Path) -> SpaceFile:
    """Read space.toml; `fit_to`, which knows the preset, checks names and values of settings."""
    base, values = read_toml(path, "wanted lines such as learning_rate = [1e-4, 1e-3]")
    space = {}
    for name, plain in values.items():
        with named(f"{path}: {name}"):
            space[name] = read_domain(plain)
    return SpaceFile(str(path), base, space)


def refuse_fixed(searched: SpaceFile, fixed: Iterable[str]) -> None:
    """Raise InputError for a setting that is both searched and set."""
    for name in fixed:
        if name in searched.space:
            raise InputError(f"{searched.source}: {name} is searched and set on the command line too; drop one of them")


def fit_to(searched: SpaceFile, base: Preset) -> Space:
    """The space with its values as `--set` reads them; each is tried on the preset, with the errors of `--set`."""
    first = {name: domain.samples[0] for name, domain in searched.space.items()}
    parts = {name: value for name, value in first.items() if name in _CLASSES}
    fitted: dict[str, Choice | Range] = {}
    # The other settings first, so that a wrong one is not blamed on the class it belongs to.
    for name in sorted(searched.space, key=lambda name: name in _CLASSES):
        others = first if name in _CLASSES else parts
        fitted[name] = _fit_domain(searched, name, others, base)
    return {name: fitted[name] for name in searched.space}


def _fit_domain(searched: SpaceFile, name: str, others: Mapping[str, Any], base: Preset) -> Choice | Range:
    domain = searched.space[name]

    def fit(value: Any) -> Any:
        fitted = _fit(name, value, others, base)
        if isinstance(domain, Range) and not isinstance(fitted, int | float):
            raise InputError("a range is for numbers; give a list of values")
        return fitted

    with named(f"{searched.source}: {name}"):
        return domain.map(fit)


def _fit(name: str, value: Any, others: Mapping[str, Any], base: Preset) -> Any:
    typed = {key: Typed(toml_value(plain)) for key, plain in {**others, name: value}.items()}
    preset = assign(base, typed)
    if not preset.model.is_pretrained:
        with torch.device("meta"):  # checks every option, computes nothing
            Classifier.build(preset.model, vocabulary_size=2, classes=2)
    return value_of(preset, name)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Put the file or the setting before the message of an InputError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
