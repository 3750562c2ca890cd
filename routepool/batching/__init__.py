"""Encoded texts -> padded NumPy batches: which examples go together, and how their words become arrays.

- Training: a `SlidingBucket` says which examples a step sees, `Schedule` how that changes as the dev score stalls,
  `Batch.of` pads them, `forget_words` hides some of their words, `prefetch` does so ahead of the training step.
- Evaluation: `evaluation_batches` groups a set by length, `in_input_order` puts the results back.
- Prediction: `stream` does both on texts that come one after the other, in bounded memory.
"""

from routepool.batching.bucket import Schedule, SlidingBucket, shard
from routepool.batching.evaluation import evaluation_batches, in_input_order, stream
from routepool.batching.padding import Batch, forget_words, length_of, pad
from routepool.batching.prefetching import Prefetched, prefetch

__all__ = [
    "Batch",
    "Prefetched",
    "Schedule",
    "SlidingBucket",
    "evaluation_batches",
    "forget_words",
    "in_input_order",
    "length_of",
    "pad",
    "prefetch",
    "shard",
    "stream",
]
