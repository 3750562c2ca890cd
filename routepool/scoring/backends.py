"""What computes a model, and what it computes of a text: the contracts, and the table of backends."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from routepool.arrays import Floats32, Floats64
from routepool.registry import Registry
from routepool.text import Encoded, Reading

if TYPE_CHECKING:
    from routepool.scoring.predictor import Predictor

TORCH = "torch"  # the backend of a folder whose config.json names none


class Backend(Protocol):
    """Encoded texts -> numbers; all that a `Predictor` knows of what computes."""

    depth: int  # 1 reads words, 2 sentences of words
    parts: int  # of equal size, that a vector is made of: the capsules of a routing model

    def logits(self, encoded: Sequence[Encoded]) -> Floats32:
        """(N, K), in the order of the texts, whatever their lengths and their number."""

    def vectors(self, encoded: Sequence[Encoded]) -> Floats32:
        """(N, size) encodings, in the order of the texts."""


# What the key `backend` in a folder's config.json says -> what loads such a folder, and checks its files. A file of
# routepool.extras that registers one has a line in `extras` here, by which it is imported when its name is met.
BACKENDS: "Registry[Callable[[str | os.PathLike[str]], Predictor]]" = Registry("backend")


class Prediction(NamedTuple):
    """What the model says of one text."""

    labels: tuple[str, ...]  # one, or those at or above their thresholds
    probabilities: Floats64  # (K,), in the order of the model's labels
    reading: Reading


class Encoding(NamedTuple):
    """The vector of one text."""

    vector: Floats32  # (size,), or (capsules, size of one)
    reading: Reading


class Engine(Protocol):
    """What computes the texts of a file: a `Predictor`, in this process, or what spreads them over others.

    A stream gives one result for each text, in their order, and reads only so far ahead that memory does not grow. What
    is not finite is a `NotFiniteError` with the place of its text, after the results of all texts before it.
    """

    labels: tuple[str, ...]
    multi_label: bool
    columns: Mapping[str, Any] | None  # the data columns of training, looked for in other files too

    def stream(self, texts: Iterable[str]) -> Iterator[Prediction]: ...

    def stream_encodings(self, texts: Iterable[str], *, capsules: bool = False) -> Iterator[Encoding]: ...

    def encode(self, texts: Sequence[str], *, capsules: bool = False) -> Floats32: ...
