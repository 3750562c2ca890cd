"""Every registered aggregator, small, in each of its forms; a newly registered one is tested without a further line."""

from typing import Any

import pytest
import torch
from torch import Tensor

import reproduce.controls  # noqa: F401  (the aggregators of the experiments promise the same)
from reproduce.adapted import ADAPTED
from routepool.layers import Aggregator, register_aggregator
from routepool.settings import AGGREGATORS

FEATURES = 4
SMALL: dict[str, dict[str, Any]] = {
    "routing": {"capsules": 3, "capsule_size": 2},
    "reverse-routing": {"capsules": 3, "capsule_size": 2},
    "adapted-routing": {"capsules": 3, "capsule_size": 2},
    "fixed-query": {"capsules": 3, "capsule_size": 2},
    "projected-max": {"size": 6},
    "projected-mean": {"size": 6},
    "structured-attention": {"rows": 2, "attention_size": 3},
}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "attention": [{}, {"form": "released"}],
    "routing": [
        {},
        {"messages": "tanh"},
        {"iterations": 1},
        {"average": True},
        {"learned_length": True},
        {"messages": "tanh", "learned_length": True},
    ],
    "reverse-routing": [{}, {"messages": "tanh"}, {"learned_length": True}],
    "adapted-routing": list(ADAPTED.values()),
}


@register_aggregator("midrange")
class Midrange(Aggregator):
    """An aggregator of a user's own: half way between the smallest and the largest value."""

    def __init__(self, in_features: int, *, share: float = 0.5) -> None:
        super().__init__(in_features, out_features=in_features)
        self.share = share

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        real = mask.unsqueeze(-1)
        low = states.masked_fill(~real, torch.inf).amin(1)
        high = states.masked_fill(~real, -torch.inf).amax(1)
        vector = (low + self.share * (high - low)).masked_fill(~mask.any(1, keepdim=True), 0)
        return vector, real.to(states.dtype) / mask.sum(1).clamp(min=1).to(states.dtype)[:, None, None]


def layers() -> list[Any]:
    return [
        pytest.param((name, {**SMALL.get(name, {}), **variant}), id=" ".join([name, *map(str, variant.values())]))
        for name in AGGREGATORS.names()
        for variant in VARIANTS.get(name, [{}])
    ]


every_aggregator = pytest.mark.parametrize("kind", layers())
Kind = tuple[str, dict[str, Any]]


def build(kind: Kind, dtype: torch.dtype = torch.float32, seed: int = 0) -> Aggregator:
    torch.manual_seed(seed)
    name, options = kind
    layer = AGGREGATORS[name](FEATURES, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)  # biases that matter
    return layer.to(dtype)


def draw(shape: tuple[int, int, int], dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """States and a mask with gaps, each row keeping at least one token."""
    batch, tokens, seed = shape
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(batch, tokens, FEATURES, generator=generator, dtype=dtype)
    mask = torch.rand(batch, tokens, generator=generator) < 0.7
    mask[torch.arange(batch), torch.randint(tokens, (batch,), generator=generator)] = True
    return states, mask
