"""Encoded texts -> padded NumPy batches: which examples go together, and how their words become arrays.

- Training: a `SlidingBucket` says which examples a step sees, `Schedule` how that changes as the dev score stalls,
  `Batch.of` pads them, `forget_words` hides some of their words, `Prefetched` does so ahead of the training step.
- Evaluation and prediction: `Batch.by_length` goes through a set, texts of near-equal length together; `buffers`
  makes sets of texts that come one after the other.
"""

from routepool.batching.bucket import Schedule, SlidingBucket, shard
from routepool.batching.padding import BATCH, Batch, buffers, evaluation_batches, forget_words, length_of, pad
from routepool.batching.prefetching import Prefetched

__all__ = [
    "BATCH",
    "Batch",
    "Prefetched",
    "Schedule",
    "SlidingBucket",
    "buffers",
    "evaluation_batches",
    "forget_words",
    "length_of",
    "pad",
    "shard",
]
