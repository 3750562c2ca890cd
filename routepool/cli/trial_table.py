"""The trials of a search as they go: on a terminal a table that grows, elsewhere a line for each."""

from collections.abc import Sequence
from typing import Self

from rich.live import Live
from rich.table import Table

from routepool.cli import screen
from routepool.printable import one_line, plural
from routepool.training import duration
from routepool.tuning.search import TrialWatcher
from routepool.tuning.trials import FAILED, FINISHED, RUNNING, Attempt, Outcome, Trial, best_of, ranked, shown

_MOST_ROWS = 20  # that a terminal shows while the search goes on


class TrialTable(TrialWatcher):
    """Shows trials, best first; use as a context.

    Args:
        score: the name of the dev score.
        names: of the searched settings.
        trials: that ended before.
    """

    def __init__(self, score: str, names: Sequence[str], trials: Sequence[Trial]) -> None:
        self._score, self._names, self._trials = score, names, [*trials]
        self._live = Live(console=screen.out, transient=True, auto_refresh=False) if screen.out.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def under_way(self, attempt: Attempt, epochs: int = 0, score: float | None = None) -> None:
        """A trial has begun, or an epoch of it was scored."""
        if self._live:
            trial = Trial(number=attempt.number, settings=attempt.settings, state=RUNNING, score=score, epochs=epochs)
            self._live.update(self._table([trial]), refresh=True)

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        """The trial under way is over."""
        before = best_of(self._trials)
        trial = Trial(number=attempt.number, settings=attempt.settings, **vars(outcome))
        self._trials.append(trial)
        if self._live:
            self._live.update(self._table([]), refresh=True)
        if self._live is None or trial.state == FAILED:
            better = ", the best so far" if trial == best_of(self._trials) and trial != before else ""
            screen.say(self._line(trial) + better)

    def show(self) -> None:
        """Print all trials."""
        screen.table("", self._columns(), map(self._row, ranked(self._trials)))

    def _columns(self) -> tuple[str, ...]:
        return ("", "trial", *self._names, f"dev {self._score}", "epochs", "time", "")

    def _row(self, trial: Trial) -> tuple[str, ...]:
        mark = "*" if trial == best_of(self._trials) else ""
        settings = [shown(trial.settings[name]) for name in self._names]
        score = "-" if trial.score is None else f"{trial.score:.4f}"
        state = trial.why if trial.state == FINISHED else trial.state  # why: which trial it repeats
        return (mark, str(trial.number), *settings, score, str(trial.epochs), duration(trial.seconds), state)

    def _table(self, under_way: Sequence[Trial]) -> Table:
        table = Table(box=None, pad_edge=False)
        for column in self._columns():
            table.add_column(one_line(column), justify="right", no_wrap=True)
        best_first = ranked(self._trials)
        for trial in [*best_first[:_MOST_ROWS], *under_way]:
            table.add_row(*map(one_line, self._row(trial)))
        if len(best_first) > _MOST_ROWS:
            table.caption = f"and {len(best_first) - _MOST_ROWS} more"
        return table

    def _line(self, trial: Trial) -> str:
        settings = ", ".join(f"{name} {shown(value)}" for name, value in trial.settings.items())
        if trial.state == FAILED:
            return f"trial {trial.number}: {settings}: failed, {trial.why}"
        how = trial.why or f"{plural(trial.epochs, 'epoch')} in {duration(trial.seconds)}"
        result = f"dev {self._score} {trial.score:.4f}, {how}"
        return f"trial {trial.number}: {settings}: {'' if trial.state == FINISHED else f'{trial.state}, '}{result}"
