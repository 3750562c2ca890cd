"""Types of NumPy arrays, one name for each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]  # of any precision
Floats32 = NDArray[np.float32]  # vectors and logits, as models compute them
Floats64 = NDArray[np.float64]  # probabilities
Integers = NDArray[np.integer[Any]]  # ids, lengths, counts and places
Flags = NDArray[np.bool_]
