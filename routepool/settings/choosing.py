"""Which settings a model is trained with: presets by name, and any setting changed by its name.

The command line and the estimator choose alike, because both choose here.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from inspect import Parameter, signature
from typing import Any

from routepool.errors import InputError, unknown
from routepool.settings.declarations import (
    PHRASES,
    ModelConfig,
    Preset,
    Settings,
    TextConfig,
    TrainingConfig,
    change,
    split_source,
)
from routepool.settings.parts import AGGREGATORS, ENCODERS, PRETRAINED
from routepool.settings.presets import PRESETS, preset

OF_THE_PAPER = ("paper", "released")
FAMILIES = (*OF_THE_PAPER, "best", "cnn")
GROUPS: dict[str, type[Settings]] = {"model": ModelConfig, "training": TrainingConfig, "text": TextConfig}

_PARTS = ("aggregator", "encoder")
_FIELDS = {item.name: name for name, group in GROUPS.items() for item in fields(group)}


def default_preset(*, document: bool = False) -> Preset:
    """The settings of a user who names none; benchmarks/kinds.py tells how they do on texts of many kinds."""
    batch, word_dropout, frozen_epochs = (32, 0.0, 1) if document else (64, 0.2, 0)
    options = {"average": True, "capsule_size": 32}
    return Preset(
        ModelConfig(depth=2 if document else 1, hidden_size=64, aggregator_options=options, dropout=0.5),
        TrainingConfig(
            epochs=30,
            patience=5,
            batch_size=batch,
            smallest_batch=batch,
            window=256,
            replacement=False,
            learning_rate=1e-3,
            decay=0.95,
            decay_steps=500,
            l2=1e-6,
            calibration=1.0,
            frozen_epochs=frozen_epochs,
            word_dropout=word_dropout,
        ),
    )


def pretrained_preset(*, document: bool = False, frozen: bool = False) -> Preset:
    """The settings of a user who names nothing but a pre-trained encoder; benchmarks/minilm.py tells how they do."""
    batch, epochs = (64, 20) if frozen else (32, 3)
    chosen = default_preset(document=document)
    sizes: dict[str, Any] = {"hidden_size": 200, "aggregator_options": {"average": True}}
    return Preset(
        change(chosen.model, **sizes, dropout=0.5 if frozen else 0.1),
        change(
            chosen.training,
            epochs=epochs,
            patience=6 if frozen else epochs,
            batch_size=batch,
            smallest_batch=batch,
            window=512,
            word_dropout=0.0,
            learning_rate=3e-4 if frozen else 1e-3,
            encoder_learning_rate=1e-4,
            schedule="linear",
            warmup=0.1,
            lowest_rate=0.0,
            l2=0.0,
        ),
        TextConfig(max_words=0, max_sentences=0),
    )


def preset_names() -> list[str]:
    """Every name that `named_preset` knows."""
    return ["default", *FAMILIES, *PRESETS]


def named_preset(
    name: str, *, data: str = "", document: bool = False, encoder: str = "", frozen: bool = False
) -> Preset:
    """The preset of that name; one of `FAMILIES` is that of the data set, or of the set most like it.

    Args:
        name: one of `preset_names`.
        data: a known set's name, or anything else.
        document: texts are read sentence by sentence.
        encoder: what will be put in; `default` has other settings for a pre-trained one.
        frozen: the pre-trained encoder will not learn.

    >>> named_preset("paper", document=True) == preset("paper-imdb")
    True
    """
    if name == "default":
        pretrained = bool(split_source(encoder)[1])
        return pretrained_preset(document=document, frozen=frozen) if pretrained else default_preset(document=document)
    if name in FAMILIES:
        own = f"{name}-{data.removesuffix(PHRASES)}"
        like_it = f"{name}-imdb" if document else f"{name}-sst2"
        if own not in PRESETS and like_it not in PRESETS:
            raise InputError(f"{name} is for sentences, the texts are documents; take the preset default or paper")
        return preset(own if own in PRESETS else like_it)
    if name not in PRESETS:
        raise unknown("preset", name, preset_names())
    return preset(name)


def as_flat_as_the_paper(name: str, chosen: Preset) -> Preset:
    """Under its presets max and average pooling read a document as one sequence; attention and routing do not."""
    flat = name.startswith(OF_THE_PAPER) and chosen.model.depth > 1 and chosen.model.aggregator in ("max", "mean")
    return set_field(chosen, "depth", 1) if flat else chosen


def assign(
    chosen: Preset, values: Mapping[str, Any], *, read: Callable[[Any, Any], Any] = lambda value, default: value
) -> Preset:
    """Settings changed by name: fields of any group, and options of the classes of encoder and aggregator.

    Args:
        chosen: what they are now.
        values: name -> value.
        read: makes a value of what was given and the setting's default.

    >>> assign(preset("paper-sst2"), {"capsules": 7}).model.aggregator_options
    {'capsules': 7}
    """
    # The names of the classes first: they decide which options there are.
    for key in sorted(values, key=lambda name: (name not in _PARTS, name not in _FIELDS)):
        if key in _FIELDS:
            default = getattr(GROUPS[_FIELDS[key]](), key)
            chosen = set_field(chosen, key, read(values[key], default))
        else:
            chosen = _set_option(chosen, key, values[key], read)
    return chosen


def set_field(chosen: Preset, key: str, value: Any) -> Preset:
    """One setting changed, in whichever group it is."""
    return change_group(chosen, _FIELDS[key], {key: value})


def change_group(chosen: Preset, group: str, values: Mapping[str, Any]) -> Preset:
    """Some settings of one group changed; options that another class does not have go with the class they belong to."""
    before = getattr(chosen, group)
    kept = {}
    for part in _PARTS:
        named = values.get(part)
        if isinstance(named, str) and named != getattr(before, part):
            known = _class_options(part, named)
            options = getattr(before, f"{part}_options")
            kept[f"{part}_options"] = {name: value for name, value in options.items() if name in known}
    return replace(chosen, **{group: change(before, **{**kept, **values})})


def _set_option(chosen: Preset, key: str, given: Any, read: Callable[[Any, Any], Any]) -> Preset:
    known = {part: _class_options(part, getattr(chosen.model, part)) for part in _PARTS}
    for part, options in known.items():
        if key in options:
            changed = {**getattr(chosen.model, f"{part}_options"), key: read(given, options[key])}
            return change_group(chosen, "model", {f"{part}_options": changed})
    raise unknown("setting", key, [*_FIELDS] + [option for options in known.values() for option in options])


def _class_options(part: str, name: str) -> dict[str, Any]:
    kind, source = split_source(name)
    cls: Any = AGGREGATORS[name] if part == "aggregator" else PRETRAINED[kind] if source else ENCODERS[name]
    parameters = signature(cls).parameters.items()
    return {option: item.default for option, item in parameters if item.kind is Parameter.KEYWORD_ONLY}
