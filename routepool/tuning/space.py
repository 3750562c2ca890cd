"""What is searched: settings, and the values each may have."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

from routepool.errors import InputError, unknown
from routepool.settings import PRESETS

_MOST_VALUES, _MOST_STEPS = 1000, 100_000


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
        """How many values there are."""
        return len(self.values)

    @property
    def samples(self) -> tuple[Any, ...]:
        """Values that must all be good for the choice to be good."""
        return self.values

    def map(self, change: Callable[[Any], Any]) -> "Choice":
        """The same choice with every value changed."""
        return Choice(tuple(change(value) for value in self.values))

    def to_plain(self) -> list[Any]:
        """As it stands in a file."""
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
        # Rounded, for 0.1 + 0.2 is a setting that nobody asked for.
        return tuple(_rounded(self.low + place * self.step) for place in range(number))

    @property
    def size(self) -> int | None:
        """How many values there are; None for no end of them."""
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
        """As it stands in a file."""
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
    """How many different settings there are; None for no end of them.

    >>> number_of_points({"capsules": Range(1, 5), "dropout": Choice((0.2, 0.5))})
    10
    """
    sizes = [domain.size for domain in space.values()]
    return None if None in sizes else prod(size for size in sizes if size is not None)


def paper_space() -> dict[str, Choice | Range]:
    """The values that table 2 of the paper has for its five sets: what its grid search is known to have found.

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


@contextmanager
def named(name: str) -> Iterator[None]:
    """An error in it names the file or the setting it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _rounded(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.12g}")
