"""How many times as long one variant takes as another, as `reproduce.timing` measured it."""

import numpy as np

from reproduce.comparing import Estimate, paired
from reproduce.reading import Results

NOT_TIMED = "not yet measured (no epoch was timed)"


def speed(results: Results, data: str, one: str, other: str) -> Estimate | None:
    """The logarithm of one variant's seconds an epoch less that of the other's, by Student's t over the rounds."""
    taken = results.epoch_seconds(data)
    return paired(np.log(taken[one]), np.log(taken[other])) if {one, other} <= set(taken) else None


def ratio(found: Estimate | None) -> str:
    """A difference of logarithms as how many times one is the other."""
    if found is None:
        return NOT_TIMED
    value, low, high = (np.exp(end) for end in (found.difference, found.low, found.high))
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def seconds(results: Results, data: str, variant: str) -> str:
    """Of an epoch: the median of the rounds."""
    taken = results.epoch_seconds(data)
    return f"{np.median(taken[variant]):.1f}" if variant in taken else "-"
