"""A bar for those who train from Python."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from routepool.training.hooks import EpochReport, Hook, StepReport


class ProgressBar(Hook):
    """Epoch, loss, dev score and the time left at most, on standard error; use as a context.

    On a terminal it is a bar; anywhere else a line for each epoch.

    Args:
        epochs: the most there can be; training may well stop before.
    """

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs
        self._console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("loss {task.fields[loss]}  dev {task.fields[dev]}"),
            TimeRemainingColumn(compact=True),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("reading", total=None, loss="-", dev="-")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def on_step(self, report: StepReport) -> None:
        self._bar.update(
            self._task,
            description=f"epoch {report.epoch + 1}/{self._epochs}",
            total=self._epochs * report.batches,
            completed=report.epoch * report.batches + report.index + 1,
            loss=f"{report.loss:.3f}",
        )

    def on_epoch(self, report: EpochReport) -> None:
        self._bar.update(self._task, dev=f"{report.score:.3f}")
        if self._bar.disable:
            self._console.print(f"epoch {report.epoch + 1}: loss {report.loss:.4f}, dev {report.score:.4f}")
