"""Curves for TensorBoard: loss and learning rate of every step, the dev score of every epoch."""

from pathlib import Path
from typing import Self

from torch.utils.tensorboard import SummaryWriter

from routepool.training import LOGGERS, EpochReport, Hook, StepReport


@LOGGERS.register("tensorboard")
class TensorBoard(Hook):
    """Writes an event file into a folder: `tensorboard --logdir runs` shows it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, TensorBoard(Path(folder)) as board:
    ...     board.on_step(StepReport(1, 0, 0, batches=9, examples=64, loss=0.7, rate=1e-3))
    ...     [path.name.split(".")[0] for path in Path(folder).iterdir()]
    ['events']
    """

    def __init__(self, folder: Path) -> None:
        self._writer = SummaryWriter(str(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()  # it writes from a thread of its own

    def on_step(self, report: StepReport) -> None:
        self._write(report.step, loss=report.loss, learning_rate=report.rate)

    def on_epoch(self, report: EpochReport) -> None:
        self._write(report.step, dev_score=report.score, examples_per_second=report.examples_per_second)
        self._writer.flush()

    def _write(self, step: int, **values: float) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
