"""Numbers and tables as Markdown has them."""

from dataclasses import dataclass

from reproduce.comparing import Estimate, Floats
from reproduce.paper import TITLES
from reproduce.plan import ALL_DOCUMENTS, DOCUMENTS, RATINGS

DATA = {**TITLES, DOCUMENTS: "IMDB reviews, 5,000", RATINGS: "IMDB ratings, 5,000", ALL_DOCUMENTS: "IMDB reviews, all"}
NAMES = {
    "routing": "standard routing",
    "max": "max pooling",
    "mean": "average pooling",
    "attention": "self-attention",
    "reverse-routing": "reverse routing",
    "released": "standard routing, released form",
    "cnn": "CNN-non-static, rerun",
    "multi-hop": "multi-hop attention",
    "routing-1": "control: routing, one iteration",
    "projected-max": "control: max of a projection",
    "projected-mean": "control: average of a projection",
    "fixed-query": "control: five learned queries",
    "routing-400": "control: routing, 5 x 80",
    "routing-on-minilm": "standard routing on MiniLM-L6, fine-tuned, 1 epoch",
}


@dataclass(frozen=True)
class Table:
    """Cells, ready to be shown.

    >>> print(Table(["name", "value"], [["one", "1"]]))
    | name | value |
    | --- | --- |
    | one | 1 |
    """

    header: list[str]
    rows: list[list[str]]

    def __str__(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def named(variant: str) -> str:
    """A variant as readers know it.

    >>> named("mean-flat"), named("tuned/max")
    ('average pooling, flat', 'max pooling, tuned')
    """
    for mark in ("flat", "hierarchical", "5-epochs"):
        if variant.endswith(f"-{mark}"):
            return f"{named(variant.removesuffix(f'-{mark}'))}, {mark.replace('-', ' ')}"
    if variant.startswith("tuned/"):
        return f"{named(variant.removeprefix('tuned/'))}, tuned"
    return NAMES.get(variant, variant)


def spread(values: Floats) -> str:
    """Mean and standard deviation in per cent; a dash for none, the value alone for one."""
    if len(values) == 0:
        return "-"
    mean = f"{100 * values.mean():.1f}"
    return mean if len(values) == 1 else f"{mean} ± {100 * values.std(ddof=1):.1f}"


def points(found: Estimate) -> str:
    """A difference of shares in percentage points, with its interval."""
    difference, low, high = (100 * value for value in (found.difference, found.low, found.high))
    return f"{difference:+.1f} ({low:+.1f} to {high:+.1f})"


def probability(p: float | None) -> str:
    """Three digits, which is what 10,000 draws can tell."""
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(done: int, planned: int) -> str:
    """How many of how many, where some are missing."""
    return str(done) if done == planned else f"{done} of {planned}"
