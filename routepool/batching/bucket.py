"""The paper's sliding bucket: batches of near-equal length that are random all the same."""

# N examples  B batch  K kinds of length

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from routepool.arrays import Integers
from routepool.batching.padding import Lengths, sort_by_length, table
from routepool.errors import InputError


@dataclass(frozen=True)
class Schedule:
    """How many examples a step sees, and how many neighbours in length they are drawn from.

    >>> Schedule(64, 5000).after_no_improvement(16, 8544)
    Schedule(batch_size=32, window=8544)
    """

    batch_size: int
    window: int

    def after_no_improvement(self, smallest_batch: int, number_of_examples: int) -> Self:
        """The schedule of the next epoch when the dev score did not get better.

        The batch is halved down to its bound, the window doubled up to the whole set. The window grows even when the
        batch no longer shrinks, as in the released code.
        """
        batch_size = max(self.batch_size // 2, min(smallest_batch, self.batch_size))
        window = min(2 * max(self.window, self.batch_size), number_of_examples)
        return type(self)(batch_size, window)


class SlidingBucket:
    """Which examples make up each batch of an epoch: a pure function of its arguments, with no state that runs on.

    The examples are sorted by length.

    - With replacement, as in the released code: each batch is drawn from a window that starts anywhere in that order
      and wraps around at its end. All examples are equally likely; an epoch sees 63 % of them, fewer if the window is
      only a few batches wide.
    - Without replacement: the order is cut into windows at random places, each window is shuffled and cut into
      batches, and these come in random order. Each example comes once an epoch. Batches differ by at most one in
      size. Examples of equal length change places every epoch.

    A window as long as the set is plain shuffling; a window smaller than a batch is widened to it.

    Args:
        lengths: of the examples, numbers or the tuples of `length_of`.
        seed: from 0.
        replacement: draw with replacement.

    >>> bucket = SlidingBucket([3, 9, 2, 8, 4, 7], seed=0, replacement=False)
    >>> [bucket.rows(0, index, batch_size=2, window=2).tolist() for index in range(bucket.number(2))]
    [[0, 2], [4, 5], [1, 3]]
    """

    def __init__(self, lengths: Lengths, *, seed: int, replacement: bool) -> None:
        if not len(lengths):
            raise InputError("batches need at least one example, got none")
        self.seed, self.replacement = seed, replacement
        self._table = table(lengths)
        self._sorted = sort_by_length(self._table)
        # A plan is as long as the epoch: made once for all its batches. Remembering it changes no result.
        self._plan = lru_cache(maxsize=1)(self._make_plan)

    def number(self, batch_size: int) -> int:
        """Batches in an epoch."""
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, got {batch_size!r}")
        return -(-len(self._table) // batch_size)

    def rows(self, epoch: int, index: int, *, batch_size: int, window: int) -> Integers:
        """The examples of one batch.

        Args:
            epoch: from 0.
            index: of the batch in its epoch, from 0 to `number(batch_size)` - 1.
            batch_size: examples in a batch.
            window: consecutive examples of the sorted order that a batch is drawn from.

        Returns:
            (B,) places among the examples.
        """
        number = self.number(batch_size)
        if not 0 <= index < number:
            raise InputError(f"an epoch has batches 0 to {number - 1}, got {index!r}")
        window = min(max(window, batch_size), len(self._table))
        if not self.replacement:
            return self._plan(epoch, batch_size, window)[index].copy()
        generator = self._generator(epoch, index, batch_size, window)
        start = int(generator.integers(len(self._table)))
        drawn = start + generator.integers(window, size=batch_size)
        return self._sorted[drawn % len(self._table)]

    def _make_plan(self, epoch: int, batch_size: int, window: int) -> list[Integers]:
        generator = self._generator(epoch, batch_size, window)
        examples, batches = len(self._table), self.number(batch_size)
        sizes = generator.permutation(examples // batches + (np.arange(batches) < examples % batches))
        together = batches if window == examples else window // batch_size
        window_of = np.repeat(_windows(batches, together, generator), sizes)
        in_length = sort_by_length(self._table, ties=generator.random(examples))
        shuffled = in_length[np.lexsort((generator.random(examples), window_of))]
        parts = np.split(shuffled, np.cumsum(sizes)[:-1])
        return [parts[place] for place in generator.permutation(batches)]

    def _generator(self, *key: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))


def shard(rows: Integers, rank: int, world_size: int) -> Integers:
    """One rank's part of a batch; the parts of all ranks, in order, are the batch.

    They differ by at most one in size. Some are empty if a batch has fewer rows than ranks: weigh means by rows.

    >>> [shard(np.array([5, 3, 8]), rank, 2).tolist() for rank in range(2)]
    [[5, 3], [8]]
    """
    if not 0 <= rank < world_size:
        raise InputError(f"rank must be from 0 to {world_size - 1}, got {rank!r}")
    return np.array_split(rows, world_size)[rank]


def _windows(batches: int, together: int, generator: np.random.Generator) -> Integers:
    """The window of each batch of the sorted order, `together` batches in each.

    The first window is cut short at random, so that the cuts between windows lie elsewhere in every epoch.
    """
    missing = generator.integers(together) if together < batches else 0
    return (np.arange(batches) + missing) // together
