"""What is computed of a text, whatever computes it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from routepool.text import Encoded, Reading


class Backend(Protocol):
    """What computes: torch here, others in extras."""

    depth: int
    units: int  # parts of equal size that a vector is made of: the capsules of a routing model

    def logits(self, encoded: Sequence[Encoded]) -> NDArray[np.float32]:
        """(N, K), in the order of the texts."""

    def vectors(self, encoded: Sequence[Encoded]) -> NDArray[np.float32]:
        """(N, size) encodings, in the order of the texts."""


class Prediction(NamedTuple):
    """What the model says of one text."""

    labels: tuple[str, ...]  # one, or those at or above their thresholds
    probabilities: NDArray[np.float64]  # (K,), in the order of the model's labels
    reading: Reading


class Encoding(NamedTuple):
    """The vector of one text."""

    vector: NDArray[np.float32]  # (size,), or (capsules, size of one)
    reading: Reading
