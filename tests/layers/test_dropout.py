"""Dropout drops the share it is told to, keeps the mean, and is drawn from torch's generator like all else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from routepool.layers.blocks import Dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_the_share_is_dropped_and_the_mean_kept(share: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    values = torch.ones(400_000, dtype=dtype)
    dropped = Dropout(share)(values)
    assert dropped.dtype == dtype
    rate = (dropped == 0).double().mean().item()
    assert rate == pytest.approx(share, abs=5 * (share * (1 - share) / 400_000) ** 0.5)
    assert dropped[dropped > 0].double().unique().tolist() == pytest.approx([1 / (1 - share)], rel=1e-2)


def test_values_are_dropped_independently_of_their_neighbours() -> None:
    torch.manual_seed(0)
    dropped = Dropout(0.5)(torch.ones(400_000)) - 1  # -1 or 1
    for distance in (1, 2, 3, 4, 5, 8):
        assert (dropped[distance:] * dropped[:-distance]).mean().item() == pytest.approx(0, abs=0.01)


@given(st.lists(st.integers(0, 5), max_size=3), st.floats(0, 0.99))
def test_any_shape_and_gradients_go_where_values_went(shape: list[int], share: float) -> None:
    values = torch.ones(shape, requires_grad=True)
    dropped = Dropout(share)(values)
    assert dropped.shape == values.shape
    dropped.sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad, dropped.detach())


def test_the_same_seed_drops_the_same_and_evaluation_drops_nothing() -> None:
    layer, values = Dropout(0.3), torch.randn(50, 7)
    torch.manual_seed(1)
    first = layer(values)
    torch.manual_seed(1)
    assert torch.equal(layer(values), first)
    assert not torch.equal(layer(values), first)
    assert torch.equal(layer.eval()(values), values)
    assert torch.equal(Dropout(1.0)(values), torch.zeros(50, 7))
