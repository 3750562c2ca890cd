"""One step of the optimiser, against arithmetic: penalty, clipping, lazy word vectors, frozen rows, falling rates."""

import math
from collections.abc import Mapping

import pytest
import torch
from support import planted
from support.model_folders import tiny_model
from torch import Tensor

from routepool.errors import InputError
from routepool.model import Classifier
from routepool.settings import TrainingConfig
from routepool.training import EpochReport, Hook, learning_rate
from routepool.training.optimizer import Optimizer

RATE, EPSILON = 0.1, 1e-8
TABLE, WEIGHT, BIAS = "levels.0.embedding.weight", "head.output.weight", "head.output.bias"


def model_and_optimizer(**settings: object) -> tuple[Classifier, Optimizer]:
    config = TrainingConfig(**{"l2": 0.0, **settings})  # type: ignore[arg-type]
    model = tiny_model().classifier
    model.get_submodule("levels.0.embedding").sparse = config.sparse  # type: ignore[assignment]
    return model, Optimizer(model, config)


def first_adam_step(gradient: Tensor) -> Tensor:
    """Of Adam's first step the corrected moments are g and g squared: it moves by rate x g / (|g| + epsilon)."""
    return RATE * gradient / (gradient.abs() + EPSILON)


def moved(model: Classifier, optimizer: Optimizer, gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """By how much one step lowers the parameters that have gradients."""
    parameters = dict(model.named_parameters())
    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    for name, gradient in gradients.items():
        parameters[name].grad = gradient.clone()
    optimizer.step(RATE)
    return {name: before[name] - parameters[name].detach() for name in gradients}


def sparse_rows(rows: list[int], values: Tensor, table: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(torch.tensor([rows]), values, table.shape, check_invariants=True)


def test_the_penalty_is_part_of_the_gradient_and_added_before_clipping() -> None:
    model, optimizer = model_and_optimizer(l2=0.25, clip=0.5)
    weight = model.get_parameter(WEIGHT)
    with torch.no_grad():
        weight.fill_(0.4).view(-1)[0] = -3.0
    gradient = torch.full_like(weight, -0.2)
    caught: list[Tensor] = []
    optimizer.adam.register_step_pre_hook(lambda *_: caught.append(weight.grad.clone()))  # type: ignore[union-attr]
    moved(model, optimizer, {WEIGHT: gradient})
    expected = torch.full_like(weight, -0.2 + 2 * 0.25 * 0.4)  # 2 lambda theta: 0 here, where AdamW would still move
    expected.view(-1)[0] = -0.5  # -0.2 + 2 x 0.25 x -3 = -1.7, clipped
    torch.testing.assert_close(caught[0], expected)


@pytest.mark.parametrize(("on", "expected"), [("all", 1.0 + 2 * 0.5 * 3.0), ("weights", 1.0)])
def test_biases_are_penalised_only_under_l2_on_all(on: str, expected: float) -> None:
    model, optimizer = model_and_optimizer(l2=0.5, l2_on=on, clip=100.0)
    caught: dict[str, float] = {}
    parameters = {name: model.get_parameter(name) for name in (WEIGHT, BIAS)}
    for parameter in parameters.values():
        torch.nn.init.constant_(parameter, 3.0)
        parameter.grad = torch.ones_like(parameter)

    def look(*_: object) -> None:
        caught.update({name: float(each.grad.max()) for name, each in parameters.items() if each.grad is not None})

    optimizer.adam.register_step_pre_hook(look)
    optimizer.step(RATE)
    assert caught == {WEIGHT: 1.0 + 2 * 0.5 * 3.0, BIAS: expected}


def test_every_bias_of_the_model_counts_as_one() -> None:
    _, optimizer = model_and_optimizer(l2=0.5, l2_on="weights")
    penalised = {id(parameter) for parameter in optimizer.penalised}
    free = {name for name, each in optimizer.dense.items() if id(each) not in penalised}
    assert free == {
        *(f"levels.0.encoder.{way}.bias_{kind}_l0" for way in ("forwards", "backwards") for kind in ("ih", "hh")),
        "levels.0.aggregator.bias", "head.hidden.bias", "head.output.bias",
    }  # fmt: skip


@pytest.mark.parametrize("on_embeddings", [False, True])
def test_word_vectors_are_penalised_only_on_request(on_embeddings: bool) -> None:
    model, optimizer = model_and_optimizer(l2=0.5, l2_on_embeddings=on_embeddings, sparse=False)
    table = model.get_parameter(TABLE)
    torch.nn.init.constant_(table, 2.0)
    by = moved(model, optimizer, {TABLE: torch.zeros_like(table)})[TABLE]
    # Clipped or not, the gradient 2 x 0.5 x 2 is positive: Adam's first step is the rate.
    torch.testing.assert_close(by, torch.full_like(table, RATE if on_embeddings else 0.0))


def test_a_penalty_on_word_vectors_with_sparse_updates_is_refused() -> None:
    with pytest.raises(InputError, match=r"l2_on_embeddings .* needs sparse=false"):
        model_and_optimizer(l2_on_embeddings=True, sparse=True)


@pytest.mark.parametrize("sparse", [True, False])
def test_gradients_are_clipped_by_value_those_of_word_vectors_too(sparse: bool) -> None:
    """Seen in the second moment, which one step leaves at (1 - 0.999) g squared."""
    model, optimizer = model_and_optimizer(clip=2.0, sparse=sparse)
    table = model.get_parameter(TABLE)
    dense = torch.zeros_like(table)
    dense[3] = torch.tensor([5.0, -7.0, 0.5])
    twice = sparse_rows([3, 3], dense[[3, 3]] / 2, table)  # one word at two places
    weight = torch.full_like(model.get_parameter(WEIGHT), -30.0)
    moved(model, optimizer, {TABLE: twice if sparse else dense, WEIGHT: weight})
    squares = {name: tensor for name, tensor in optimizer.tensors().items() if "sq" in name}
    of_table = next(tensor for tensor in squares.values() if tensor.shape == table.shape)
    torch.testing.assert_close(of_table[3], 0.001 * torch.tensor([2.0, 2.0, 0.5]) ** 2)
    of_weight = next(tensor for tensor in squares.values() if tensor.shape == weight.shape)
    torch.testing.assert_close(of_weight, torch.full_like(weight, 0.001 * 2.0**2))


def test_a_lazy_step_equals_a_dense_one_when_every_row_is_touched() -> None:
    steps = {}
    for sparse in (True, False):
        model, optimizer = model_and_optimizer(sparse=sparse)
        rows = len(model.get_parameter(TABLE))
        ids = torch.arange(rows).unsqueeze(0)
        torch.autograd.backward(model(ids, ids >= 0).logsumexp(1).sum())
        optimizer.step(RATE)
        steps[sparse] = {name: parameter.detach() for name, parameter in model.named_parameters()}
    for name, lazy in steps[True].items():
        torch.testing.assert_close(lazy, steps[False][name], rtol=1e-6, atol=1e-7)


def test_a_lazy_step_moves_touched_rows_like_adam_and_leaves_the_others_alone() -> None:
    model, optimizer = model_and_optimizer(sparse=True)
    table = model.get_parameter(TABLE)
    values = torch.tensor([[0.3, -0.2, 0.0], [1.0, 1.5, -0.1]])
    by = moved(model, optimizer, {TABLE: sparse_rows([2, 5], values, table)})[TABLE]
    expected = torch.zeros_like(table)
    expected[[2, 5]] = first_adam_step(values)
    torch.testing.assert_close(by, expected)
    before = table.detach().clone()
    moved(model, optimizer, {TABLE: sparse_rows([5], values[1:], table)})
    assert torch.equal(table[2], before[2])  # a dense Adam would go on with its momentum
    assert not torch.equal(table[5], before[5])


def test_the_moments_come_back_from_a_checkpoint() -> None:
    gradient = torch.tensor([[0.3, -0.2, 0.1]])
    once, twice = (model_and_optimizer(sparse=True) for _ in range(2))
    for _ in range(2):
        sparse = sparse_rows([2], gradient, once[0].get_parameter(TABLE))
        moved(*twice, {TABLE: sparse, WEIGHT: torch.ones(2, 3)})
    moved(*once, {TABLE: sparse, WEIGHT: torch.ones(2, 3)})
    model, optimizer = model_and_optimizer(sparse=True)
    model.load_state_dict(once[0].state_dict())
    optimizer.load(once[1].tensors())
    moved(model, optimizer, {TABLE: sparse, WEIGHT: torch.ones(2, 3)})
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, twice[0].get_parameter(name)), name


def test_the_learning_rate_falls_in_stairs_down_to_its_floor() -> None:
    config = TrainingConfig(learning_rate=3e-4, decay=0.95, decay_steps=500, lowest_rate=1e-5)
    expected = {0: 3e-4, 499: 3e-4, 500: 3e-4 * 0.95, 999: 3e-4 * 0.95, 1000: 3e-4 * 0.95**2, 10**6: 1e-5}
    assert {step: learning_rate(config, step) for step in expected} == pytest.approx(expected)
    last_above = math.floor(math.log(1e-5 / 3e-4) / math.log(0.95))  # stairs until the floor
    assert learning_rate(config, 500 * last_above) > 1e-5
    assert learning_rate(config, 500 * (last_above + 1)) == 1e-5


def test_a_floor_above_the_initial_rate_does_not_raise_it() -> None:
    assert learning_rate(TrainingConfig(learning_rate=1e-6, lowest_rate=1e-5), 0) == 1e-6


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("which", ["known", "unknown"])
def test_frozen_rows_keep_still_for_their_epochs_and_then_learn(which: str, sparse: bool) -> None:
    made = planted.train(planted.tiny(epochs=1)).saved
    start = made.classifier.get_parameter(TABLE).detach().clone()
    known = torch.arange(len(start)) % 2 == 0
    frozen = known if which == "known" else ~known
    tables: list[Tensor] = []
    l2 = {"l2": 0.01, "l2_on_embeddings": not sparse}  # a penalty must not move them either
    made.classifier.get_submodule("levels.0.embedding").sparse = sparse  # type: ignore[assignment]
    config = planted.tiny(epochs=3, frozen_epochs=2, frozen_rows=which, sparse=sparse, **l2).training

    class Watching(Hook):
        def on_epoch(self, report: EpochReport) -> None:
            tables.append(made.classifier.get_parameter(TABLE).detach().clone())

    planted.trainer(made, config, known=known, hooks=[Watching()]).fit()
    for table in tables[:2]:
        assert torch.equal(table[frozen], start[frozen])
        assert not torch.equal(table[~frozen], start[~frozen])
    assert (tables[2] != start)[frozen].any(1).sum() > 0.8 * frozen.sum() - 2  # padding and unknown words never come
    assert torch.equal(tables[2][0], torch.zeros(16))
