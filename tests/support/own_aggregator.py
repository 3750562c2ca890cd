"""An aggregator of a user's own, which nothing in the package knows: importing this registers it."""

import torch
from torch import Tensor, nn

from routepool.layers import Aggregator
from routepool.settings import AGGREGATORS


@AGGREGATORS.register("slots")
class Slots(Aggregator):
    """Each slot splits itself between the words, and holds the tanh of what they say."""

    def __init__(self, in_features: int, *, slots: int = 3) -> None:
        super().__init__(in_features, out_features=slots * in_features)
        self.parts = self.parts._replace(number=slots, name="slot", share_of="text")
        self.query = nn.Parameter(torch.linspace(-1, 1, slots * in_features).reshape(slots, in_features))

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        weights = (states @ self.query.mT).tanh().exp() * mask.unsqueeze(-1)
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-6)
        return self.vector_of(self.terms(states, mask, weights).sum(1)), weights

    def terms(self, states: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
        return super().terms(states.tanh(), mask, weights)
