"""Settings: checked, written and read back; the presets against table 2 of the paper."""

import json
from typing import Any

import pytest

from routepool.errors import InputError, UnknownNameError
from routepool.settings import PRESETS, ModelConfig, TrainingConfig, change, preset

# Rows of table 2 that differ between the sets: lambda, learning rate, decay, its steps, batch, its low bound, dropout.
TABLE_2 = {
    "yelp2013": (1e-5, 0.0001, 0.9, 1000, 32, 32, 0.2),
    "yelp2014": (1e-5, 0.0002, 0.9, 1000, 32, 32, 0.2),
    "imdb": (1e-6, 0.0001, 0.95, 1000, 32, 32, 0.2),
    "sst1": (1e-6, 0.0001, 0.95, 500, 64, 16, 0.2),
    "sst2": (1e-5, 0.0003, 0.95, 500, 64, 16, 0.5),
}
# The settings files of the released code: the same but for these two sets.
RELEASED = {
    **TABLE_2,
    "imdb": (1e-6, 0.0002, 0.9, 1000, 32, 32, 0.2),
    "sst2": (1e-6, 0.0003, 0.9, 1000, 64, 16, 0.5),
}


def row(name: str, regularisation: float) -> tuple[Any, ...]:
    model, training = preset(name).model, preset(name).training
    batch = (training.batch_size, training.smallest_batch)
    return (regularisation, training.learning_rate, training.decay, training.decay_steps, *batch, model.dropout)


@pytest.mark.parametrize("dataset", TABLE_2)
def test_paper_presets_are_table_2(dataset: str) -> None:
    settings = preset(f"paper-{dataset}")
    assert row(f"paper-{dataset}", settings.training.l2) == TABLE_2[dataset]
    model = settings.model
    assert (model.embedding_size, model.hidden_size, model.aggregator, model.aggregator_options) == (
        300,
        200,
        "routing",
        {},
    )
    assert (model.depth, model.dropout_places) == (1 if dataset.startswith("sst") else 2, ("encoder", "hidden"))
    assert settings.training.patience == 7


@pytest.mark.parametrize("dataset", RELEASED)
def test_released_presets_are_the_settings_files_of_the_code(dataset: str) -> None:
    settings = preset(f"released-{dataset}")
    assert row(f"released-{dataset}", 2 * settings.training.l2) == RELEASED[dataset]  # its loss has lambda / 2
    assert settings.model.aggregator_options == {"capsule_size": 400, "messages": "tanh"}
    assert settings.model.dropout_places == ("embedding", "aggregator", "tanh")
    assert (settings.training.patience, settings.training.l2_on) == (8, "weights")


def test_table_2_is_also_what_the_routing_layer_starts_with() -> None:
    from routepool import StandardRouting

    layer = StandardRouting(400)
    assert (layer.capsules, layer.capsule_size, layer.iterations, layer.messages) == (5, 200, 3, "linear")


@pytest.mark.parametrize("name", PRESETS)
def test_settings_survive_json(name: str) -> None:
    for settings in (preset(name).model, preset(name).training):
        assert type(settings).from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"hidden_size": 2.5}, "hidden_size must be a whole number, got 2.5"),
        ({"hidden_size": True}, "hidden_size must be a whole number, got True"),
        ({"hidden_size": 2**16 + 1}, "hidden_size must be at most 65536, got 65537"),
        ({"depth": 9}, "depth must be at most 8, got 9"),
        ({"dropout": 1.0}, "dropout must be at most 0.99, got 1.0"),
        ({"dropout": float("nan")}, "dropout must be at least 0.0, got nan"),
        ({"dropout_places": ("encoder", "hiden")}, "dropout_places must be one of embedding, .*, got 'hiden'"),
        ({"encoder": 3}, "encoder must be a name, got 3"),
        ({"aggregator_options": ["capsules"]}, "aggregator_options must be a table of options"),
    ],
)
def test_a_bad_value_says_what_came_and_what_was_wanted(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ModelConfig(**settings)


def test_a_mistyped_name_suggests_the_right_one() -> None:
    with pytest.raises(UnknownNameError, match="unknown setting 'learning_rat', did you mean 'learning_rate'"):
        change(TrainingConfig(), learning_rat=0.1)
    with pytest.raises(UnknownNameError, match="unknown setting 'hiddensize', did you mean 'hidden_size'"):
        ModelConfig.from_dict({"hiddensize": 3})
    with pytest.raises(UnknownNameError, match="unknown preset 'paper-sst3', did you mean 'paper-sst"):
        preset("paper-sst3")
