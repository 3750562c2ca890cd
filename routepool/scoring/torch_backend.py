"""A model on encoded texts: batches of near-equal length, results in the order of the input."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from routepool.arrays import Floats32
from routepool.batching import BATCH, Batch
from routepool.model import Classifier, Trace
from routepool.text import Encoded


def depth_of(model: Classifier) -> int:
    """The levels of a model: how deep the texts it reads must be."""
    return len(model.levels)


class TorchBackend:
    """A classifier as the predictor wants it."""

    def __init__(self, model: Classifier) -> None:
        self.model = model
        self.depth = depth_of(model)
        self.parts: int = model.levels[-1].aggregator.parts.number  # type: ignore[union-attr, assignment]

    def logits(self, encoded: Sequence[Encoded]) -> Floats32:
        return logits_of(self.model, encoded)

    def vectors(self, encoded: Sequence[Encoded]) -> Floats32:
        return _in_order(self.model, encoded, "vector", self.model.head.in_features)


def logits_of(model: Classifier, encoded: Sequence[Encoded], *, batch_size: int = BATCH) -> Floats32:
    """One row of logits for each text, (N, K), as of a model that does not train.

    >>> from routepool.settings import ModelConfig
    >>> from routepool.text import Tokenizer
    >>> tokenizer = Tokenizer.build(["a good film", "a bad one"])
    >>> config = ModelConfig(embedding_size=4, hidden_size=4, aggregator="max")
    >>> model = Classifier.build(config, vocabulary_size=len(tokenizer.words), classes=2)
    >>> logits_of(model, tokenizer.encode(["good", "a bad film", ""])).shape
    (3, 2)
    """
    return _in_order(model, encoded, "logits", model.head.out_features, batch_size)


def _in_order(model: Classifier, encoded: Sequence[Encoded], what: str, size: int, batch_size: int = BATCH) -> Floats32:
    result = np.empty((len(encoded), size), dtype=np.float32)
    for batch, trace in traces(model, encoded, batch_size):
        result[batch.rows] = getattr(trace, what).float().numpy(force=True)
    return result


def traces(model: Classifier, encoded: Sequence[Encoded], batch_size: int = BATCH) -> Iterator[tuple[Batch, Trace]]:
    """What the model computes for each batch of texts, without gradients; the longest texts come first."""
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    try:
        for batch in Batch.by_length(encoded, depth_of(model), batch_size=batch_size):
            with torch.inference_mode():
                trace = model.trace(torch.from_numpy(batch.ids).to(device), torch.from_numpy(batch.mask).to(device))
            yield batch, trace
    finally:
        model.train(training)
