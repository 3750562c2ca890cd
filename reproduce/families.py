"""Which variants are compared with which: each family is one table, and Holm's adjustment is over all of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reproduce.comparing import Estimate, compare, estimate, holm, verdict
from reproduce.plan import CAPSULES, FIGURE_2, ITERATIONS, MAIN, TABLE_3
from reproduce.reading import Results

Pair = tuple[str, str]

SENTENCE_PAIRS: list[Pair] = [
    *(("routing", other) for other in TABLE_3 if other != "routing"),
    ("max", "mean"),
    ("attention", "mean"),
    ("reverse-routing", "multi-hop"),
]
TUNED_PAIRS: list[Pair] = [("tuned/routing", f"tuned/{other}") for other in MAIN if other != "routing"]
DOCUMENT_PAIRS: list[Pair] = [
    *((f"{name}-hierarchical", f"{name}-flat") for name in MAIN),
    *(("routing-hierarchical", f"{other}-hierarchical") for other in MAIN if other != "routing"),
    ("max-flat", "mean-flat"),
    ("attention-hierarchical", "mean-hierarchical"),
]
PAPER_DOCUMENT_PAIRS: list[Pair] = [("routing", other) for other in MAIN if other != "routing"]


@dataclass(frozen=True)
class Compared:
    """One comparison of a family.

    Args:
        data: the set.
        one: variant, or what is estimated.
        other: the variant that it is compared with.
        found: the difference, first less second; None while runs are missing.
        adjusted_p: by Holm, over the whole family.
        lacking: how many runs there are, while some are missing.
    """

    data: str
    one: str
    other: str
    found: Estimate | None
    adjusted_p: float
    lacking: str

    @property
    def verdict(self) -> str:
        """better, worse or undecided; or how many runs there are."""
        return self.lacking if self.found is None else verdict(self.found, self.adjusted_p)


def family(results: Results, data: str, pairs: Sequence[Pair]) -> list[Compared]:
    """Every pair compared on one set; those that lack runs count in Holm's adjustment too."""
    lacking = [results.lacking((data, name) for name in pair) for pair in pairs]
    found = [
        None if lack else compare(results.arm(data, one), results.arm(data, other))
        for lack, (one, other) in zip(lacking, pairs, strict=True)
    ]
    adjusted = holm([1.0 if one is None else one.p for one in found])
    return [
        Compared(data, *pair, one, p, lack) for pair, one, p, lack in zip(pairs, found, adjusted, lacking, strict=True)
    ]


POOLED = [number for number in CAPSULES if number > 1]  # with one capsule rounds change nothing
ROUND_TESTS: dict[str, Callable[[int], float]] = {
    "a round more (slope)": lambda rounds: (rounds - 3) / 10,
    "two to five rounds less one round": lambda rounds: -1 if rounds == 1 else 1 / 4,
    "three rounds less the other four": lambda rounds: 1 if rounds == 3 else -1 / 4,
}


def rounds_family(results: Results) -> list[Compared]:
    """Figure 2 as three numbers, each the mean over 2 to 4 capsules."""
    cells = [(rounds, capsules) for capsules in POOLED for rounds in ITERATIONS]
    names = [FIGURE_2[cell].name for cell in cells]
    lacking = results.lacking(("sst2", name) for name in names)
    found: list[Estimate | None] = [None] * len(ROUND_TESTS)
    if not lacking:
        arms = [results.arm("sst2", name) for name in names]
        found = [estimate(arms, [of(rounds) / len(POOLED) for rounds, _ in cells]) for of in ROUND_TESTS.values()]
    adjusted = holm([1.0 if one is None else one.p for one in found])
    return [
        Compared("sst2", name, "", one, p, lacking) for name, one, p in zip(ROUND_TESTS, found, adjusted, strict=True)
    ]
