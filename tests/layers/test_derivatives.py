"""What torch may ask of an aggregator beyond a first gradient: its derivatives of any kind, alone and in batches."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
import torch
from support.aggregators import FEATURES, Kind, build, draw, every_aggregator
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, vmap

from routepool.layers import Aggregator, ReverseRouting, StandardRouting

every_routing = pytest.mark.parametrize("form", [StandardRouting, ReverseRouting])
OPTIONS: list[dict[str, Any]] = [
    {},
    {"iterations": 1},
    {"average": True},
    {"learned_length": True},
    {"average": True, "learned_length": True},
]
every_option = pytest.mark.parametrize("options", OPTIONS, ids=str)
Route = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def layer_and_texts(kind: Kind) -> tuple[Aggregator, Tensor, Tensor]:
    """In double precision; the last of three texts is empty, and padding holds anything."""
    states, mask = draw((3, 4, 1), torch.float64)
    mask[2] = False
    return build(kind, torch.float64), states.masked_fill(~mask.unsqueeze(-1), 1e30), mask


def called(layer: Aggregator, parameters: Mapping[str, Tensor], states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    vector, weights = functional_call(layer, dict(parameters), (states, mask))
    return vector, weights


def loss_of(layer: Aggregator, parameters: Mapping[str, Tensor], states: Tensor, mask: Tensor) -> Tensor:
    """Of vector and weights, with a slope of its own for each value of the vector."""
    vector, weights = called(layer, parameters, states, mask)
    slopes = torch.linspace(-1, 2, vector.shape[1], dtype=vector.dtype)
    return torch.dot(vector.sin().sum(0), slopes) + weights.square().sum()


def penalty_of(layer: Aggregator, values: list[Tensor], mask: Tensor) -> Tensor:
    """The squared size of the gradient for states and parameters."""
    states, *parameters = values
    loss = loss_of(layer, dict(zip(dict(layer.named_parameters()), parameters, strict=True)), states, mask)
    gradients = torch.autograd.grad(loss, values, create_graph=True, allow_unused=True, materialize_grads=True)
    return torch.stack([gradient.square().sum() for gradient in gradients]).sum()


@every_aggregator
def test_second_derivatives_are_those_of_finite_differences(kind: Kind) -> None:
    layer, states, mask = layer_and_texts(kind)
    names = list(dict(layer.named_parameters()))

    def outputs(states: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        return called(layer, dict(zip(names, parameters, strict=True)), states, mask)

    states = states.masked_fill(~mask.unsqueeze(-1), 0).requires_grad_()
    assert torch.autograd.gradgradcheck(outputs, (states, *layer.parameters()))


@every_aggregator
def test_a_gradient_penalty_falls_as_its_gradient_says(kind: Kind) -> None:
    layer, states, mask = layer_and_texts(kind)
    values = [value.detach().requires_grad_() for value in (states, *layer.parameters())]
    slopes = torch.autograd.grad(penalty_of(layer, values, mask), values, allow_unused=True, materialize_grads=True)
    steps = [torch.randn_like(value) for value in values]

    def at(distance: float) -> Tensor:
        moved = [value.detach().add(step, alpha=distance) for value, step in zip(values, steps, strict=True)]
        return penalty_of(layer, [value.requires_grad_() for value in moved], mask).detach()

    wanted = (at(1e-5) - at(-1e-5)) / 2e-5
    found = torch.stack([(slope * step).sum() for slope, step in zip(slopes, steps, strict=True)]).sum()
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    assert not slopes[0][~mask].any()


@every_aggregator
def test_torch_func_gives_the_gradients_of_autograd(kind: Kind) -> None:
    layer, states, mask = layer_and_texts(kind)
    parameters: dict[str, Tensor] = dict(layer.named_parameters())
    needed = states.clone().requires_grad_()
    loss = loss_of(layer, parameters, needed, mask)
    wanted = torch.autograd.grad(loss, [*parameters.values(), needed], materialize_grads=True, allow_unused=True)
    of_parameters, of_states = grad(partial(loss_of, layer), argnums=(0, 1))(parameters, states, mask)
    for ours, theirs in zip([*of_parameters.values(), of_states], wanted, strict=True):
        torch.testing.assert_close(ours, theirs)


@every_aggregator
def test_vmap_reads_each_text_as_if_alone(kind: Kind) -> None:
    layer, states, mask = layer_and_texts(kind)
    of_each = vmap(lambda text, real: tuple(found[0] for found in layer(text[None], real[None])))(states, mask)
    for ours, together in zip(of_each, layer(states, mask), strict=True):
        torch.testing.assert_close(ours, together)


@every_aggregator
def test_per_sample_gradients_are_those_of_each_text_alone(kind: Kind) -> None:
    layer, states, mask = layer_and_texts(kind)
    parameters: dict[str, Tensor] = dict(layer.named_parameters())

    def loss(parameters: Mapping[str, Tensor], text: Tensor, real: Tensor) -> Tensor:
        return loss_of(layer, parameters, text[None], real[None])

    of_each = vmap(grad(loss, argnums=(0, 1)), in_dims=(None, 0, 0))(parameters, states, mask)
    for row in range(len(states)):
        of_parameters, of_text = grad(loss, argnums=(0, 1))(parameters, states[row], mask[row])
        torch.testing.assert_close(of_each[1][row], of_text)
        for name, wanted in of_parameters.items():
            torch.testing.assert_close(of_each[0][name][row], wanted)


@every_aggregator
def test_derivatives_forwards_are_those_backwards(kind: Kind) -> None:
    layer, states, mask = layer_and_texts(kind)
    parameters: dict[str, Tensor] = dict(layer.named_parameters())

    def loss(states: Tensor) -> Tensor:
        return loss_of(layer, parameters, states, mask)

    torch.testing.assert_close(jacfwd(loss)(states), jacrev(loss)(states))
    of_autograd = torch.autograd.functional.hessian(loss, states)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(hessian(loss)(states), of_autograd)
    step = torch.randn_like(states)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(states, step)  # type: ignore[no-untyped-call]
        tangent = forward_ad.unpack_dual(loss(dual)).tangent  # type: ignore[no-untyped-call]
    torch.testing.assert_close(tangent, (grad(loss)(states) * step).sum())


@every_aggregator
def test_a_batch_of_gradients_is_each_of_them(kind: Kind) -> None:
    layer, states, mask = layer_and_texts(kind)
    states.requires_grad_()
    vector, _ = layer(states, mask)
    slopes = torch.randn(4, *vector.shape, dtype=vector.dtype)

    def gradient(slope: Tensor, *, batched: bool = False) -> Tensor:
        return torch.autograd.grad(vector, states, slope, retain_graph=True, is_grads_batched=batched)[0]

    wanted = torch.stack([gradient(slope) for slope in slopes])
    torch.testing.assert_close(gradient(slopes, batched=True), wanted)
    torch.testing.assert_close(vmap(gradient)(slopes), wanted)


def routing(form: type[StandardRouting] | type[ReverseRouting], options: dict[str, Any]) -> tuple[Any, Tensor, Tensor]:
    torch.manual_seed(0)
    layer = form(FEATURES, capsules=3, capsule_size=2, **options).double()
    torch.nn.init.normal_(layer.bias)
    states, mask = draw((3, 5, 0), torch.float64)
    return layer, states.requires_grad_(), mask


def through_trace(layer: Any, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    last = layer.trace(states, mask)[-1]
    return last.capsules.flatten(1), last.coupling


def with_penalty(route: Route, states: Tensor, mask: Tensor, layer: Any) -> list[Tensor]:
    """The gradient of a loss and of the size of its gradient, twice over; the states come from the layer's weight."""
    from_weight = states + layer.weight.sum((0, 1))
    vector, coupling = route(from_weight, mask)
    loss = vector.sin().sum() + coupling.square().sum()
    for _ in range(2):
        (slope,) = torch.autograd.grad(loss, states, create_graph=True)
        loss = loss + slope.square().sum()
    return list(torch.autograd.grad(loss, [states, *layer.parameters()]))


@every_option
@every_routing
def test_gradients_of_gradients_of_routing_are_those_through_its_trace(form: Any, options: dict[str, Any]) -> None:
    layer, states, mask = routing(form, options)
    found = with_penalty(layer, states, mask, layer)
    wanted = with_penalty(lambda *text: through_trace(layer, *text), states, mask, layer)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs)


@every_routing
def test_a_gradient_with_a_graph_is_the_one_without(form: Any) -> None:
    layer, states, mask = routing(form, {"average": True, "learned_length": True})
    halves = states.detach().bfloat16().requires_grad_()
    layer.float()
    asked = [halves, *layer.parameters()]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vector, coupling = layer(halves, mask)
        for given in ([vector], [coupling], [vector, coupling]):
            loss = torch.stack([each.square().sum() for each in given]).sum()
            plain = torch.autograd.grad(loss, asked, retain_graph=True)
            for ours, wanted in zip(torch.autograd.grad(loss, asked, create_graph=True), plain, strict=True):
                torch.testing.assert_close(ours, wanted)


def test_the_coupling_of_a_single_round_is_a_constant_with_and_without_a_graph() -> None:
    layer, states, mask = routing(StandardRouting, {"iterations": 1})
    coupling = layer(states, mask)[1].sum()
    for graph in (False, True):
        for gradient in torch.autograd.grad(coupling, [states, *layer.parameters()], create_graph=True):
            assert not gradient.any(), graph


@pytest.mark.parametrize("graph", [False, True])
def test_a_later_change_of_a_layer_does_not_reach_the_backward_pass(graph: bool) -> None:
    layer, states, mask = routing(StandardRouting, {})
    wanted = torch.autograd.grad(layer(states, mask)[0].sin().sum(), states)[0]
    loss = layer(states, mask)[0].sin().sum()
    layer.average, layer.iterations, layer.axis = True, 1, 2
    torch.testing.assert_close(torch.autograd.grad(loss, states, create_graph=graph)[0], wanted)


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-15, 1e-4, 1.0, 300.0, 1e10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@every_aggregator
def test_second_derivatives_are_finite_at_any_size(kind: Kind, dtype: torch.dtype, size: float) -> None:
    layer, (states, mask) = build(kind, dtype), draw((3, 4, 1), dtype)
    mask[2] = False
    values = [value.detach().requires_grad_() for value in (states * size, *layer.parameters())]
    slopes = torch.autograd.grad(penalty_of(layer, values, mask), values, allow_unused=True, materialize_grads=True)
    assert all(slope.isfinite().all() for slope in slopes)
