"""What every registered aggregator promises."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.aggregators import FEATURES, SMALL, Kind, build, draw, every_aggregator
from torch import Tensor

from routepool.errors import InputError
from routepool.layers import Aggregator

shapes = st.tuples(st.integers(1, 4), st.integers(1, 7), st.integers(0, 2**31))


def gradients(layer: Aggregator, states: Tensor, mask: Tensor) -> list[Tensor]:
    states = states.clone().requires_grad_()
    vector, _ = layer(states, mask)
    slope = torch.linspace(-1, 1, vector.shape[1], dtype=vector.dtype)
    wanted = [states, *layer.parameters()]
    return list(torch.autograd.grad((vector * slope).sum(), wanted, allow_unused=True, materialize_grads=True))


@every_aggregator
@given(shape=shapes)
def test_shapes_are_those_of_the_contract(kind: Kind, shape: tuple[int, int, int]) -> None:
    layer, (states, mask) = build(kind), draw(shape)
    vector, weights = layer(states, mask)
    assert vector.shape == (len(states), layer.out_features)
    assert weights.shape[:2] == mask.shape
    assert weights.ndim == 3
    assert vector.dtype == weights.dtype == states.dtype
    assert not weights[~mask].any()


@every_aggregator
@given(
    shape=shapes,
    content=st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e30, -1.0]),
    more=st.integers(0, 5),
)
def test_padding_of_any_content_and_amount_changes_nothing(
    kind: Kind, shape: tuple[int, int, int], content: float, more: int
) -> None:
    layer, (states, mask) = build(kind), draw(shape)
    clean = states.masked_fill(~mask.unsqueeze(-1), 0)
    dirty = states.masked_fill(~mask.unsqueeze(-1), content)
    dirty = torch.cat([dirty, dirty.new_full((len(dirty), more, FEATURES), content)], dim=1)
    longer = torch.cat([mask, mask.new_zeros(len(mask), more)], dim=1)

    for ours, wanted in zip(layer(dirty, longer), layer(clean, mask), strict=True):
        torch.testing.assert_close(ours[:, : wanted.shape[1]], wanted, atol=1e-5, rtol=1e-5)
    of_states, *of_parameters = gradients(layer, dirty, longer)
    _, *wanted_of_parameters = gradients(layer, clean, mask)
    assert not of_states[~longer].any()
    for ours, wanted in zip(of_parameters, wanted_of_parameters, strict=True):
        torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=1e-4)


@every_aggregator
@given(shape=shapes, content=st.sampled_from([0.0, float("nan"), 1e30]))
def test_an_empty_row_gives_zeros_and_finite_gradients(kind: Kind, shape: tuple[int, int, int], content: float) -> None:
    layer, (states, mask) = build(kind), draw(shape)
    mask[0] = False
    states[0] = content
    vector, weights = layer(states, mask)
    assert not vector[0].any()
    assert not weights[0].any()
    assert all(gradient.isfinite().all() for gradient in gradients(layer, states, mask))


@every_aggregator
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_no_rows_and_no_tokens_are_legal(kind: Kind, shape: tuple[int, int]) -> None:
    layer = build(kind)
    vector, weights = layer(torch.empty(*shape, FEATURES), torch.empty(shape, dtype=torch.bool))
    assert vector.shape == (shape[0], layer.out_features)
    assert weights.shape[:2] == shape
    assert not vector.any()


@every_aggregator
@given(shape=shapes)
def test_neighbours_and_their_order_do_not_matter(kind: Kind, shape: tuple[int, int, int]) -> None:
    layer, (states, mask) = build(kind), draw(shape)
    vector, weights = layer(states, mask)
    backwards = layer(states.flip(0), mask.flip(0))
    alone = [layer(states[i : i + 1], mask[i : i + 1]) for i in range(len(states))]
    for i, together in enumerate((vector, weights)):
        torch.testing.assert_close(backwards[i].flip(0), together, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(torch.cat([text[i] for text in alone]), together, atol=1e-5, rtol=1e-5)


@every_aggregator
@given(shape=shapes)
def test_permuting_tokens_permutes_the_weights_and_leaves_the_vector(kind: Kind, shape: tuple[int, int, int]) -> None:
    layer, (states, mask) = build(kind).double(), draw(shape)
    states = states.double()  # a short sum has a direction, however it was rounded
    order = torch.randperm(states.shape[1], generator=torch.Generator().manual_seed(shape[2]))
    vector, weights = layer(states, mask)
    permuted_vector, permuted_weights = layer(states[:, order], mask[:, order])
    torch.testing.assert_close(permuted_vector, vector, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(permuted_weights, weights[:, order], atol=1e-5, rtol=1e-5)


@every_aggregator
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@given(shape=shapes, size=st.sampled_from([0.0, 1e-30, 1e-4, 1.0, 300.0, 1e18]))
def test_value_and_gradient_are_finite_at_any_size(
    kind: Kind, dtype: torch.dtype, shape: tuple[int, int, int], size: float
) -> None:
    layer, (states, mask) = build(kind, dtype), draw(shape, dtype)
    states = states * size
    vector, weights = layer(states, mask)
    assert vector.isfinite().all()
    assert weights.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients(layer, states, mask))


@every_aggregator
@given(shape=st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(0, 2**31)))
def test_gradients_are_those_of_finite_differences(kind: Kind, shape: tuple[int, int, int]) -> None:
    layer, (states, mask) = build(kind, torch.float64), draw(shape, torch.float64)
    states = states.requires_grad_()
    assert torch.autograd.gradcheck(lambda states: layer(states, mask)[0], states)


@pytest.mark.parametrize(("name", "axis"), [("routing", 2), ("reverse-routing", 1)])
@pytest.mark.parametrize("messages", ["linear", "tanh"])
@given(shape=shapes, iterations=st.integers(1, 5))
def test_coupling_sums_to_one_over_capsules_or_over_tokens(
    name: str, axis: int, messages: str, shape: tuple[int, int, int], iterations: int
) -> None:
    layer = build((name, {**SMALL[name], "messages": messages, "iterations": iterations}))
    states, mask = draw(shape)
    _, coupling = layer(states, mask)
    total = coupling.sum(axis)
    torch.testing.assert_close(total, mask.to(total.dtype) if axis == 2 else torch.ones_like(total))


@every_aggregator
def test_without_a_mask_every_token_is_real(kind: Kind) -> None:
    layer, (states, mask) = build(kind), draw((3, 5, 0))
    for ours, wanted in zip(layer(states), layer(states, torch.ones_like(mask)), strict=True):
        assert torch.equal(ours, wanted)


@every_aggregator
def test_exports_once_for_any_batch_and_length(kind: Kind) -> None:
    layer, example = build(kind), draw((3, 5, 0))
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")}
    exported = torch.export.export(layer, example, dynamic_shapes=(axes, axes)).module()
    for shape in [(2, 3, 1), (4, 11, 2), (7, 2, 3)]:
        states, mask = draw(shape)
        mask[0] = False
        states[~mask] = torch.nan
        for ours, wanted in zip(exported(states, mask), layer(states, mask), strict=True):
            torch.testing.assert_close(ours, wanted, atol=1e-6, rtol=1e-5)


@every_aggregator
@pytest.mark.parametrize(
    ("states", "mask", "message"),
    [
        (
            torch.zeros(2, FEATURES),
            torch.ones(2, 1, dtype=torch.bool),
            r"states must be \(batch, tokens, 4\), got \(2, 4\)",
        ),
        (torch.zeros(2, 3, 5), torch.ones(2, 3, dtype=torch.bool), r"states must be .*, got \(2, 3, 5\)"),
        (torch.zeros(2, 3, FEATURES, dtype=torch.long), None, "floating point numbers, got torch.int64"),
        (torch.zeros(2, 3, FEATURES), torch.ones(2, 3), "mask must be bool, .* got torch.float32"),
        (torch.zeros(2, 3, FEATURES), torch.tensor([3, 2]), "mask must be bool, .* got torch.int64"),
        (torch.zeros(2, 3, FEATURES), torch.ones(2, 4, dtype=torch.bool), r"= \(2, 3\) like the states, got \(2, 4\)"),
    ],
)
def test_bad_input_says_what_came_and_what_was_wanted(
    kind: Kind, states: Tensor, mask: Tensor | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        build(kind)(states, mask)
