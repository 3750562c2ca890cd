"""A search for settings as PNG: how the score grew, and what each setting did to it."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from routepool.tuning.trials import DRAWINGS, FINISHED, PRUNED, Trial, best_of, shown

_DOT, _GIVEN_UP, _BEST = "#2f7bd8", "#b0b0b0", "#e0762b"
_COLUMNS = 4  # panels side by side


@DRAWINGS.register("history")
def draw_history(file: Path | IO[bytes], score: str, trials: Sequence[Trial]) -> None:
    """The score of every trial in the order they were begun, and the best so far."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axis = figure.subplots()
    _dots(axis, trials, [trial.number for trial in trials])
    finished = [trial for trial in trials if trial.state == FINISHED]
    best = list(accumulate((trial.score or 0.0 for trial in finished), max))
    axis.step([trial.number for trial in finished], best, where="post", color=_BEST, label="best so far")
    axis.set(xlabel="trial", ylabel=f"dev {score}")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend()
    figure.savefig(file, format="png", dpi=150)


@DRAWINGS.register("settings")
def draw_settings(file: Path | IO[bytes], score: str, trials: Sequence[Trial]) -> None:
    """A panel for each setting: its values, and the score of every trial that had them."""
    names = list(trials[0].settings)
    columns = min(_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(3.6 * columns, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).flatten()
    for axis, name in zip(axes, names, strict=False):
        _panel(axis, name, trials)
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    for axis in axes[::columns]:
        axis.set_ylabel(f"dev {score}")
    figure.savefig(file, format="png", dpi=150)


def _panel(axis: Any, name: str, trials: Sequence[Trial]) -> None:
    values = [trial.settings[name] for trial in trials]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if numbers and len(set(values)) > 6:
        places: Sequence[float] = values
        if min(values) > 0 and max(values) / min(values) > 20:
            axis.set_xscale("log")
    else:  # few values stand side by side, each with its name
        known = sorted(set(values)) if numbers else list(dict.fromkeys(shown(value) for value in values))
        places = [known.index(value if numbers else shown(value)) for value in values]
        axis.set_xticks(range(len(known)), [shown(value).replace("$", r"\$") for value in known])
        axis.set_xlim(-0.5, len(known) - 0.5)
    _dots(axis, trials, places)
    axis.set_title(name)


def _dots(axis: Any, trials: Sequence[Trial], places: Sequence[float]) -> None:
    best = best_of(trials)
    for state, colour, label in ((PRUNED, _GIVEN_UP, "given up"), (FINISHED, _DOT, "finished")):
        chosen = [(place, trial.score) for place, trial in zip(places, trials, strict=True) if trial.state == state]
        if chosen:
            axis.scatter(*zip(*chosen, strict=True), color=colour, alpha=0.8, label=label)
    if best is not None:
        axis.scatter([places[list(trials).index(best)]], [best.score], marker="*", s=160, color=_BEST, label="best")
