"""Who says what a run does: the log, unless somebody shows it."""

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from routepool.training import EpochReport, Hook

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Reporter:
    """Writes to the log; override what is to be shown elsewhere."""

    def say(self, text: str) -> None:
        """One line of what is done."""
        logger.info(text)

    def note(self, text: str) -> None:
        """One line beside it: what was skipped, or may be amiss."""
        logger.warning(text)

    def epochs(self, number: int, score: str) -> AbstractContextManager[Hook]:
        """What watches the training: of at most so many epochs, by a dev score of that name."""
        return nullcontext(_LoggedEpochs(score))

    def counted(self, items: Iterable[T]) -> Iterable[T]:
        """The same items, counted as they pass."""
        return items


class _LoggedEpochs(Hook):
    def __init__(self, score: str) -> None:
        self._score = score

    def on_epoch(self, report: EpochReport) -> None:
        logger.info("epoch %d: loss %.4f, dev %s %.4f", report.epoch + 1, report.loss, self._score, report.score)
