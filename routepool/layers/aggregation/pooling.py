"""Max and average pooling: eq. 6 and 7 of the paper."""

# B batch  T tokens  D features

import torch
from torch import Tensor
from torch.nn import functional

from routepool.layers.contract import Aggregator, Parts, register_aggregator


@register_aggregator("max")
class MaxPooling(Aggregator):
    """The largest value of each feature (eq. 6).

    The weight of a token is the share of features whose maximum lies there, ties split evenly, without gradient.

    >>> vector, weights = MaxPooling(2)(torch.tensor([[[3.0, 0.0], [1.0, 5.0]]]))
    >>> vector.tolist(), weights.squeeze(-1).tolist()
    ([[3.0, 5.0]], [[0.5, 0.5]])
    """

    parts = Parts(share_of="text")

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        vector = _masked_max(states, mask)
        return vector, _share_of_maxima(states.detach(), mask, vector.detach())

    def terms(self, states: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
        """A token brings those features whose maximum it holds."""
        states = states.masked_fill(~mask.unsqueeze(-1), 0)
        holds = _at_maximum(states, mask, _masked_max(states, mask))
        return (functional.normalize(holds.to(states.dtype), p=1, dim=1) * states).unsqueeze(2)


@register_aggregator("mean")
class MeanPooling(Aggregator):
    """The average of the real tokens (eq. 7).

    >>> vector, weights = MeanPooling(2)(torch.tensor([[[3.0, 0.0], [1.0, 5.0]]]))
    >>> vector.tolist(), weights.squeeze(-1).tolist()
    ([[2.0, 2.5]], [[0.5, 0.5]])
    """

    parts = Parts(share_of="text")

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        number = mask.sum(-1, keepdim=True).clamp(min=1)
        weights = (mask.to(torch.promote_types(states.dtype, torch.float32)) / number).to(states.dtype)
        return torch.bmm(weights.unsqueeze(1), states).squeeze(1), weights.unsqueeze(-1)


def _masked_max(states: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D) -> (B, D): the largest value of each feature over the real tokens, 0 for an empty row."""
    largest = states.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(1)
    return largest.masked_fill(~mask.any(-1, keepdim=True), 0)


def _at_maximum(states: Tensor, mask: Tensor, maxima: Tensor) -> Tensor:
    return (states == maxima.unsqueeze(1)) & mask.unsqueeze(-1)


def _share_of_maxima(states: Tensor, mask: Tensor, maxima: Tensor) -> Tensor:
    at_maximum = _at_maximum(states, mask, maxima).to(torch.float32)
    one_over_ties = 1 / at_maximum.sum(1).clamp(min=1)
    share = torch.bmm(at_maximum, one_over_ties.unsqueeze(-1)) / states.shape[-1]
    return share.to(states.dtype)
