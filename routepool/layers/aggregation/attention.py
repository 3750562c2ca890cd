"""Aggregation by learned queries: the paper's self-attention and two richer relatives to compare routing with."""

# B batch  T tokens  D features  R rows of attention

from typing import ClassVar

import torch
from torch import Tensor, nn

from routepool.layers.contract import Aggregator, Parts, masked_softmax, register_aggregator
from routepool.settings import LARGEST
from routepool.settings.declarations import one_of


@register_aggregator("attention")
class SelfAttention(Aggregator):
    """One learned query weighs the tokens: a = softmax(q . h), e = sum a h (eq. 8-10).

    Args:
        in_features: size of a token's vector.
        form: "paper", or "released" for the authors' code, where h is tanh(W h + b) in both places.

    >>> vector, weights = SelfAttention(4)(torch.randn(2, 3, 4))
    >>> vector.shape, weights.shape
    (torch.Size([2, 4]), torch.Size([2, 3, 1]))
    """

    parts = Parts(share_of="text")

    def __init__(self, in_features: int, *, form: str = "paper") -> None:
        super().__init__(in_features)
        released = one_of("form", form, ("paper", "released")) == "released"
        self.projection = nn.Linear(in_features, in_features) if released else None
        self.query = nn.Parameter(torch.empty(1, in_features))
        self.reset_parameters()

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        states = self._read(states)
        weights = _attend(self.query.expand(states.shape[0], -1), states, mask)
        return _weighted_sum(weights, states), weights.unsqueeze(-1)

    def terms(self, states: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
        return super().terms(self._read(states), mask, weights)

    def _read(self, states: Tensor) -> Tensor:
        return states if self.projection is None else self.projection(states).tanh()


@register_aggregator("structured-attention")
class StructuredAttention(Aggregator):
    """Several learned views of the text, side by side: A = softmax(W2 tanh(W1 H)), e = A H (Lin et al. 2017).

    Args:
        in_features: size of a token's vector.
        rows: number of views; the vector is rows x in_features long.
        attention_size: hidden units of the scorer.

    >>> vector, weights = StructuredAttention(4, rows=3)(torch.randn(2, 7, 4))
    >>> vector.shape, weights.shape
    (torch.Size([2, 12]), torch.Size([2, 7, 3]))
    """

    largest: ClassVar = {"rows": 1000, "attention_size": LARGEST}

    def __init__(self, in_features: int, *, rows: int = 5, attention_size: int = 350) -> None:
        super().__init__(in_features, rows=rows, attention_size=attention_size)
        self.out_features = in_features * rows
        self.parts = Parts(rows, "row", share_of="text")
        self.hidden = nn.Linear(in_features, attention_size, bias=False)
        self.score = nn.Linear(attention_size, rows, bias=False)
        self.reset_parameters()

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.score(self.hidden(states).tanh())  # (B, T, R)
        weights = masked_softmax(logits, mask.unsqueeze(-1), dim=1)
        return torch.bmm(weights.mT, states).flatten(1), weights


@register_aggregator("multi-hop")
class MultiHopAttention(Aggregator):
    """Attention in several hops: the output of one is the query of the next.

    The paper likens reverse routing to it (section 3). This is the form to compare with: one capsule, no squash, a
    learned first query. The weights are those of the last hop.

    Args:
        in_features: size of a token's vector.
        hops: how often the tokens are weighed.

    >>> vector, weights = MultiHopAttention(4, hops=2)(torch.randn(2, 3, 4))
    >>> vector.shape, weights.shape
    (torch.Size([2, 4]), torch.Size([2, 3, 1]))
    """

    largest: ClassVar = {"hops": 100}
    parts = Parts(share_of="text")

    def __init__(self, in_features: int, *, hops: int = 3) -> None:
        super().__init__(in_features, hops=hops)
        self.hops = hops
        self.query = nn.Parameter(torch.empty(1, in_features))
        self.reset_parameters()

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        vector = self.query.expand(states.shape[0], -1)
        for _ in range(self.hops):
            weights = _attend(vector, states, mask)
            vector = _weighted_sum(weights, states)
        return vector, weights.unsqueeze(-1)


def _attend(query: Tensor, states: Tensor, mask: Tensor) -> Tensor:
    """(B, D), (B, T, D) -> weights (B, T)."""
    logits = torch.bmm(states, query.unsqueeze(-1)).squeeze(-1)
    return masked_softmax(logits, mask, dim=1)


def _weighted_sum(weights: Tensor, states: Tensor) -> Tensor:
    """(B, T), (B, T, D) -> (B, D)."""
    return torch.bmm(weights.unsqueeze(1), states).squeeze(1)
