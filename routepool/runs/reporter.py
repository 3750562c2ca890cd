"""Where a run says what it does: in the log, or where a subclass shows it."""

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from routepool.training import EpochReport, Hook

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Reporter:
    """Writes to the log; override a method to show its lines elsewhere."""

    def say(self, text: str) -> None:
        """Say what is done, in one line."""
        logger.info(text)

    def note(self, text: str) -> None:
        """Note what was skipped or may be wrong, in one line."""
        logger.warning(text)

    def epochs(self, number: int, score: str) -> AbstractContextManager[Hook]:
        """A hook that shows training: at most `number` epochs, with a dev score of the name `score`."""
        return nullcontext(_LoggedEpochs(score))

    def counted(self, items: Iterable[T]) -> Iterable[T]:
        """Yield the items and show their count."""
        return items


class _LoggedEpochs(Hook):
    def __init__(self, score: str) -> None:
        self._score = score

    def on_epoch(self, report: EpochReport) -> None:
        logger.info("epoch %d: loss %.4f, dev %s %.4f", report.epoch + 1, report.loss, self._score, report.score)
