"""The numbers of the paper's released code, run by its authors' own implementation."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from routepool.layers import MeanPooling, ReverseRouting, SelfAttention, StandardRouting, squash
from routepool.layers.contract import masked_softmax

GOLDEN = dict(np.load(Path(__file__).with_name("golden_routing.npz")))
CASES = sorted({name.split("_")[0] for name in GOLDEN if name.startswith("case")})
FORMS: dict[str, type[StandardRouting] | type[ReverseRouting]] = {"std": StandardRouting, "rev": ReverseRouting}


def tensor(name: str, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.from_numpy(GOLDEN[name]).to(dtype)


def mask_of(lengths: NDArray[np.int32], tokens: int) -> Tensor:
    return torch.arange(tokens) < torch.from_numpy(lengths).unsqueeze(1)


def layer_that_passes_messages(form: str, messages: Tensor, iterations: int) -> StandardRouting | ReverseRouting:
    """States are the messages laid side by side; each capsule's weight picks its own."""
    *_, capsules, size = messages.shape
    layer: StandardRouting | ReverseRouting = FORMS[form](
        capsules * size, capsules=capsules, capsule_size=size, iterations=iterations
    )
    with torch.no_grad():
        layer.weight.copy_(torch.eye(capsules * size).unflatten(0, (capsules, size)))  # type: ignore[no-untyped-call]
    layer.to(messages.dtype)
    return layer


def test_there_are_twenty_cases() -> None:
    assert len(CASES) == 20


@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "suffix", "tolerance"), [(torch.float32, "", 2e-5), (torch.float64, "64", 2e-9)])
def test_capsules_and_coupling_are_those_of_the_released_code(
    case: str, form: str, iterations: int, dtype: torch.dtype, suffix: str, tolerance: float
) -> None:
    messages = tensor(f"{case}_uhat", dtype)
    mask = mask_of(GOLDEN[f"{case}_len"], messages.shape[1])
    layer = layer_that_passes_messages(form, messages, iterations)

    vector, coupling = layer(messages.flatten(2), mask)

    real = mask.any(1)  # the released code reads an empty row as one token; ours are zeros
    capsules = vector.unflatten(1, messages.shape[2:])
    name = f"{case}_{form}_T{iterations}"
    torch.testing.assert_close(capsules[real], tensor(f"{name}_V{suffix}", dtype)[real], atol=tolerance, rtol=0)
    torch.testing.assert_close(coupling[real], tensor(f"{name}_C{suffix}", dtype)[real], atol=tolerance, rtol=0)
    assert not vector[~real].any()
    assert not coupling[~real].any()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ["case08", "case09"])
def test_gradients_through_all_iterations_are_those_of_the_released_code(case: str, form: str) -> None:
    messages = tensor(f"{case}_uhat").requires_grad_()
    mask = mask_of(GOLDEN[f"{case}_len"], messages.shape[1])
    layer = layer_that_passes_messages(form, messages.detach(), iterations=3)

    vector, _ = layer(messages.flatten(2), mask)
    (vector * tensor(f"{case}_G").flatten(1)).sum().backward()

    assert messages.grad is not None
    torch.testing.assert_close(messages.grad, tensor(f"{case}_{form}_T3_grad"), atol=2e-5, rtol=0)


@pytest.mark.parametrize("form", FORMS)
def test_the_tanh_form_is_the_released_layer(form: str) -> None:
    states, weight, bias = tensor("layer_H"), tensor("layer_W"), tensor("layer_b")
    layer = FORMS[form](states.shape[-1], capsules=5, capsule_size=len(bias) // 5, messages="tanh")
    with torch.no_grad():
        layer.weight.copy_(weight.T.reshape(layer.weight.shape))
        layer.bias.copy_(bias.reshape(layer.bias.shape))

    vector, _ = layer(states, mask_of(GOLDEN["layer_len"], states.shape[1]))

    torch.testing.assert_close(vector, tensor(f"layer_{form}_T3_e"), atol=2e-5, rtol=0)


def test_squash_softmax_and_average_are_the_released_helpers() -> None:
    torch.testing.assert_close(squash(tensor("squash_in")), tensor("squash_out"), atol=2e-6, rtol=0)
    logits = tensor("msoftmax_in")
    mask = mask_of(GOLDEN["msoftmax_len"], logits.shape[1])
    real = mask.any(1)
    torch.testing.assert_close(masked_softmax(logits, mask, dim=1)[real], tensor("msoftmax_out")[real])
    states = tensor("avg_in")
    average, _ = MeanPooling(states.shape[-1])(states, mask_of(GOLDEN["avg_len"], states.shape[1]))
    torch.testing.assert_close(average[real], tensor("avg_out")[real])


def test_the_released_form_of_self_attention() -> None:
    states = tensor("attn_H")
    layer = SelfAttention(states.shape[-1], form="released")
    assert layer.projection is not None
    with torch.no_grad():
        layer.projection.weight.copy_(tensor("attn_W").T)
        layer.projection.bias.copy_(tensor("attn_b"))
        layer.query.copy_(tensor("attn_q").unsqueeze(0))

    vector, weights = layer(states, mask_of(GOLDEN["attn_len"], states.shape[1]))

    torch.testing.assert_close(weights.squeeze(-1), tensor("attn_a"), atol=2e-6, rtol=0)
    torch.testing.assert_close(vector, tensor("attn_out"), atol=2e-6, rtol=0)
