"""Results -> pictures: figure 2, table 4, the curves of training. PNG by matplotlib, and table 4 as HTML too."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from reproduce import paper
from reproduce.comparing import Floats
from reproduce.formatting import DATA, NAMES
from reproduce.plan import CAPSULES, FIGURE_2, ITERATIONS, MAIN, SENTENCES
from reproduce.reading import Results
from reproduce.tables import couplings

_COLOURS = ("#d0342c", "#2f7bd8", "#6b4fd0", "#e0a02b", "#3c9a5f")
_NOISE = "#9a9a9a"
_CAPSULE = "#2f5fd8"


def drawable(results: Results) -> list[str]:
    """The pictures that have results, by file name."""
    there = {
        "figure-2.png": any(results.found("sst2", variant.name) for variant in FIGURE_2.values()),
        "curves.png": any(results.found(data, name) for data in SENTENCES for name in MAIN),
        "table-4.png": couplings(results) is not None,
        "table-4.html": couplings(results) is not None,
    }
    return [name for name, has in there.items() if has]


def draw_all(results: Results, folder: Path) -> None:
    """Draw what can be drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    makers = {
        "figure-2.png": draw_rounds,
        "curves.png": draw_curves,
        "table-4.png": draw_couplings,
        "table-4.html": write_couplings,
    }
    for name in drawable(results):
        makers[name](results, folder / name)


def draw_rounds(results: Results, path: Path) -> None:
    """Test accuracy by rounds, a line for each number of capsules; the bars are a standard deviation of the seeds."""
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axis = figure.subplots()
    for place, capsules in enumerate(CAPSULES):
        values = {rounds: results.values("sst2", FIGURE_2[rounds, capsules].name, "test") for rounds in ITERATIONS}
        there = [rounds for rounds in ITERATIONS if len(values[rounds])]
        means = [100 * values[rounds].mean() for rounds in there]
        bars = [100 * values[rounds].std(ddof=1) if len(values[rounds]) > 1 else 0.0 for rounds in there]
        beside = [rounds + 0.06 * (place - 1.5) for rounds in there]  # so that bars do not hide one another
        label = f"{capsules} capsules" if capsules > 1 else "1 capsule: rounds change nothing, this is noise"
        colour = _COLOURS[place] if capsules > 1 else _NOISE
        line = axis.errorbar(beside, means, yerr=bars, marker="o", capsize=3, color=colour, label=label)
        line.lines[0].set_linestyle("-" if capsules > 1 else ":")
    axis.set(xlabel="rounds of routing", ylabel="SST-2 test accuracy, %", xticks=ITERATIONS)
    figure.legend(loc="outside upper center", ncols=2, fontsize=8)
    _save(figure, path)


def draw_curves(results: Results, path: Path) -> None:
    """Dev accuracy by epoch: each seed, pale, and the best so far in the mean over seeds."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    for axis, data in zip(figure.subplots(1, len(SENTENCES)), SENTENCES, strict=True):
        for colour, name in zip(_COLOURS, MAIN, strict=True):
            curves = [[100 * point["score"] for point in found["curve"]] for found in results.found(data, name)]
            for heights in curves:
                axis.plot(range(1, len(heights) + 1), heights, color=colour, alpha=0.15, linewidth=0.7)
            if curves:
                best = best_so_far(curves)
                axis.plot(range(1, len(best) + 1), best, color=colour, linewidth=1.8, label=NAMES[name])
        axis.set(title=DATA[data], xlabel="epoch", ylabel="dev accuracy, %")
        axis.xaxis.get_major_locator().set_params(integer=True)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    _save(figure, path)


def best_so_far(curves: Sequence[Sequence[float]]) -> Floats:
    """The mean over curves of the best until each epoch; a curve that has ended keeps its best.

    >>> best_so_far([[1, 3, 2], [5]]).tolist()
    [3.0, 4.0, 4.0]
    """
    epochs = max(map(len, curves))
    bests = [np.maximum.accumulate(np.pad(curve, (0, epochs - len(curve)), mode="edge")) for curve in curves]
    means: Floats = np.mean(np.array(bests, dtype=np.float64), axis=0)
    return means


def draw_couplings(results: Results, path: Path) -> None:
    """Table 4 as two maps: the deeper the colour of a word, the more of it goes to the capsule of the row."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axis, (title, values) in zip(figure.subplots(2, 1), _both(results), strict=True):
        axis.imshow(values, aspect="auto", cmap="Blues", vmin=0, vmax=1)
        for row, of_row in enumerate(values):
            for column, value in enumerate(of_row):
                colour = "white" if value > 0.6 else "black"
                axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
        axis.set(title=title, ylabel="capsule")
        axis.set_yticks(range(len(values)), [str(row + 1) for row in range(len(values))])
        axis.set_xticks(range(len(paper.WORDS)), paper.WORDS, fontsize=8)
    _save(figure, path)


def write_couplings(results: Results, path: Path) -> None:
    """Table 4 as a page."""
    parts = []
    for title, values in _both(results):
        rows = "".join(f"<tr><th>{row + 1}</th>{_words(of_row)}</tr>\n" for row, of_row in enumerate(values))
        parts.append(f"<h2>{escape(title)}</h2>\n<table>\n{rows}</table>\n")
    head = '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Table 4</title>\n'
    style = "<style>body{font-family:sans-serif} td{padding:.2em .4em;text-align:center} small{display:block}</style>\n"
    path.write_text(head + style + "".join(parts) + "</html>\n", encoding="utf-8")


def _words(couplings_: Any) -> str:
    cells = zip(paper.WORDS, couplings_, strict=True)
    return "".join(
        f'<td style="background:{_CAPSULE}{round(255 * min(1.0, value)):02x};'
        f'color:{"white" if value > 0.5 else "black"}">{escape(word)}<small>{value:.2f}</small></td>'
        for word, value in cells
    )


def _both(results: Results) -> list[tuple[str, Floats]]:
    ours = couplings(results)
    assert ours is not None  # what cannot be drawn is not asked for
    return [("the paper's table 4", np.array(paper.COUPLINGS)), ("ours", ours)]


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="png", dpi=130, metadata={"Software": None})
