"""What a search is made of: its plan, its trials, and the registries of what chooses and draws them."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from routepool.errors import InputError, RoutepoolError, unknown
from routepool.registry import Extra, Registry
from routepool.tuning.space import Space, named

RUNNING, FINISHED, PRUNED, FAILED = "running", "finished", "pruned", "failed"
PRUNERS = ("none", "median", "halving")


class HopelessError(RoutepoolError):
    """A trial is so far behind the others that it is pruned."""


@dataclass(frozen=True)
class Plan:
    """What is to be searched, and how.

    Args:
        space: the settings and their values.
        sampler: what chooses the next settings, a name in `SEARCHES`.
        prune: when a trial is given up, a name in `PRUNERS`.
        seed: of the choices.
    """

    space: Space
    sampler: str = "grid"
    prune: str = "none"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.prune not in PRUNERS:
            raise unknown("pruner", self.prune, PRUNERS)
        if not self.space:
            raise InputError("there is nothing to search; give at least one setting a list or a range of values")
        if self.sampler == "grid":
            for name, domain in self.space.items():
                with named(name):
                    domain.values  # noqa: B018


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a trial ended.

    Args:
        state: finished, pruned or failed.
        score: the best on dev; None for a failed trial.
        epochs: learned.
        seconds: it took.
        why: the error of a failed trial, or the trial that it repeats.
    """

    state: str
    score: float | None = None
    epochs: int = 0
    seconds: float = 0.0
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Trial(Outcome):
    """One set of settings that was tried, or is being tried."""

    number: int
    settings: Mapping[str, Any]


class Attempt(Protocol):
    """A trial under way."""

    number: int
    settings: Mapping[str, Any]

    def report(self, epoch: int, score: float) -> bool:
        """Report the dev score of an epoch, counted from 1; True if the trial should be given up."""

    def end(self, outcome: Outcome) -> None:
        """Keep the outcome for good."""


class Search(ABC):
    """The trials of a search, kept where a killed process cannot lose them."""

    @abstractmethod
    def trials(self) -> list[Trial]:
        """All trials, in the order they began."""

    @abstractmethod
    def begin(self) -> Attempt:
        """The next trial: first one that began and never ended. A grid has a next one until all were tried."""


# Name -> the search of a plan, kept in a file.
SEARCHES: Registry[Callable[[Plan, Path], Search]] = Registry(
    "sampler", {name: Extra("routepool.extras.optuna_search", "tune") for name in ("grid", "tpe", "random")}
)

# Name -> what draws it into a file: the title of the score, and the trials.
DRAWINGS: Registry[Callable[[Path | IO[bytes], str, Sequence[Trial]], None]] = Registry(
    "picture", {name: Extra("routepool.extras.plot_search", "plot") for name in ("history", "settings")}
)


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The finished trial with the highest score, the earliest of several.

    >>> tried = [Trial(number=n, settings={}, state=FINISHED, score=s) for n, s in enumerate((0.5, 0.9, 0.9))]
    >>> best_of(tried).number
    1
    """
    finished = [trial for trial in trials if trial.state == FINISHED and trial.score is not None]
    return max(finished, key=lambda trial: trial.score or 0.0, default=None)


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Best first; then the pruned ones, then those without a score."""
    places = {FINISHED: 0, PRUNED: 1}
    return sorted(trials, key=lambda trial: (places.get(trial.state, 2), -(trial.score or 0.0), trial.number))


def shown(value: Any) -> str:
    """A value in a table.

    >>> shown(0.00030000000000000003), shown("max"), shown((1, 2)), shown(True)
    ('0.0003', 'max', '[1, 2]', 'true')
    """
    if isinstance(value, str):
        return value
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value)
