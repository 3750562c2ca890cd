"""Explanations and audits as PNG or SVG: table 4 as a map of words and parts, figure 1 as routes that tighten."""

from collections.abc import Sequence
from typing import Any, BinaryIO

import matplotlib
from matplotlib.figure import Figure

from routepool.errors import InputError
from routepool.explaining.audits import LEAVE_ONE_OUT, RANDOM, RARE, SEARCH, Audit
from routepool.explaining.explanation import Explanation, Span
from routepool.explaining.outputs import PICTURES
from routepool.explaining.page import HEIGHT, draw_rounds
from routepool.printable import printable

_FOR, _AGAINST, _PART = "#2f7bd8", "#e0762b", "#6b4fd0"
_MOST_WORDS = 80  # of a picture that can be read
_BOUNDS = {RANDOM: ":", RARE: "-.", LEAVE_ONE_OUT: "--", SEARCH: "--"}
_MEASURES = {"comprehensiveness": "without the best words", "sufficiency": "with only the best words", "flips": "flips"}


@PICTURES.register("explanation")
def draw_explanation(file: BinaryIO, shown: Explanation, *, form: str) -> None:
    """Scores as bars, weights as a map below them; of a document, its sentences and the words of the weightiest."""
    blocks: list[tuple[Sequence[Span], str]] = [(shown.words, "words")]
    if shown.sentences:
        best = shown.weightiest_sentence()
        blocks = [(shown.sentences, "sentences"), (shown.words_of(best), f"words of sentence {best + 1}")]
    widest = max((min(len(spans), _MOST_WORDS) for spans, _ in blocks), default=1)
    figure = Figure(figsize=(max(5.0, 0.45 * widest + 1.5), 3.4 * len(blocks)), layout="constrained")
    axes = figure.subplots(2 * len(blocks), 1, squeeze=False, height_ratios=[3, 2] * len(blocks))[:, 0]
    for place, (spans, title) in enumerate(blocks):
        _block(axes[2 * place], axes[2 * place + 1], shown, spans[:_MOST_WORDS], title)
    probability = 100 * shown.probabilities[shown.label]
    figure.suptitle(_plain(f"{shown.label} ({probability:.1f} %), {shown.method}"))
    _save(figure, file, form)


@PICTURES.register("rounds")
def draw_routes(file: BinaryIO, shown: Explanation, *, form: str) -> None:
    """One panel for each round: words below, parts above, the wider an edge the more goes that way."""
    words = shown.words_of(shown.weightiest_sentence()) if shown.sentences else shown.words
    drawings = draw_rounds(shown, words[:_MOST_WORDS])
    if not drawings:
        raise InputError("this explanation holds no rounds to draw; explain the text with its iterations")
    width = max(4.0, drawings[0].width / 80)
    figure = Figure(figsize=(width, 2.2 * len(drawings)), layout="constrained")
    for axis, drawing in zip(figure.subplots(len(drawings), 1, squeeze=False)[:, 0], drawings, strict=True):
        for edge in drawing.edges:
            axis.plot([edge.start, edge.end], [0, HEIGHT], color=_PART, linewidth=edge.width, alpha=edge.opacity)
        for mark in drawing.words:
            axis.text(mark.place, -14, _plain(mark.name), ha="center", va="top", fontsize=7, rotation=30)
        for mark in drawing.parts:
            axis.plot([mark.place], [HEIGHT], "o", color=_PART, markersize=14)
            axis.text(mark.place, HEIGHT, mark.name, ha="center", va="center", color="white", fontsize=8)
        axis.set(title=f"round {drawing.number}", ylim=(-45, HEIGHT + 20), xlim=(0, drawing.width))
        axis.set_axis_off()
    _save(figure, file, form)


@PICTURES.register("audit")
def draw_audit(file: BinaryIO, found: Audit, *, form: str) -> None:
    """One row of panels for each removal: loss of probability without the best words and with only them, flips."""
    removals = list(found.empty_loss)
    figure = Figure(figsize=(12, 3.4 * len(removals)), layout="constrained")
    axes = figure.subplots(len(removals), len(_MEASURES), squeeze=False)
    percent = [100 * share for share in found.shares]
    for row, removal in enumerate(removals):
        for axis, (measure, title) in zip(axes[row], _MEASURES.items(), strict=True):
            for line in (one for one in found.rows if one.removal == removal):
                values = getattr(line, measure)
                style = _BOUNDS.get(line.order, "-")
                colour = "0.5" if line.order in _BOUNDS else None
                axis.plot(percent, [one.value for one in values], style, label=line.order, color=colour)
            axis.set(
                title=f"{removal}: {title}", xlabel="% of the words", ylabel="share" if measure == "flips" else "loss"
            )
    axes[0][-1].legend(fontsize=7)
    _save(figure, file, form)


def _block(bars: Any, cells: Any, shown: Explanation, spans: Sequence[Span], title: str) -> None:
    names = [_plain(shown.of(span)[:14]) for span in spans] if "words" in title else range(1, len(spans) + 1)
    places = range(len(spans))
    bars.bar(places, [span.score for span in spans], color=[_AGAINST if span.score < 0 else _FOR for span in spans])
    bars.set(title=title, ylabel="score", xticks=[], xlim=(-0.5, len(spans) - 0.5))
    if spans:
        colours = matplotlib.colors.LinearSegmentedColormap.from_list("coupling", ["#ffffff", _PART])
        table = list(zip(*(span.weights for span in spans), strict=True))
        cells.imshow(table, aspect="auto", cmap=colours, vmin=0, vmax=max(map(max, table)) or 1)
        cells.set_yticks(range(len(table)), [str(row + 1) for row in range(len(table))])
    cells.set_xticks(places, names, rotation=60, ha="right", fontsize=8)
    cells.set_ylabel(_plain(shown.part) if len(shown.parts) > 1 else "weights")


def _plain(text: str) -> str:
    """Text that is drawn as it stands: `$` would begin a formula."""
    return printable(text).replace("$", r"\$")


def _save(figure: Figure, file: BinaryIO, form: str) -> None:
    figure.savefig(file, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
