"""Audits and reports of capsules as tables on the screen."""

from collections.abc import Sequence

from routepool.cli import screen
from routepool.explaining import Audit, CapsuleReport
from routepool.explaining.audits import Measure
from routepool.explaining.couplings import Taken

_SHOWN = 8  # words of a capsule


def show_audit(found: Audit) -> None:
    """One table for each way of removing words."""
    screen.say(
        f"{found.texts} texts. Comprehensiveness: what the label's probability loses without the best words, more is "
        "better; sufficiency: with only them, less is better. 1 is the loss of an empty text. Flips: other predictions "
        "without the best words, in %. Intervals are of 95 %."
    )
    for removal, loss in found.empty_loss.items():
        rows = [
            (
                row.order,
                _interval(row.normal_comprehensiveness),
                _interval(row.normal_sufficiency),
                *(f"{100 * flips.value:.1f}" for flips in row.flips),
            )
            for row in found.rows
            if row.removal == removal
        ]
        flips = (f"flips at {100 * share:.0f} %" for share in found.shares)
        title = f"removal: {removal} (an empty text loses {loss:.3f})"
        screen.table(title, ("order", "comprehensiveness", "sufficiency", *flips), rows)


def show_report(found: CapsuleReport) -> None:
    """Words, classes and nulls."""
    for view in found.capsules:
        classes = ", ".join(f"{label} {effect:+.2f}" for label, effect in view.classes.items())
        name = f"{found.part} {view.number} of {view.level}"
        screen.say(f"{name}: {100 * view.share:.1f} % of the couplings; without it {classes}")
        for name, taken in (("words", view.words), ("phrases", view.phrases)):
            if taken:
                screen.say(f"  {name}: {_listed(taken)}")
    screen.say(f"{found.texts} texts. Classes: what a label's log-odds lose when the {found.part} is set to zero.")
    rows = [(one.name, f"{100 * one.accuracy:.1f}", f"{100 * one.changed:.1f}") for one in found.by_iterations]
    title = f"dynamic? other numbers of iterations, trained with {found.iterations}, in %"
    screen.table(title, ("iterations", "accuracy", "changed"), rows)
    rows = [(one.name, f"{100 * one.accuracy:.1f}", f"{100 * one.changed:.1f}") for one in found.by_coupling]
    screen.table("dynamic? other couplings of the words, in %", ("coupling", "accuracy", "changed"), rows)
    one = found.variance
    shares = [f"{100 * share:.1f}" for share in (one.by_word, one.by_position, one.by_both, one.context)]
    screen.table(
        "variance of the coupling, in %", ("explained by", "word", "position", "both", "context"), [("", *shares)]
    )
    screen.table(
        "redundant? parts of a text's vector; probes in %",
        ("", "CKA", "cosine", "whole", "alone", "without one"),
        [
            (
                part.name,
                f"{part.cka:.2f}",
                f"{part.cosine:.2f}",
                f"{100 * part.whole:.1f}",
                _range(part.alone),
                _range(part.without),
            )
            for part in found.redundancy
        ],
    )


def _interval(measure: Measure) -> str:
    return f"{measure.value:.2f} ({measure.low:.2f} to {measure.high:.2f})"


def _range(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.1f} to {100 * max(shares):.1f}" if shares else "-"


def _listed(taken: Sequence[Taken]) -> str:
    return ", ".join(f"{one.words} ({one.times_share:.1f}x)" for one in taken[:_SHOWN])
