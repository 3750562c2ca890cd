"""What computes a model, and what is computed of a text: the contract, and the table of those who keep it."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from routepool.registry import Registry
from routepool.text import Encoded, Reading

if TYPE_CHECKING:
    from routepool.scoring.predictor import Predictor

TORCH = "torch"  # the backend of a folder whose config.json names none


class Backend(Protocol):
    """Encoded texts -> numbers; all that a `Predictor` knows of what computes."""

    depth: int  # 1 reads words, 2 sentences of words
    parts: int  # of equal size, that a vector is made of: the capsules of a routing model

    def logits(self, encoded: Sequence[Encoded]) -> NDArray[np.float32]:
        """(N, K), in the order of the texts, whatever their lengths and their number."""

    def vectors(self, encoded: Sequence[Encoded]) -> NDArray[np.float32]:
        """(N, size) encodings, in the order of the texts."""


# What the key `backend` in a folder's config.json says -> what loads such a folder, and checks its files. A file of
# routepool.extras that registers one has a line in `extras` here, by which it is imported when its name is met.
BACKENDS: "Registry[Callable[[str | os.PathLike[str]], Predictor]]" = Registry("backend")


class Prediction(NamedTuple):
    """What the model says of one text."""

    labels: tuple[str, ...]  # one, or those at or above their thresholds
    probabilities: NDArray[np.float64]  # (K,), in the order of the model's labels
    reading: Reading


class Encoding(NamedTuple):
    """The vector of one text."""

    vector: NDArray[np.float32]  # (size,), or (capsules, size of one)
    reading: Reading
