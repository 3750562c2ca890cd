"""Weights averaged over the steps of training, which smooths out the pull of single batches."""

# V rows of the table  D features  R touched rows

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from routepool.model import Classifier
from routepool.training.optimizer import TABLE, embedding_of

RESCALE = 1e-3  # of the shrinkage: far from where float32 would lose the offsets


class AveragedWeights:
    """An exponential moving average of every weight that learns.

    After step t = 0, 1, ... the average moves by 1 - d towards the weights, with d = min(decay, (1 + t) / (10 + t)): it
    forgets the first weights quickly.

    Word vectors of a sparse table are averaged exactly without a pass over the table. While a row does not move, the
    offset of its average (average minus weights) shrinks by the factor d at each step. So offsets are kept divided by
    the product of all d so far, and a step writes only the rows that it moves.

    Args:
        model: its weights are followed from now on.
        decay: from above 0 to below 1; the average looks back over about 1 / (1 - decay) steps.

    >>> from routepool.settings import ModelConfig
    >>> config = ModelConfig(embedding_size=4, hidden_size=4, aggregator="mean")
    >>> model = Classifier.build(config, vocabulary_size=5, classes=2)
    >>> average = AveragedWeights(model, 0.999)
    >>> with average.following(), torch.no_grad():
    ...     model.head.output.bias += 1
    >>> with average.in_place():
    ...     model.head.output.bias.tolist()
    [0.8999999761581421, 0.8999999761581421]
    >>> model.head.output.bias.tolist()
    [1.0, 1.0]
    """

    def __init__(self, model: Classifier, decay: float) -> None:
        self.decay = decay
        self.steps = 0
        self._learning = {name: weights for name, weights in model.named_parameters() if weights.requires_grad}
        embedding = embedding_of(model)
        is_sparse = embedding is not None and embedding.sparse and TABLE in self._learning
        self._table = self._learning[TABLE] if is_sparse else None
        self._dense = {name: weights for name, weights in self._learning.items() if weights is not self._table}
        self._averages = [weights.detach().clone() for weights in self._dense.values()]
        self._offsets = None if self._table is None else torch.zeros_like(self._table.detach())  # (V, D)
        self._shrinkage = 1.0

    @contextmanager
    def following(self) -> Iterator[None]:
        """Around a step of the optimiser, with the gradients in place: the average follows the step."""
        rows, before = self._touched()
        yield
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        self.steps += 1
        with torch.no_grad():
            torch._foreach_lerp_(self._averages, [weights.detach() for weights in self._dense.values()], 1 - decay)
            self._follow_table(rows, before, decay)

    def _touched(self) -> tuple[Tensor, Tensor]:
        """The rows (R,) that the optimiser is about to move, and what they hold (R, D)."""
        if self._table is None or self._table.grad is None:
            nothing = torch.empty(0)
            return nothing.long(), nothing
        self._table.grad = self._table.grad.coalesce()  # not done again by the optimiser
        rows = self._table.grad.indices()[0]
        return rows, self._table.detach().index_select(0, rows)

    def _follow_table(self, rows: Tensor, before: Tensor, decay: float) -> None:
        if self._table is None or self._offsets is None:
            return
        if len(rows):
            moved_away = before.sub_(self._table.detach().index_select(0, rows))
            self._offsets.index_add_(0, rows, moved_away, alpha=1 / self._shrinkage)
        self._shrinkage *= decay
        if self._shrinkage < RESCALE:
            self._offsets.mul_(self._shrinkage)
            self._shrinkage = 1.0

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Give the model its averaged weights; on leaving it has its own again, to the last bit."""
        own = {name: weights.data for name, weights in self._learning.items()}
        averages = dict(zip(self._dense, self._averages, strict=True))
        if self._table is not None and self._offsets is not None:
            averages[TABLE] = self._table.detach() + self._offsets * self._shrinkage
        try:
            _put(self._learning, averages)
            yield
        finally:
            _put(self._learning, own)

    def tensors(self) -> dict[str, Tensor]:
        """The state that a resumed run needs, by names that a checkpoint can hold."""
        offsets = {} if self._offsets is None else {"offsets": self._offsets}
        numbers = {"steps": torch.tensor(self.steps), "shrinkage": torch.tensor(self._shrinkage, dtype=torch.float64)}
        averages = zip(self._dense, self._averages, strict=True)
        return {**numbers, **offsets, **{f"average.{name}": tensor for name, tensor in averages}}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` gave."""
        self.steps, self._shrinkage = int(tensors["steps"]), float(tensors["shrinkage"])
        if self._offsets is not None:
            self._offsets.copy_(tensors["offsets"])
        for name, average in zip(self._dense, self._averages, strict=True):
            average.copy_(tensors[f"average.{name}"])


def _put(parameters: dict[str, nn.Parameter], values: dict[str, Tensor]) -> None:
    for name, weights in parameters.items():
        weights.data = values[name]
