"""One model for sentences, documents and deeper texts."""

from typing import Any, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.aggregators import Midrange
from torch import Tensor

from routepool.errors import InputError
from routepool.layers import BiLSTM, Embedding, Head, Perceptron, StandardRouting
from routepool.model import Classifier, Level
from routepool.settings import AGGREGATORS, ENCODERS, HEADS, ModelConfig

SMALL = {"routing": {"capsule_size": 3}, "reverse-routing": {"capsule_size": 3}, "structured-attention": {"rows": 2}}


def build(depth: int = 1, aggregator: str = "routing", **settings: Any) -> Classifier:
    torch.manual_seed(0)
    options = SMALL.get(aggregator, {})
    sizes = {"embedding_size": 6, "hidden_size": 4, "head_size": 5}
    config = ModelConfig(depth=depth, aggregator=aggregator, aggregator_options=options, **{**sizes, **settings})
    return Classifier.build(config, vocabulary_size=50, classes=3).eval()


def draw(shape: tuple[int, ...], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Ids and mask with gaps and empty rows."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 50, shape, generator=generator)
    mask = torch.rand(shape, generator=generator) < 0.6
    mask &= torch.rand((*shape[:-1], 1), generator=generator) < 0.8
    return ids * mask, mask


def of_lengths(lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Ids and mask of a sentence for each length."""
    mask = torch.arange(300) < torch.tensor(lengths).unsqueeze(1)
    return torch.randint(1, 50, mask.shape, generator=torch.Generator().manual_seed(0)) * mask, mask


shapes = st.integers(1, 3).flatmap(lambda depth: st.tuples(*[st.integers(1, 5)] * (depth + 1)))


@pytest.mark.parametrize("aggregator", AGGREGATORS.names())
@pytest.mark.parametrize("encoder", ENCODERS.names())
@given(shape=shapes, seed=st.integers(0, 2**31))
def test_the_dense_path_equals_the_grouped_one(
    encoder: str, aggregator: str, shape: tuple[int, ...], seed: int
) -> None:
    model, (ids, mask) = build(len(shape) - 1, aggregator, encoder=encoder), draw(shape, seed)
    grouped, dense = model.trace(ids, mask), model.trace(ids, mask, grouped=False)
    torch.testing.assert_close(grouped.logits, dense.logits, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(grouped.vector, dense.vector, atol=1e-6, rtol=1e-5)
    for of_grouped, of_dense in zip(grouped.weights, dense.weights, strict=True):
        torch.testing.assert_close(of_grouped, of_dense, atol=1e-6, rtol=1e-5)


@given(shape=shapes, seed=st.integers(0, 2**31))
def test_weights_lie_where_the_text_lies(shape: tuple[int, ...], seed: int) -> None:
    model, (ids, mask) = build(len(shape) - 1), draw(shape, seed)
    trace = model.trace(ids, mask)
    torch.testing.assert_close(trace.logits, model(ids, mask))
    for weights in trace.weights:
        assert weights.shape[:-1] == mask.shape
        torch.testing.assert_close(weights.sum(-1), mask.to(weights.dtype))  # standard routing splits each unit
        mask = mask.any(-1)


@given(shape=shapes, seed=st.integers(0, 2**31), extra=st.integers(1, 4))
def test_more_padding_on_any_axis_changes_nothing(shape: tuple[int, ...], seed: int, extra: int) -> None:
    model, (ids, mask) = build(len(shape) - 1), draw(shape, seed)
    for axis in range(1, len(shape)):
        padding = [size if at != axis else extra for at, size in enumerate(shape)]
        longer = torch.cat([ids, ids.new_zeros(padding)], axis), torch.cat([mask, mask.new_zeros(padding)], axis)
        torch.testing.assert_close(model(*longer), model(ids, mask), atol=1e-6, rtol=1e-5)


def test_empty_sentences_in_a_document_are_skipped() -> None:
    model = build(depth=2)
    ids = torch.tensor([[[5, 6], [0, 0], [7, 0]]])
    without = ids[:, [0, 2]]
    torch.testing.assert_close(model(ids, ids != 0), model(without, without != 0), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_text_of_nothing_has_finite_logits(depth: int) -> None:
    ids = torch.zeros(2, *[3] * depth, dtype=torch.long)
    assert build(depth)(ids, ids != 0).isfinite().all()


@given(lengths=st.lists(st.integers(0, 300), min_size=1, max_size=8), pass_cost=st.sampled_from([0, 64, 1024]))
def test_many_groups_give_the_numbers_and_gradients_of_the_dense_path(lengths: list[int], pass_cost: int) -> None:
    model, (ids, mask) = build().double(), of_lengths(lengths)
    model.levels[0].aggregator.pass_cost = pass_cost  # type: ignore[union-attr]
    logits, gradients = logits_and_gradients(model, ids, mask, grouped=True)
    expected, of_dense = logits_and_gradients(model, ids, mask, grouped=False)
    torch.testing.assert_close(logits, expected)
    torch.testing.assert_close(gradients, of_dense)


def logits_and_gradients(model: Classifier, ids: Tensor, mask: Tensor, *, grouped: bool) -> tuple[Tensor, list[Tensor]]:
    model.zero_grad()
    logits = model(ids, mask, grouped=grouped)
    torch.autograd.backward(logits.square().sum())
    return logits, [parameter.grad.to_dense() for parameter in model.parameters() if parameter.grad is not None]


def test_an_encoder_has_smaller_groups_than_routing() -> None:
    level, (ids, mask) = build().levels[0], of_lengths([3, 200, 0, 200, 3, 3])
    shapes: dict[str, list[tuple[int, ...]]] = {"encoder": [], "aggregator": []}
    for name, seen in shapes.items():
        level.get_submodule(name).register_forward_hook(lambda _, given, __, seen=seen: seen.append(given[1].shape))
    level(ids, mask)
    assert shapes == {"encoder": [(2, 200), (3, 3)], "aggregator": [(5, 200)]}


def test_levels_may_differ_and_share_nothing() -> None:
    words = Level(BiLSTM(6, 4), StandardRouting(8, capsules=2, capsule_size=3), embedding=Embedding(50, 6))
    sentences = Level(ENCODERS["none"](6), AGGREGATORS["mean"](6))
    model = Classifier([words, sentences], Perceptron(6, 3))
    ids, mask = draw((2, 3, 4))
    assert model(ids, mask).shape == (2, 3)


@pytest.mark.parametrize(
    ("places", "dropped"),
    [
        (("encoder", "hidden"), {"levels.0.before_encoder", "levels.1.before_encoder", "head.after_tanh"}),
        (
            ("embedding", "aggregator", "tanh"),
            {"levels.0.before_encoder", "levels.0.after_aggregator", "levels.1.after_aggregator", "head.before_tanh"},
        ),
    ],
)
def test_dropout_lies_where_its_places_say(places: tuple[str, ...], dropped: set[str]) -> None:
    model = build(depth=2, dropout=0.3, dropout_places=places)
    rates = {name: module.p for name, module in model.named_modules() if isinstance(module, torch.nn.Dropout)}
    assert {name for name, rate in rates.items() if rate == 0.3} == dropped
    assert all(rate in (0, 0.3) for rate in rates.values())


def test_weights_start_by_xavier_and_biases_at_zero() -> None:
    model = build(hidden_size=40, embedding_size=60)
    head = model.get_submodule("head.hidden")
    assert isinstance(head, torch.nn.Linear)
    bound = (6 / (head.in_features + head.out_features)) ** 0.5
    assert head.weight.abs().max() <= bound
    assert head.weight.abs().max() > 0.8 * bound
    assert not head.bias.any()


def test_a_new_aggregator_is_one_class() -> None:
    model = build(depth=2, aggregator="midrange")
    ids, mask = draw((2, 3, 4))
    assert model(ids, mask).shape == (2, 3)
    config = ModelConfig(aggregator="midrange", aggregator_options={"share": 0.25})
    level = Classifier.build(config, vocabulary_size=9, classes=2).get_submodule("levels.0")
    assert isinstance(level.aggregator, Midrange)
    assert level.aggregator.share == 0.25


class Listening(Head):
    """Keeps what it is given; its logits are the sums of the vector and of the states."""

    def __init__(self, in_features: int, explained_by: Literal["vector", "states"]) -> None:
        super().__init__(in_features, classes=2)
        self.explained_by = explained_by

    def forward(self, states: Tensor | None, mask: Tensor, vector: Tensor) -> Tensor:
        self.given = (states, mask, vector)
        return torch.stack([vector.sum(-1), vector.sum(-1) if states is None else states.sum((1, 2))], -1)


@pytest.mark.parametrize("grouped", [True, False])
@given(shape=shapes, seed=st.integers(0, 2**31))
def test_a_head_explained_by_states_is_given_what_the_last_aggregator_read(
    grouped: bool, shape: tuple[int, ...], seed: int
) -> None:
    model, (ids, mask) = build(len(shape) - 1), draw(shape, seed)
    vector = model.trace(ids, mask).vector
    aggregator = model.get_submodule(f"levels.{len(shape) - 2}.aggregator")
    model.head = head = Listening(vector.shape[-1], "states")
    model(ids, mask, grouped=grouped)
    states, tokens, given_vector = head.given
    assert states is not None
    for _ in shape[2:]:
        mask = mask.any(-1)
    assert torch.equal(tokens, mask)
    assert not states[~mask].any()
    torch.testing.assert_close(given_vector, vector, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(aggregator(states, mask)[0], vector, atol=1e-6, rtol=1e-5)


def test_for_a_head_explained_by_the_vector_nobody_keeps_states() -> None:
    model, (ids, mask) = build(depth=2), draw((2, 3, 4))
    model.head = head = Listening(15, "vector")
    for grouped in (True, False):
        model(ids, mask, grouped=grouped)
        assert head.given[0] is None


def test_upwards_goes_on_from_what_any_level_made() -> None:
    model, (ids, mask) = build(depth=2), draw((3, 4, 5))
    model.head = Listening(15, "states")
    trace = model.trace(ids, mask)
    sentences = model.get_submodule("levels.0")(ids, mask)
    torch.testing.assert_close(model.upwards(1, sentences, mask.any(-1)).logits, trace.logits, atol=1e-6, rtol=1e-5)
    model.head = Listening(15, "vector")
    alone = model.upwards(2, trace.vector, mask.any(-1).any(-1)).logits
    torch.testing.assert_close(alone, model(ids, mask), atol=1e-6, rtol=1e-5)


def test_the_head_of_a_built_model_is_the_registered_one() -> None:
    assert type(build().head) is HEADS["mlp"]


@pytest.mark.parametrize("depth", [1, 2])
def test_the_dense_path_exports_for_any_batch_and_length(depth: int) -> None:
    model, (ids, mask) = build(depth, encoder="cnn"), draw((2, *[3] * depth))
    axes = {axis: torch.export.Dim(f"axis{axis}") for axis in range(depth + 1)}
    exported = torch.export.export(model, (ids, mask), dynamic_shapes={"ids": axes, "mask": axes}).module()
    other = draw((5, *[4] * depth), seed=1)
    torch.testing.assert_close(exported(*other), model(*other), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("ids", "mask", "message"),
    [
        (torch.ones(2, 3, dtype=torch.long), None, r"a model of 2 levels reads ids of 3 axes, got \(2, 3\)"),
        (torch.ones(2, 3, 4), None, "ids must be whole numbers, got torch.float32"),
        (torch.ones(2, 3, 4, dtype=torch.long), torch.ones(2, 3, 4), r"mask must be bool \(2, 3, 4\) like the ids"),
        (torch.ones(2, 3, 4, dtype=torch.long), torch.ones(2, 3, 5, dtype=torch.bool), r"got torch.bool \(2, 3, 5\)"),
        (torch.full((1, 1, 1), 50), None, "ids must lie between 0 and 49, the vocabulary's last, got 50"),
        (torch.full((1, 1, 1), -1), None, "ids must lie between 0 and 49, the vocabulary's last, got -1"),
    ],
)
def test_bad_input_says_what_came_and_what_was_wanted(ids: Tensor, mask: Tensor | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(depth=2)(ids, torch.ones(ids.shape, dtype=torch.bool) if mask is None else mask)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"aggregator": "rooting"}, "unknown aggregator 'rooting', did you mean 'routing'.*Known: .*attention, .*max"),
        ({"encoder": "transformer"}, "unknown encoder 'transformer'. Known: bigru, bilstm, cnn, none"),
        ({"aggregator_options": {"capsule": 3}}, "unknown option of routing 'capsule', did you mean 'capsules'"),
        ({"encoder_options": {"layers": 2}}, "unknown option of bilstm 'layers'"),
        ({"aggregator_options": {"capsules": 0}}, "capsules must be a whole number of at least 1, got 0"),
    ],
)
def test_settings_that_do_not_fit_say_so(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Classifier.build(ModelConfig(**settings), vocabulary_size=9, classes=2)
