"""Does a difference grow with the length of the texts? Two variants compared in each quarter of the test set."""

import numpy as np
from numpy.typing import NDArray

from reproduce.comparing import Arm, compare, holm, resample_texts
from reproduce.families import Compared
from reproduce.formatting import Table, points, probability
from reproduce.plan import DOCUMENTS
from reproduce.reading import Results

POOLINGS = {"sst2": ("max", "mean"), "sst1": ("max", "mean"), DOCUMENTS: ("max-flat", "mean-flat")}
_NAMES = ("shortest quarter", "second", "third", "longest quarter")
GROWTH = "longest less shortest quarter"


def by_length(results: Results, data: str) -> list[Compared]:
    """Max less average pooling in each quarter of the texts by words, and how much more in the last than the first."""
    pair = POOLINGS[data]
    lacking = results.lacking((data, name) for name in pair)
    if lacking:
        return [Compared(data, name, "", None, 1.0, lacking) for name in (*_NAMES, GROWTH)]
    quarters = _quarters(results, data)
    right = [results.right(data, name) for name in pair]
    arms = [_arms(right, quarters == place, seed=place) for place in range(4)]
    growth = [
        Arm(long.accuracies - short.accuracies, long.resampled - short.resampled)
        for long, short in zip(arms[-1], arms[0], strict=True)
    ]
    found = [compare(*two) for two in [*arms, growth]]
    adjusted = holm([one.p for one in found])
    return [
        Compared(data, name, "", one, p, "") for name, one, p in zip((*_NAMES, GROWTH), found, adjusted, strict=True)
    ]


def _quarters(results: Results, data: str) -> NDArray[np.int64]:
    words = np.array(results.labels(data)["words"])
    return np.searchsorted(np.quantile(words, (0.25, 0.5, 0.75)), words)


def _arms(right: list[NDArray[np.bool_]], chosen: NDArray[np.bool_], *, seed: int) -> list[Arm]:
    parts = [of_arm[:, chosen] for of_arm in right]
    resampled = resample_texts(np.vstack(parts), seed=seed)
    first = len(parts[0])
    return [Arm(parts[0].mean(axis=1), resampled[:, :first]), Arm(parts[1].mean(axis=1), resampled[:, first:])]


def length_table(results: Results, data: str, compared: list[Compared]) -> Table:
    """A row for each quarter, and one for the growth."""
    header = ["", "words", "texts", "max less average, points", "p, Holm", "max is"]
    return Table(header, [[one.one, *_cells(results, data, place, one)] for place, one in enumerate(compared)])


def _cells(results: Results, data: str, place: int, one: Compared) -> list[str]:
    if one.found is None:
        return ["-", "-", "-", "-", one.verdict]
    own = np.array(results.labels(data)["words"])[_quarters(results, data) == place]
    size = [f"{own.min()} to {own.max()}", f"{len(own):,}"] if len(own) else ["-", "-"]
    return [*size, points(one.found), probability(one.adjusted_p), one.verdict]
