"""What each token brings to each unit of the vector: the terms of the aggregator's sum."""

# N rows  T tokens  D features  M units of weight  C size of a unit

import torch
from torch import Tensor
from torch.nn import functional

from routepool.explaining.passes import LevelPass
from routepool.layers.aggregation import Aggregator, MaxPooling, ReverseRouting, SelfAttention, StandardRouting
from routepool.layers.aggregation.squashing import capsules_backward, capsules_of

ROUTING = (StandardRouting, ReverseRouting)


def parts(aggregator: Aggregator, states: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """Weight x message of every token and unit (N, T, M, C), 0 on padding; over the tokens they sum to `received`.

    The message is W h + b (or its tanh) in routing, the state elsewhere. In max pooling a token brings those features
    whose maximum it holds.

    Args:
        aggregator: one of the registered ones; one that is no weighted sum is read as if it were.
        states: (N, T, D).
        mask: (N, T).
        weights: (N, T, M), of the last round.
    """
    states = states.masked_fill(~mask.unsqueeze(-1), 0)
    if isinstance(aggregator, ROUTING):
        return _routed(aggregator, states, weights)
    if isinstance(aggregator, MaxPooling):
        return _maxima(states, mask).unsqueeze(2)
    if isinstance(aggregator, SelfAttention) and aggregator.projection is not None:
        states = aggregator.projection(states).tanh()
    return weights.unsqueeze(-1) * states.unsqueeze(2)


def vector_of(aggregator: Aggregator, received: Tensor) -> Tensor:
    """(N, M, C) -> (N, M C): what the aggregator makes of the sums it received."""
    return (capsules_of(received, length=aggregator.length) if isinstance(aggregator, ROUTING) else received).flatten(1)


def slope_of(aggregator: Aggregator, received: Tensor, slope: Tensor) -> Tensor:
    """The gradient for `received` (N, M, C), given that for the vector (N, M C)."""
    slope = slope.reshape(received.shape)
    return capsules_backward(received, slope, length=aggregator.length) if isinstance(aggregator, ROUTING) else slope


def units_of(level: LevelPass) -> Tensor:
    """(N, M, C): a level's vectors cut into the units that its weights belong to."""
    return level.vectors.reshape(len(level.vectors), level.aggregator.units, -1)


def _routed(layer: StandardRouting | ReverseRouting, states: Tensor, weights: Tensor) -> Tensor:
    messages = torch.einsum("ntd,mcd->ntmc", states, layer.weight) + layer.bias
    if layer.messages == "tanh":
        messages = messages.tanh()
    terms = weights.unsqueeze(-1) * messages
    if layer.average:
        terms = terms / weights.sum(1).clamp(min=1)[:, None, :, None]
    return terms


def _maxima(states: Tensor, mask: Tensor) -> Tensor:
    open_states = states.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    holds = (open_states == open_states.amax(1, keepdim=True)) & mask.unsqueeze(-1)
    return functional.normalize(holds.to(states.dtype), p=1, dim=1) * states
