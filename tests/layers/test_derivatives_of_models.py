"""Derivatives of any kind through encoders and whole models."""

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, jacfwd, jacrev, vmap

from routepool.layers import Encoder
from routepool.layers.blocks import Dropout, LockedDropout
from routepool.model import Classifier
from routepool.settings import ENCODERS, ModelConfig

every_encoder = pytest.mark.parametrize("name", ENCODERS.names())
every_depth = pytest.mark.parametrize("depth", [1, 2])


def encoder_and_text(name: str) -> tuple[Encoder, Tensor, Tensor]:
    torch.manual_seed(0)
    mask = torch.tensor([[True, True, True, True], [True, False, True, False], [False] * 4])
    return ENCODERS[name](3, 2).double(), torch.randn(3, 4, 3, dtype=torch.float64), mask


@every_encoder
def test_second_derivatives_of_an_encoder_are_those_of_finite_differences(name: str) -> None:
    encoder, states, mask = encoder_and_text(name)
    assert torch.autograd.gradgradcheck(lambda states: encoder(states, mask), states.requires_grad_())


@every_encoder
def test_an_encoder_has_its_derivatives_forwards_and_in_torch_func(name: str) -> None:
    encoder, states, mask = encoder_and_text(name)
    wanted = torch.autograd.functional.jacobian(lambda states: encoder(states, mask), states)  # type: ignore[no-untyped-call]
    for jacobian in (jacfwd, jacrev):
        torch.testing.assert_close(jacobian(lambda states: encoder(states, mask))(states), wanted)


@pytest.mark.parametrize("name", ["cnn", "none"])
def test_vmap_encodes_each_text_as_if_alone(name: str) -> None:
    encoder, states, mask = encoder_and_text(name)
    of_each = vmap(lambda text, real: encoder(text[None], real[None])[0])(states, mask)
    torch.testing.assert_close(of_each, encoder(states, mask))


def model_and_ids(encoder: str, depth: int, *, sparse: bool = True) -> tuple[Classifier, Tensor]:
    torch.manual_seed(0)
    config = ModelConfig(
        depth=depth,
        encoder=encoder,
        hidden_size=3,
        embedding_size=4,
        aggregator="routing",
        aggregator_options={"capsules": 3, "capsule_size": 4},
        dropout=0,
    )
    model = Classifier.build(config, vocabulary_size=12, classes=3, sparse=sparse).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ids = torch.randint(1, 12, (3, *[2] * (depth - 1), 5))
    ids[1, ..., 2:] = 0
    return model, ids


def loss_of(model: Classifier, parameters: dict[str, Tensor], ids: Tensor) -> Tensor:
    logits: Tensor = functional_call(model, parameters, (ids, ids != 0))
    return logits.square().sum()


def penalty_of(model: Classifier, parameters: dict[str, Tensor], ids: Tensor) -> Tensor:
    gradients = torch.autograd.grad(loss_of(model, parameters, ids), list(parameters.values()), create_graph=True)
    return torch.stack([gradient.to_dense().square().sum() for gradient in gradients]).sum()


@every_depth
@every_encoder
@pytest.mark.parametrize("sparse", [True, False])
def test_a_gradient_penalty_on_a_model_falls_as_its_gradient_says(name: str, depth: int, sparse: bool) -> None:
    model, ids = model_and_ids(name, depth, sparse=sparse)
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    steps = {key: torch.randn_like(value) for key, value in parameters.items()}

    def at(distance: float) -> Tensor:
        moved = {key: value.detach().add(steps[key], alpha=distance) for key, value in parameters.items()}
        return penalty_of(model, {key: value.requires_grad_() for key, value in moved.items()}, ids).detach()

    slopes = torch.autograd.grad(penalty_of(model, parameters, ids), list(parameters.values()))
    found = torch.stack([(slope.to_dense() * step).sum() for slope, step in zip(slopes, steps.values(), strict=True)])
    torch.testing.assert_close(found.sum(), (at(1e-5) - at(-1e-5)) / 2e-5, atol=1e-6, rtol=1e-5)


@every_depth
@every_encoder
def test_torch_func_gives_the_gradients_of_a_model(name: str, depth: int) -> None:
    model, ids = model_and_ids(name, depth)
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    wanted = torch.autograd.grad(loss_of(model, parameters, ids), list(parameters.values()))
    found = grad(lambda parameters: loss_of(model, parameters, ids))(parameters)
    for ours, theirs in zip(found.values(), wanted, strict=True):
        torch.testing.assert_close(ours, theirs.to_dense())


@every_depth
@pytest.mark.parametrize("name", ["cnn", "none"])
def test_per_sample_gradients_of_a_model_are_those_of_each_text_alone(name: str, depth: int) -> None:
    model, ids = model_and_ids(name, depth)
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    gradient = grad(lambda parameters, text: loss_of(model, parameters, text[None]))
    of_each = vmap(gradient, in_dims=(None, 0))(parameters, ids)
    for row, text in enumerate(ids):
        for key, wanted in gradient(parameters, text).items():
            torch.testing.assert_close(of_each[key][row], wanted)


@pytest.mark.parametrize("dropout", [Dropout(0.5), LockedDropout(0.5)])
def test_vmap_drops_something_else_of_each_text_where_that_is_asked_for(dropout: torch.nn.Module) -> None:
    torch.manual_seed(0)
    texts = torch.ones(2, 1, 5, 100)
    first, second = vmap(dropout, randomness="different")(texts)
    assert not torch.equal(first, second)
    first, second = vmap(dropout, randomness="same")(texts)
    assert torch.equal(first, second)
    assert set(first.unique().tolist()) == {0.0, 2.0}
