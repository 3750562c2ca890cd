"""What others may watch or write while a model trains."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from routepool.registry import Extra, Registry
from routepool.text import Truncation
from routepool.vectors import Coverage


@dataclass(frozen=True)
class StartReport:
    """The texts are numbers, the model is built, training begins."""

    coverage: tuple[Coverage, ...]  # of the word vectors, one for each source
    truncation: Truncation  # of the training texts
    stopping: int  # texts of dev that decide when to stop, and whose scores epochs report
    calibrating: int  # further texts of dev, held apart to calibrate on


@dataclass(frozen=True)
class StepReport:
    """One batch was learned."""

    step: int
    epoch: int
    index: int
    batches: int  # in this epoch
    examples: int
    loss: float
    rate: float


@dataclass(frozen=True)
class EpochReport:
    """One epoch was learned and the dev set scored."""

    epoch: int
    step: int
    loss: float  # mean over the epoch's batches
    score: float
    best_score: float
    is_best: bool  # so far, in the life of the run and not of the process; never where the last epoch is kept
    examples_per_second: float
    seconds: float
    waited: float  # seconds in which training waited for its data
    batch_size: int
    window: int


class Hook:
    """Does nothing; override what you want to see."""

    def on_start(self, report: StartReport) -> None:
        """Before the first step."""

    def on_step(self, report: StepReport) -> None:
        """After each step."""

    def on_epoch(self, report: EpochReport) -> None:
        """After each epoch."""


# What can write a run's curves somewhere else: name -> the hook for a folder.
LOGGERS: Registry[Callable[[Path], Hook]] = Registry(
    "logger", {"tensorboard": Extra("routepool.extras.tensorboard", "tensorboard")}
)


class MetricsFile(Hook):
    """One JSON line for each epoch, appended: `logs/metrics.jsonl` of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_epoch(self, report: EpochReport) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time.time(), **_finite(asdict(report))}, allow_nan=False) + "\n")


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: the loss of an epoch resumed after its last batch is null."""
    return {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in values.items()}
