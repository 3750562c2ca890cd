"""How a run is shown on the screen."""

from routepool.cli import screen
from routepool.runs.reporter import Reporter
from routepool.training import ProgressBar, StartReport


class ScreenReporter(Reporter):
    """Shows on the screen what a run does."""

    say = staticmethod(screen.say)
    note = staticmethod(screen.note)
    counted = staticmethod(screen.counted)

    def epochs(self, number: int, score: str) -> "TrainingScreen":
        return TrainingScreen(number, score, console=screen.err)


class TrainingScreen(ProgressBar):
    """The bar of training, whose lines go to standard output, where they can be kept."""

    def say(self, line: str) -> None:
        # On a terminal through the console of the bar, which keeps the bar below the line.
        (screen.note if screen.out.is_terminal else screen.say)(line)

    def on_start(self, report: StartReport) -> None:
        for coverage in report.coverage:
            self.say(f"word vectors, {coverage}")
        if report.truncation.words:
            self.say(report.truncation.line())
        if report.calibrating:
            self.say(
                f"dev set: {report.stopping} texts decide when to stop, {report.calibrating} others calibrate; epochs "
                "show the score of the first, the last lines that of all"
            )
