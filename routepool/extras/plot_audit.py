"""The curves of an audit as PNG or SVG."""

from typing import BinaryIO

from matplotlib.figure import Figure

from routepool.explaining.audits import LEAVE_ONE_OUT, RANDOM, RARE, SEARCH, Audit
from routepool.explaining.pictures import PICTURES

_BOUNDS = {RANDOM: ":", RARE: "-.", LEAVE_ONE_OUT: "--", SEARCH: "--"}
_MEASURES = {"comprehensiveness": "without the best words", "sufficiency": "with only the best words", "flips": "flips"}


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
    figure.savefig(file, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
