"""Words that a training batch may not see: a model that is to be asked about missing words should have met some."""

import numpy as np

from routepool.batching.padding import Batch
from routepool.text import UNKNOWN


def forget_words(batch: Batch, share: float, *, seed: int, epoch: int, index: int) -> Batch:
    """A batch in which each word is replaced by the unknown word with this probability: a pure function of its place.

    >>> batch = Batch(np.array([0]), np.array([[5, 6, 7, 0]]), np.array([[True, True, True, False]]))
    >>> forget_words(batch, 0.99, seed=0, epoch=0, index=0).ids
    array([[1, 1, 1, 0]])
    >>> forget_words(batch, 0.0, seed=0, epoch=0, index=0) is batch
    True
    """
    if share == 0:
        return batch
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch, index)))
    # Drawn for the real words only, in reading order: padding changes no draw.
    forgotten = np.zeros(batch.mask.shape, dtype=bool)
    forgotten[batch.mask] = generator.random(int(batch.mask.sum())) < share
    return batch._replace(ids=np.where(forgotten, UNKNOWN, batch.ids))
