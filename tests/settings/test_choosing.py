"""Presets, TOML files and --set: any setting can be changed, and a mistyped one suggests the right one."""

import json
from dataclasses import fields
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest
from support.cli_runs import succeed

from routepool.errors import InputError, UnknownNameError
from routepool.registry import Registry
from routepool.settings import (
    AGGREGATORS,
    ENCODERS,
    GROUPS,
    PRETRAINED,
    Changes,
    Preset,
    TextConfig,
    change,
    default_preset,
    named_preset,
    preset,
    preset_names,
    to_toml,
)
from routepool.settings.choosing import parse_assignments, parse_value
from routepool.text import is_document

USUAL = default_preset().model.aggregator_options
SHORT, LONG = ["a short text"], ["A word. " * 31]


def settled(*assignments: str, texts: list[str] = SHORT, data: str = "x.csv", preset: str = "default") -> Preset:
    changes = Changes.of(preset, parse_assignments(assignments))
    return changes.preset(data=data, document=is_document(texts))


@pytest.mark.parametrize("name", preset_names())
def test_a_printed_preset_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(succeed("presets", name).out, encoding="utf-8")
    assert settled(preset=str(file), texts=LONG) == named_preset(name)


def test_settings_of_the_text_are_read_back_too(tmp_path: Path) -> None:
    odd = Preset(default_preset().model, default_preset().training, TextConfig(separator='"\\é', max_words=7))
    file = tmp_path / "mine.toml"
    file.write_text(to_toml(odd), encoding="utf-8")
    assert settled(preset=str(file)) == odd


def test_a_short_file_changes_its_base(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "paper-sst2"\n[training]\nepochs = 3\n', encoding="utf-8")
    base = preset("paper-sst2")
    assert settled(preset=str(file)) == Preset(base.model, change(base.training, epochs=3))
    file.write_text("[training]\nepochs = 3\n", encoding="utf-8")
    assert settled(preset=str(file)).model == default_preset().model


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[training]\nepoch = 3", "unknown setting 'epoch', did you mean 'epochs'?"),
        ("[trainning]\nepochs = 3", "unknown table 'trainning', did you mean 'training'?"),
        ("model = 3", "model must be a table"),
        ("base = 3", "base must be the name of a preset"),
        ('base = "papper"', "unknown preset 'papper', did you mean 'paper'?"),
        ("epochs", "not a TOML file"),
    ],
)
def test_a_wrong_file_is_named_with_its_error(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as error:
        settled(preset=str(file))
    assert message in str(error.value)


def test_paper_is_the_row_of_the_set_or_of_the_set_most_like_it() -> None:
    assert settled(preset="paper", data="yelp2013").training == preset("paper-yelp2013").training
    assert settled(preset="paper").training == preset("paper-sst2").training
    assert settled(preset="released", texts=LONG) == preset("released-imdb")


def test_max_and_mean_pooling_are_flat_in_the_paper() -> None:
    for family, pooling in [("paper", "max"), ("paper-imdb", "mean"), ("released", "mean")]:
        assert settled(f"aggregator={pooling}", preset=family, texts=LONG).model.depth == 1
        assert settled(f"aggregator={pooling}", "depth=2", preset=family, texts=LONG).model.depth == 2
    assert settled("aggregator=max", texts=LONG).model.depth == 2
    assert settled("aggregator=attention", preset="paper", texts=LONG).model.depth == 2


@pytest.mark.parametrize(("data", "separator"), [("sst2", ""), ("imdb", "<sssss>")])
def test_sets_that_come_tokenised_are_split_on_spaces(data: str, separator: str) -> None:
    assert settled(data=data).text == TextConfig(split="spaces", separator=separator)


def test_long_texts_are_documents_unless_told() -> None:
    assert settled(texts=LONG) == default_preset(document=True)
    assert settled(texts=["A word. " * 30]).model.depth == 1
    assert settled(texts=["word " * 61]).model.depth == 1  # no sentence ends
    assert settled("depth=1", texts=LONG) == default_preset()
    assert settled("depth=2") == default_preset(document=True)


@pytest.mark.parametrize(
    ("assignment", "group", "name", "value"),
    [
        ("epochs=7", "training", "epochs", 7),
        ("dropout=0", "model", "dropout", 0.0),
        ("learning_rate=1e-4", "training", "learning_rate", 1e-4),
        ("sparse=false", "training", "sparse", False),
        ("split=spaces", "text", "split", "spaces"),
        ('separator="|"', "text", "separator", "|"),
        ("separator=1", "text", "separator", "1"),
        ("dropout_places=encoder,tanh", "model", "dropout_places", ("encoder", "tanh")),
        ('dropout_places=["encoder"]', "model", "dropout_places", ("encoder",)),
        ("capsules=7", "model", "aggregator_options", {**USUAL, "capsules": 7}),
        ("average=false", "model", "aggregator_options", {**USUAL, "average": False}),
        ("aggregator_options={rows = 3}", "model", "aggregator_options", {"rows": 3}),
    ],
)
def test_any_setting_can_be_set(assignment: str, group: str, name: str, value: object) -> None:
    assert getattr(getattr(settled(assignment), group), name) == value


def test_the_options_are_those_of_the_chosen_classes() -> None:
    model = settled("widths=2,3", "encoder=cnn", "aggregator=max").model
    assert (model.encoder_options, model.aggregator_options) == ({"widths": (2, 3)}, {})
    assert settled("aggregator=reverse-routing").model.aggregator_options == USUAL
    with pytest.raises(UnknownNameError, match="unknown setting 'capsules'"):
        settled("capsules=3", "aggregator=max")


def test_no_option_of_a_class_has_the_name_of_a_setting() -> None:
    settings = {item.name for group in GROUPS.values() for item in fields(group)}
    tables: tuple[Registry[Any], ...] = (AGGREGATORS, ENCODERS, PRETRAINED)
    for cls in (table[name] for table in tables for name in table.names()):
        options = {name for name, item in signature(cls).parameters.items() if item.kind is Parameter.KEYWORD_ONLY}
        assert not options & settings, f"--set could not reach it: {cls.__name__}"


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("learning_rat=1", "did you mean 'learning_rate'?"),
        ("capsule=1", "did you mean 'capsules'?"),
        ("epochs=2.5", "epochs must be a whole number, got 2.5"),
        ("epochs=many", "epochs must be a whole number, got 'many'"),
        ("epochs=0", "epochs must be at least 1"),
        ("dropout=nan", "dropout must be at least 0"),
        ("aggregator=rooting", "did you mean 'routing'?"),
        ("epochs", "--set wants key=value"),
    ],
)
def test_a_wrong_assignment_says_what_was_wanted(assignment: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        settled(assignment)
    assert message in str(error.value)


def test_a_value_cannot_smuggle_in_another_key() -> None:
    assert parse_value("3\nother = 4", 1) == 3


@pytest.mark.parametrize("name", preset_names())
def test_settings_are_written_to_json_and_read_back(name: str) -> None:
    assert Preset.from_dict(json.loads(json.dumps(named_preset(name).to_dict()))) == named_preset(name)


def test_presets_are_listed() -> None:
    listed = [line.split()[0] for line in succeed("presets").out.splitlines()]
    assert listed == preset_names()
