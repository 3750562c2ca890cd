"""Training as it goes: a bar on a terminal, a line for each epoch everywhere."""

import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from routepool.cli import screen
from routepool.cli.report import cut
from routepool.training import EpochReport, Hook, StartReport, StepReport


class TrainingScreen(Hook):
    """Shows loss, dev score, examples a second and the time left at most; use as a context.

    Args:
        epochs: the most there can be; training may well stop before.
        score: what the dev score is called.
    """

    def __init__(self, epochs: int, score: str = "accuracy") -> None:
        self._epochs, self._score = epochs, score
        self._dev, self._best = "-", -1.0
        self._start, self._examples = 0.0, 0
        self._bar = screen.progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("loss {task.fields[loss]}  dev {task.fields[dev]}  {task.fields[speed]} examples/s"),
            TimeRemainingColumn(compact=True),
            TextColumn("left at most"),
        )
        self._task = self._bar.add_task("reading", total=None, loss="-", dev="-", speed="-")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def on_start(self, report: StartReport) -> None:
        for coverage in report.coverage:
            _tell(f"word vectors, {coverage}")
        if report.truncation.words:
            _tell(cut(report.truncation))

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
        best = ", the best so far" if report.best_score > self._best else ""
        self._best = report.best_score
        left = duration((self._epochs - report.epoch - 1) * report.seconds)
        _tell(
            f"epoch {report.epoch + 1}: loss {report.loss:.4f}, dev {self._score} {report.score:.4f}{best}; "
            f"{report.examples_per_second:.0f} examples/s, {left} left at most"
        )
        self._start, self._examples = 0.0, 0


def _tell(line: str) -> None:
    # On one terminal, through the bar's own console: it knows how to keep the bar below.
    tell = screen.note if screen.out.is_terminal else screen.say
    tell(line)


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(8), duration(200), duration(9000)
    ('8 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
