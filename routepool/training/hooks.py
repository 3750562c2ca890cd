"""What watches a training: hooks and the reports they get, a file of metrics, a progress bar."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from routepool.registry import Extra, Registry
from routepool.text import Truncation
from routepool.vectors import Coverage


@dataclass(frozen=True)
class StartReport:
    """The texts are encoded, the model is built, training begins."""

    coverage: tuple[Coverage, ...]  # of the word vectors, one for each source
    truncation: Truncation  # of the training texts
    stopping: int  # texts of dev that decide when to stop; the scores of epochs are theirs
    calibrating: int  # other texts of dev, which only calibrate


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
    is_best: bool  # so far, epochs before a stop included; never where the last epoch is kept
    examples_per_second: float
    seconds: float
    waited: float  # seconds in which training waited for its data
    batch_size: int
    window: int


class Hook:
    """Does nothing; override what you want to see."""

    def on_start(self, report: StartReport) -> None:
        """Called before the first step."""

    def on_step(self, report: StepReport) -> None:
        """Called after each step."""

    def on_epoch(self, report: EpochReport) -> None:
        """Called after each epoch."""


# What writes the curves of a run: name -> the hook for a folder.
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
            values = {"time": time.time(), **asdict(report)}
            if not isfinite(report.loss):  # of an epoch resumed after its last batch; JSON has no NaN
                values["loss"] = None
            file.write(json.dumps(values, allow_nan=False) + "\n")


class ProgressBar(Hook):
    """Shows loss, dev score, examples a second and the longest time left, on standard error; use as a context.

    Args:
        epochs: at most; training may stop before.
        score: the name of the dev score.
        console: where the bar is drawn, if it is a terminal.
    """

    def __init__(self, epochs: int, score: str = "score", *, console: Console | None = None) -> None:
        self._epochs, self._score = epochs, score
        self._console = console or Console(stderr=True, highlight=False)
        self._dev = "-"
        self._start, self._examples = 0.0, 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("loss {task.fields[loss]}  dev {task.fields[dev]}  {task.fields[speed]} examples/s"),
            TimeRemainingColumn(compact=True),
            TextColumn("left at most"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
            redirect_stdout=False,  # lines for a file or a pipe go there, not to the terminal
        )
        self._task = self._bar.add_task("reading", total=None, loss="-", dev="-", speed="-")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, line: str) -> None:
        """Write a line, above the bar if there is one."""
        self._console.print(line, soft_wrap=True, markup=False)

    def on_step(self, report: StepReport) -> None:
        if self._start:
            self._examples += report.examples
        else:  # the clock runs from the end of an epoch's first step
            self._start = time.monotonic()
        self._bar.update(
            self._task,
            description=f"epoch {report.epoch + 1}/{self._epochs}",
            total=self._epochs * report.batches,
            completed=report.epoch * report.batches + report.index + 1,
            loss=f"{report.loss:.3f}",
            dev=self._dev,
            speed=f"{self._examples / max(time.monotonic() - self._start, 1e-9):.0f}",
        )

    def on_epoch(self, report: EpochReport) -> None:
        self._dev = f"{report.score:.3f}"
        best = ", the best so far" if report.is_best else ""
        left = duration((self._epochs - report.epoch - 1) * report.seconds)
        self.say(
            f"epoch {report.epoch + 1}: loss {report.loss:.4f}, dev {self._score} {report.score:.4f}{best}; "
            f"{report.examples_per_second:.0f} examples/s, {left} left at most"
        )
        self._start, self._examples = 0.0, 0


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(8), duration(200), duration(9000)
    ('8 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
