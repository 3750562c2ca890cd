"""A run as it goes, on the screen of the command line."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from routepool.cli import exit_code, screen
from routepool.runs.reporter import Reporter
from routepool.training import InterruptedTrainingError, ProgressBar, StartReport


class ScreenReporter(Reporter):
    """Says on the screen what a run does."""

    say = staticmethod(screen.say)
    note = staticmethod(screen.note)
    counted = staticmethod(screen.counted)

    def epochs(self, number: int, score: str) -> "TrainingScreen":
        return TrainingScreen(number, score)


class TrainingScreen(ProgressBar):
    """The bar of training; its lines go to standard output, where they can be kept.

    Args:
        epochs: the most there can be; training may well stop before.
        score: what the dev score is called.
    """

    def __init__(self, epochs: int, score: str) -> None:
        super().__init__(epochs, score, console=screen.err)

    def tell(self, line: str) -> None:
        # On one terminal, through the bar's own console: it knows how to keep the bar below.
        tell = screen.note if screen.out.is_terminal else screen.say
        tell(line)

    def on_start(self, report: StartReport) -> None:
        for coverage in report.coverage:
            self.tell(f"word vectors, {coverage}")
        if report.truncation.words:
            self.tell(report.truncation.line())
        if report.calibrating:
            self.tell(
                f"dev set: {report.stopping} texts decide when to stop, {report.calibrating} others calibrate; epochs "
                "show the score of the first, the last lines that of all"
            )


@contextmanager
def ended_by_signal() -> Iterator[None]:
    """A run that is stopped has said so: the command leaves with the exit code of the signal."""
    try:
        yield
    except InterruptedTrainingError as error:
        screen.note(str(error))
        raise typer.Exit(exit_code(error)) from error
