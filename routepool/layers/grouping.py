"""Rows of near-equal length together, so that little padding is computed."""

# N rows  T tokens

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# A pass through an encoder costs about as much as this many tokens, however few it reads (benchmarks/encoder.py): a
# group must save more padding than that to be worth a pass of its own.
PASS_COST = 96


class Group(NamedTuple):
    """Rows to be computed in one pass, cut at the longest of them."""

    rows: Tensor  # indices into N
    longest: int


def group_rows(mask: Tensor, pass_cost: int = PASS_COST) -> list[Group]:
    """Split the non-empty rows of a mask (N, T), the longest first, so that the sum of longest x rows + cost is least.

    >>> mask = torch.arange(200) < torch.tensor([[3], [200], [0], [2]])
    >>> [(group.rows.tolist(), group.longest) for group in group_rows(mask)]
    [([1], 200), ([0, 3], 3)]
    """
    place = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    ends, order = (mask * place).amax(1).sort(descending=True, stable=True)
    lengths, counts = np.unique(ends.numpy(force=True), return_counts=True)
    lengths, counts = lengths[::-1], counts[::-1]
    if len(lengths) and lengths[-1] == 0:
        lengths, counts = lengths[:-1], counts[:-1]
    rows_before = np.concatenate([[0], counts.cumsum()])
    cuts = _best_cuts(lengths, rows_before, pass_cost)
    return [Group(order[rows_before[start] : rows_before[end]], int(lengths[start])) for start, end in pairwise(cuts)]


def _best_cuts(lengths: NDArray[np.int64], rows_before: NDArray[np.int64], pass_cost: int) -> list[int]:
    """Where to cut the falling lengths, by dynamic programming over the start of the last group."""
    cost = np.zeros(len(lengths) + 1)
    start_of_last = np.zeros(len(lengths) + 1, dtype=np.int64)
    for end in range(1, len(lengths) + 1):
        rows = rows_before[end] - rows_before[:end]
        candidates = cost[:end] + lengths[:end] * rows + pass_cost
        start_of_last[end] = candidates.argmin()
        cost[end] = candidates.min()
    cuts = [len(lengths)]
    while cuts[-1] > 0:
        cuts.append(int(start_of_last[cuts[-1]]))
    return cuts[::-1]
