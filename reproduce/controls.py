"""Aggregators as large as routing that lack what is its own: the controls of table 3."""

# B batch  T tokens  D features  M queries  C size of a value

from typing import Any

import torch
from torch import Tensor, nn

from routepool.layers import Aggregator, MaxPooling, MeanPooling, Parts, register_aggregator, squash
from routepool.layers.aggregation.routing import LinearMessages
from routepool.layers.contract import masked_softmax


class _Projected(Aggregator):
    """Pooling of W h + b, as wide as routing's vector and with as many parameters."""

    def __init__(self, in_features: int, *, size: int = 1000) -> None:
        super().__init__(in_features, out_features=size)
        self.projection = nn.Linear(in_features, size)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)


@register_aggregator("projected-max")
class ProjectedMax(_Projected):
    """The largest value of each feature of W h + b."""

    def __init__(self, in_features: int, *, size: int = 1000) -> None:
        super().__init__(in_features, size=size)
        self.pool = MaxPooling(size)

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return self.pool.aggregate(self.projection(states), mask)


@register_aggregator("projected-mean")
class ProjectedMean(_Projected):
    """The average of W h + b over the tokens, which is W on their average: that is one product for a text, not T."""

    def __init__(self, in_features: int, *, size: int = 1000) -> None:
        super().__init__(in_features, size=size)
        self.pool = MeanPooling(in_features)

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        average, weights = self.pool.aggregate(states, mask)
        return self.projection(average) * mask.any(-1, keepdim=True), weights  # a row without tokens has no b either


@register_aggregator("fixed-query")
class FixedQuery(Aggregator):
    """Reverse routing whose query is a parameter, not the capsule of the round before: attention with M queries."""

    def __init__(self, in_features: int, *, capsules: int = 5, capsule_size: int = 200) -> None:
        super().__init__(in_features, out_features=capsules * capsule_size)
        self.parts = Parts(capsules, "row", share_of="text")
        self.weight = nn.Parameter(torch.empty(capsules, capsule_size, in_features))
        self.bias = nn.Parameter(torch.zeros(capsules, capsule_size))
        self.query = nn.Parameter(torch.empty(capsules, capsule_size))
        for matrix in (*self.weight, self.query):
            nn.init.xavier_uniform_(matrix)

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        messages = LinearMessages(states, self.weight, self.bias)
        queries = self.query.expand(states.shape[0], -1, -1)
        coupling = masked_softmax(messages.agreement(queries), mask.unsqueeze(1), dim=2)
        return squash(messages.sum(coupling)).flatten(1), coupling.mT


CONTROLS: dict[str, dict[str, Any]] = {
    "routing-1": {"aggregator": "routing", "iterations": 1},
    "projected-max": {"aggregator": "projected-max"},
    "projected-mean": {"aggregator": "projected-mean"},
    "fixed-query": {"aggregator": "fixed-query"},
    "routing-400": {"aggregator": "routing", "capsule_size": 80},
}
