"""Routing: its two forms against the paper's loop, its trace, and the ways torch can run it."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.reference import route_by_the_paper
from torch import Tensor

from routepool.errors import InputError
from routepool.layers import ReverseRouting, StandardRouting, squash

FORMS = [StandardRouting, ReverseRouting]
Form = type[StandardRouting] | type[ReverseRouting]


def layer_and_text(
    form: Form, *, messages: str = "linear", dtype: torch.dtype = torch.float64, iterations: int = 3, seed: int = 0
) -> tuple[Any, Tensor, Tensor]:
    torch.manual_seed(seed)
    layer = form(6, capsules=3, capsule_size=4, iterations=iterations, messages=messages).to(dtype)
    torch.nn.init.normal_(layer.bias)
    lengths = torch.tensor([5, 1, 3])
    return layer, torch.randn(3, 5, 6, dtype=dtype), torch.arange(5) < lengths.unsqueeze(1)


@pytest.mark.parametrize("messages", ["linear", "tanh"])
@pytest.mark.parametrize("form", FORMS)
@given(iterations=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_both_forms_are_the_loop_of_the_paper(form: Form, messages: str, iterations: int, seed: int) -> None:
    layer, states, mask = layer_and_text(form, messages=messages, iterations=iterations, seed=seed)
    states.requires_grad_()
    wanted = route_by_the_paper(
        states,
        mask.sum(1).tolist(),
        layer.weight,
        layer.bias,
        iterations=iterations,
        reverse=form is ReverseRouting,
        tanh=messages == "tanh",
    )

    vector, coupling = layer(states, mask)

    torch.testing.assert_close(vector, wanted[0].flatten(1), atol=1e-12, rtol=0)
    torch.testing.assert_close(coupling, wanted[1], atol=1e-12, rtol=0)
    inputs = [states, layer.weight, layer.bias]
    ours = torch.autograd.grad(vector.sin().sum(), inputs)
    theirs = torch.autograd.grad(wanted[0].sin().sum(), inputs)
    for gradient, wanted_gradient in zip(ours, theirs, strict=True):
        torch.testing.assert_close(gradient, wanted_gradient, atol=1e-11, rtol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_float32_at_the_papers_size_is_the_loop_to_1e_5(form: Form) -> None:
    torch.manual_seed(0)
    layer = form(400)
    states, lengths = torch.randn(2, 20, 400).tanh(), [20, 7]
    wanted, _ = route_by_the_paper(
        states, lengths, layer.weight, layer.bias, iterations=3, reverse=form is ReverseRouting, tanh=False
    )
    mask = torch.arange(20) < torch.tensor(lengths).unsqueeze(1)
    torch.testing.assert_close(layer(states, mask)[0], wanted.flatten(1), atol=1e-5, rtol=0)


@pytest.mark.parametrize("messages", ["linear", "tanh"])
@pytest.mark.parametrize("form", FORMS)
def test_trace_ends_where_forward_ends(form: Form, messages: str) -> None:
    layer, states, mask = layer_and_text(form, messages=messages)
    vector, coupling = layer(states, mask)
    rounds = layer.trace(states, mask)
    assert len(rounds) == 3
    assert torch.equal(rounds[-1].capsules.flatten(1), vector)
    assert torch.equal(rounds[-1].coupling, coupling)


@pytest.mark.parametrize("form", FORMS)
def test_each_round_of_a_trace_is_the_end_of_a_shorter_routing(form: Form) -> None:
    layer, states, mask = layer_and_text(form)
    for number, of_round in enumerate(layer.trace(states, mask), start=1):
        layer.iterations = number
        vector, coupling = layer(states, mask)
        torch.testing.assert_close(of_round.capsules.flatten(1), vector)
        torch.testing.assert_close(of_round.coupling, coupling)


@pytest.mark.parametrize("form", FORMS)
def test_logits_of_a_trace_are_what_the_coupling_is_the_softmax_of(form: Form) -> None:
    layer, states, mask = layer_and_text(form)
    axis = 1 if form is ReverseRouting else 2
    first, second, _ = layer.trace(states, mask)
    assert not first.logits.any()
    row = slice(0, 1)  # the one without padding
    torch.testing.assert_close(second.coupling[row], second.logits[row].softmax(axis))
    agreement = torch.einsum(
        "btmc,bmc->btm", torch.einsum("btd,mcd->btmc", states, layer.weight) + layer.bias, first.capsules
    )
    torch.testing.assert_close(second.logits[row], agreement[row])


@pytest.mark.parametrize("form", FORMS)
def test_the_capsules_of_a_round_are_the_squashed_sums_of_its_coupled_messages(form: Form) -> None:
    layer, states, mask = layer_and_text(form)
    messages = torch.einsum("btd,mcd->btmc", states, layer.weight) + layer.bias
    for of_round in layer.trace(states, mask):
        sums = torch.einsum("btm,btmc->bmc", of_round.coupling, messages)
        length = sums.square().sum(-1, keepdim=True).sqrt()
        torch.testing.assert_close(of_round.sums, sums)
        torch.testing.assert_close(of_round.norm, length)
        torch.testing.assert_close(of_round.capsules, length / (1 + length**2) * sums)


@pytest.mark.parametrize("iterations", [2, 3, 4, 5])
def test_with_one_capsule_iterations_change_no_bit_of_value_and_gradients(iterations: int) -> None:
    layer, states = StandardRouting(6, capsules=1, capsule_size=4, iterations=1), torch.randn(2, 5, 6)

    def routed() -> list[Tensor]:
        asked = states.clone().requires_grad_()
        vector, _ = layer(asked)
        return [vector, *torch.autograd.grad(vector.square().sum(), [asked, *layer.parameters()])]

    once = routed()
    layer.iterations = iterations
    for found, wanted in zip(routed(), once, strict=True):
        assert torch.equal(found, wanted)


def test_coupling_moves_towards_the_capsule_that_agrees() -> None:
    """Two capsules that read the token directly: 2 x message before squash against 1 x."""
    layer = StandardRouting(1, capsules=2, capsule_size=1, iterations=2).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[[2.0]], [[1.0]]]))
    _, coupling = layer(torch.ones(1, 1, 1, dtype=torch.float64))
    first = 1.0**2 / (1 + 1.0**2)  # squash(2 x 1/2)
    second = 0.5**2 / (1 + 0.5**2)  # squash(1 x 1/2)
    wanted = torch.tensor([2 * first, 1 * second], dtype=torch.float64).softmax(0)
    torch.testing.assert_close(coupling[0, 0], wanted)


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-10, 1.0, 1e10, 1e20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_squash_is_finite_and_its_length_below_one(size: float, dtype: torch.dtype) -> None:
    sums = torch.tensor([[3.0, -4.0]], dtype=dtype).mul(size).requires_grad_()
    capsule = squash(sums)
    torch.autograd.backward(capsule.sum())
    length = (5 * size) ** 2 / (1 + (5 * size) ** 2)
    assert sums.grad is not None
    assert sums.grad.isfinite().all()
    torch.testing.assert_close(
        capsule.float().norm().item(), length, atol=1e-2 if dtype is torch.bfloat16 else 1e-6, rtol=0
    )


@pytest.mark.parametrize("messages", ["linear", "tanh"])
@pytest.mark.parametrize("form", FORMS)
def test_bf16_autocast_stays_near_float32(form: Form, messages: str) -> None:
    layer, states, mask = layer_and_text(form, messages=messages, dtype=torch.float32)
    wanted, _ = layer(states, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vector, coupling = layer(states, mask)
        torch.autograd.backward(vector.float().sum())
    torch.testing.assert_close(vector.float(), wanted, atol=5e-2, rtol=0)
    assert coupling.isfinite().all()
    assert layer.weight.grad.isfinite().all()


@pytest.mark.parametrize("form", FORMS)
def test_linear_routing_trains_in_full_precision_under_autocast_on_a_processor(form: Form) -> None:
    layer, states, mask = layer_and_text(form, messages="linear", dtype=torch.float32)
    halves = states.detach().bfloat16()  # what an encoder under autocast gives
    wanted, _ = layer(halves.float(), mask)
    (slope,) = torch.autograd.grad(wanted.sum(), layer.weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vector, coupling = layer(halves, mask)
    assert vector.dtype == coupling.dtype == torch.float32
    assert torch.equal(vector, wanted)
    assert torch.equal(torch.autograd.grad(vector.sum(), layer.weight)[0], slope)


@pytest.mark.system("g++", "g++")
@pytest.mark.parametrize("messages", ["linear", "tanh"])
def test_compiles_to_the_same_values_and_gradients(messages: str) -> None:
    layer, states, mask = layer_and_text(StandardRouting, messages=messages, dtype=torch.float32)
    compiled = torch.compile(layer, fullgraph=True, dynamic=True)
    for tokens in (5, 3):
        vector, _ = compiled(states[:, :tokens], mask[:, :tokens])  # type: ignore[no-untyped-call]
        wanted, _ = layer(states[:, :tokens], mask[:, :tokens])
        torch.testing.assert_close(vector, wanted, atol=1e-5, rtol=1e-5)
        ours = torch.autograd.grad(vector.sum(), layer.weight)[0]
        torch.testing.assert_close(ours, torch.autograd.grad(wanted.sum(), layer.weight)[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capsules": 0}, "capsules must be a whole number of at least 1, got 0"),
        ({"capsule_size": -3}, "capsule_size must be a whole number of at least 1, got -3"),
        ({"iterations": -1}, "iterations must be a whole number of at least 1, got -1"),
        ({"iterations": 2.0}, "iterations must be a whole number of at least 1, got 2.0"),
        ({"iterations": 101}, "iterations must be at most 100, got 101"),
        ({"capsules": 1001}, "capsules must be at most 1000, got 1001"),
        ({"messages": "relu"}, "messages must be one of linear, tanh, got 'relu'"),
    ],
)
def test_bad_options_say_what_came_and_what_was_wanted(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        StandardRouting(6, **options)


@pytest.mark.parametrize("messages", ["linear", "tanh"])
def test_with_average_a_long_text_said_twice_is_the_same_text(messages: str) -> None:
    torch.manual_seed(0)
    layer = StandardRouting(6, capsules=3, capsule_size=4, messages=messages, average=True).double()
    states = torch.randn(2, 50, 6, dtype=torch.float64)
    once, coupling = layer(states)
    assert coupling.sum(1).min() > 1
    twice, coupling_of_twice = layer(states.repeat(1, 2, 1))
    torch.testing.assert_close(twice, once)
    torch.testing.assert_close(coupling_of_twice, coupling.repeat(1, 2, 1))


@pytest.mark.parametrize("form", [StandardRouting, ReverseRouting])
def test_a_learned_length_is_that_of_every_capsule_and_nothing_has_none(form: Form) -> None:
    torch.manual_seed(0)
    layer = form(6, capsules=3, capsule_size=4, learned_length=True)
    lengths = torch.tensor([0.5, 1.0, 3.0])
    with torch.no_grad():
        layer.get_parameter("length").copy_(lengths.unsqueeze(1))
    vector, _ = layer(torch.randn(3, 5, 6), torch.arange(5) < torch.tensor([[5], [2], [0]]))
    torch.testing.assert_close(vector.unflatten(1, (3, 4)).norm(dim=-1)[:2], lengths.expand(2, -1))
    assert not vector[2].any()


def test_the_gradient_by_hand_of_learned_lengths_is_autograds() -> None:
    torch.manual_seed(0)
    layer = StandardRouting(6, capsules=3, capsule_size=4, learned_length=True, average=True).double()
    states, mask = torch.randn(3, 5, 6, dtype=torch.float64), torch.arange(5) < torch.tensor([[5], [2], [0]])
    wanted = torch.randn(3, 12, dtype=torch.float64)
    found = []
    for by_hand in (True, False):
        layer.gradient_by_hand = by_hand
        needed = states.clone().requires_grad_()
        vector, _ = layer(needed, mask)
        found.append(torch.autograd.grad((vector * wanted).sum(), [needed, *layer.parameters()]))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("by_hand", [True, False])
def test_gradient_by_hand_is_the_switch_between_our_gradient_and_autograds(by_hand: bool) -> None:
    class Switched(StandardRouting):
        gradient_by_hand = by_hand

    layer = Switched(6, capsules=3, capsule_size=4)
    vector, _ = layer(torch.randn(2, 5, 6))
    assert ("LinearRoutingGradientBackward" in names_of_the_graph(vector)) is by_hand
    layer.gradient_by_hand = not by_hand  # of one layer
    vector, _ = layer(torch.randn(2, 5, 6))
    assert ("LinearRoutingGradientBackward" in names_of_the_graph(vector)) is not by_hand


def names_of_the_graph(tensor: Tensor) -> set[str]:
    found, left = set(), [tensor.grad_fn]
    while left:
        if (node := left.pop()) is not None:
            found.add(node.name())
            left += [before for before, _ in node.next_functions]
    return found


def test_with_average_a_text_of_one_token_is_that_of_the_paper() -> None:
    layer, states, mask = layer_and_text(StandardRouting)
    wanted, _ = layer(states[:, :1], mask[:, :1])
    layer.average = True
    torch.testing.assert_close(layer(states[:, :1], mask[:, :1])[0], wanted)


def test_average_of_one_round_is_the_squashed_mean_of_the_messages() -> None:
    layer, states, mask = layer_and_text(StandardRouting, iterations=1)
    layer.average = True
    messages = torch.einsum("btd,mcd->btmc", states, layer.weight) + layer.bias
    for row, length in ((0, 5), (2, 3)):  # an even split gives each of 3 capsules length / 3 tokens: at least 1
        wanted = squash(messages[row, :length].mean(0)).flatten()
        torch.testing.assert_close(layer(states, mask)[0][row], wanted)


def test_average_changes_nothing_in_reverse_routing() -> None:
    layer, states, mask = layer_and_text(ReverseRouting)
    wanted, _ = layer(states, mask)
    layer.average = True
    torch.testing.assert_close(layer(states, mask)[0], wanted)
