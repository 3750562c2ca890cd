"""Aggregators that only the experiments have: each differs from routing in what it says, and in nothing else."""

from typing import Any

import pytest
import torch
from torch import Tensor

from reproduce.adapted import ADAPTED, AdaptedRouting
from reproduce.controls import FixedQuery
from routepool.layers import ReverseRouting, StandardRouting

SIZES: dict[str, Any] = {"capsules": 3, "capsule_size": 5}


@pytest.fixture
def states() -> Tensor:
    return torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def mask() -> Tensor:
    return torch.arange(6) < torch.tensor([[6], [4]])


@pytest.mark.parametrize("options", [{}, {"prior": True}, {"temperature": True}, {"prior": True, "temperature": True}])
def test_options_begin_as_the_papers_routing(options: dict[str, bool], states: Tensor, mask: Tensor) -> None:
    torch.manual_seed(0)
    adapted = AdaptedRouting(4, **SIZES, **options)
    plain = StandardRouting(4, **SIZES)
    plain.load_state_dict({name: adapted.state_dict()[name] for name in plain.state_dict()})
    for ours, theirs in zip(adapted(states, mask), plain(states, mask), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_prior_is_what_the_first_coupling_is_the_softmax_of(states: Tensor, mask: Tensor) -> None:
    layer = AdaptedRouting(4, **SIZES, prior=True)
    layer.iterations = 1
    prior = torch.tensor([1.0, 0.0, -2.0])
    with torch.no_grad():
        layer.get_parameter("prior").copy_(prior.unsqueeze(1))
    _, coupling = layer(states, mask)
    torch.testing.assert_close(coupling[mask], prior.softmax(0).expand(10, -1))
    assert not coupling[~mask].any()


def test_a_factor_sharpens_every_coupling(states: Tensor, mask: Tensor) -> None:
    layer = AdaptedRouting(4, **SIZES, temperature=True)
    layer.iterations = 2
    _, level = layer(states, mask)
    with torch.no_grad():
        layer.get_parameter("log_factor").fill_(2.0)
    _, sharp = layer(states, mask)
    assert (sharp[mask].amax(-1) > level[mask].amax(-1)).all()


@pytest.mark.parametrize("name", ADAPTED)
def test_every_option_learns(name: str, states: Tensor, mask: Tensor) -> None:
    torch.manual_seed(0)
    layer = AdaptedRouting(4, **SIZES, **ADAPTED[name])
    vector, _ = layer(states, mask)
    (vector * torch.randn(15)).sum().backward()
    assert len([*layer.parameters()]) == 2 + len(ADAPTED[name])
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in layer.parameters())


def test_fixed_queries_differ_from_reverse_routing_by_the_query_alone(states: Tensor) -> None:
    torch.manual_seed(0)
    one_text = states[:1]
    routing, control = ReverseRouting(4, **SIZES, iterations=2), FixedQuery(4, **SIZES)
    first_round = routing.trace(one_text)[0].capsules[0]
    control.load_state_dict({**routing.state_dict(), "query": first_round})
    for ours, theirs in zip(control(one_text), routing(one_text), strict=True):
        torch.testing.assert_close(ours, theirs)
