"""Training as it goes: a bar on a terminal, a line for each epoch everywhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from routepool.training.hooks import EpochReport, Hook, StepReport


class ProgressBar(Hook):
    """Shows loss, dev score, examples a second and the time left at most, on standard error; use as a context.

    Args:
        epochs: the most there can be; training may well stop before.
        score: what the dev score is called.
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def tell(self, line: str) -> None:
        """Write a line, above the bar where there is one."""
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
        self.tell(
            f"epoch {report.epoch + 1}: loss {report.loss:.4f}, dev {self._score} {report.score:.4f}{best}; "
            f"{report.examples_per_second:.0f} examples/s, {left} left at most"
        )
        self._start, self._examples = 0.0, 0


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(8), duration(200), duration(9000)
    ('8 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
