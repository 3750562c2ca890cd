"""The one path from raw text to labels: the command line, the estimator, the server and exported models all use it."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from routepool.batching import length_of, stream
from routepool.errors import InputError
from routepool.probabilities import chosen, probabilities
from routepool.text import Encoded, Tokenizer

if TYPE_CHECKING:
    from routepool.persistence import SavedModel

BATCH = 256


class Backend(Protocol):
    """What computes: torch here, others in extras."""

    depth: int

    def logits(self, encoded: Sequence[Encoded]) -> NDArray[np.float32]:
        """(N, K), in the order of the texts."""

    def vectors(self, encoded: Sequence[Encoded]) -> NDArray[np.float32]:
        """(N, size) encodings, in the order of the texts."""


class Prediction(NamedTuple):
    """What the model says of one text."""

    labels: tuple[str, ...]  # one, or those at or above their thresholds
    probabilities: NDArray[np.float64]  # (K,), in the order of the model's labels


class Predictor:
    """Raw texts -> labels, probabilities and vectors.

    Args:
        tokenizer: text -> ids.
        backend: ids -> logits.
        labels: names of the logits.
        multi_label: a text may have any number of labels.
        temperature: calibrates the probabilities.
        thresholds: of a multi-label model, one for each label.
        columns: the data columns it was trained on, used again unless told otherwise.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        backend: Backend,
        labels: Sequence[str],
        *,
        multi_label: bool = False,
        temperature: float = 1.0,
        thresholds: Sequence[float] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        self.tokenizer, self.backend, self.labels = tokenizer, backend, tuple(labels)
        self.multi_label, self.temperature, self.columns = multi_label, temperature, columns
        self.thresholds = thresholds or ([0.5] * len(self.labels) if multi_label else None)

    def predict(self, texts: Sequence[str]) -> list[str] | list[tuple[str, ...]]:
        """A label for each text, or the labels of each for a multi-label model."""
        labels = chosen(self.predict_proba(texts), self.labels, self.thresholds)
        return labels if self.multi_label else [label for (label,) in labels]

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(N, K) calibrated probabilities, in the order of `labels`."""
        return self._shares(self.backend.logits(self._encode(texts)))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(N, size): the vector that the last aggregator makes of each text."""
        return self.backend.vectors(self._encode(texts))

    def stream(self, texts: Iterable[str]) -> Iterator[Prediction]:
        """One prediction for each text, in their order, in memory that does not grow with their number."""
        if isinstance(texts, str):  # its letters would be taken for texts
            raise InputError("wanted texts one by one, got one string; put it in a list")
        encoded = (self.tokenizer.encode([text], self.backend.depth)[0] for text in texts)

        def length(text: Encoded) -> tuple[int, ...]:
            return length_of(text, self.backend.depth)

        return stream(encoded, self._predict_encoded, length=length, batch_size=BATCH)

    def _predict_encoded(self, encoded: list[Encoded]) -> list[Prediction]:
        shares = self._shares(self.backend.logits(encoded))
        return list(map(Prediction, chosen(shares, self.labels, self.thresholds), shares))

    def _shares(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        return probabilities(logits, temperature=self.temperature, multi_label=self.multi_label)

    def _encode(self, texts: Sequence[str]) -> list[Encoded]:
        if isinstance(texts, str):
            raise InputError("wanted a list of texts, got one string; put it in a list")
        return self.tokenizer.encode(texts, self.backend.depth)


def load(folder: str | os.PathLike[str]) -> Predictor:
    """A model from its folder, ready to predict."""
    # Here and not above: `routepool --help` must not wait for torch.
    from routepool.persistence import load as load_model  # noqa: PLC0415

    return of_saved(load_model(folder))


def of_saved(saved: "SavedModel") -> Predictor:
    """The predictor of a model in memory."""
    from routepool.inference import TorchBackend  # noqa: PLC0415

    return Predictor(
        saved.tokenizer,
        TorchBackend(saved.classifier),
        saved.labels,
        multi_label=saved.multi_label,
        temperature=saved.temperature,
        thresholds=saved.thresholds,
        columns=saved.columns,
    )
