"""Which settings a model is trained with: a preset, a file's tables, options, --set; each later one wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from routepool.cli.assignments import assign, change_group, parse_assignments, parse_value, set_field
from routepool.cli.options import GROUPS
from routepool.cli.toml import PresetFile, read_preset
from routepool.config import PRESETS, ModelConfig, Preset, TextConfig, TrainingConfig, preset
from routepool.errors import unknown

DOCUMENT_WORDS = 60  # a median above this, and texts are read as sentences of words
FAMILIES = ("paper", "released")
_TOKENISED = {
    **dict.fromkeys(("sst1", "sst2"), TextConfig(split="spaces")),
    **dict.fromkeys(("yelp2013", "yelp2014", "imdb"), TextConfig(split="spaces", separator="<sssss>")),
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a user says about settings.

    Args:
        preset: a name or a TOML file.
        options: settings with an option of their own, None where it was not given.
        assignments: `key=value`, as typed.
    """

    preset: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)
    assignments: Sequence[str] = ()


def default_preset(*, document: bool = False) -> Preset:
    """The settings of a user who names none."""
    batch = 32 if document else 64
    return Preset(
        ModelConfig(depth=2 if document else 1, hidden_size=200, aggregator_options={"average": True}, dropout=0.5),
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
            calibration=0.3,
            frozen_epochs=1,
        ),
    )


def preset_names() -> list[str]:
    """Every name that `named_preset` knows."""
    return ["default", *FAMILIES, *PRESETS]


def named_preset(name: str, *, data: str = "", document: bool = False) -> Preset:
    """The preset of that name; `paper` and `released` are those of the data set, or of the set most like it.

    >>> named_preset("paper", document=True) == preset("paper-imdb")
    True
    """
    if name == "default":
        return default_preset(document=document)
    if name in FAMILIES:
        own = f"{name}-{data}"
        return preset(own if own in PRESETS else f"{name}-imdb" if document else f"{name}-sst2")
    if name not in PRESETS:
        raise unknown("preset", name, preset_names())
    return preset(name)


def resolve(asked: Asked, *, data: str, texts: Sequence[str]) -> Preset:
    """The settings for this data.

    Args:
        asked: what the user says.
        data: the known set's name, or anything else.
        texts: of the training set; long ones make it a set of documents unless a depth is asked for.
    """
    file = PresetFile(asked.preset, {})
    if asked.preset not in preset_names() and _is_file(asked.preset):
        file = read_preset(Path(asked.preset))
    assigned = parse_assignments(asked.assignments)
    depth = parse_value(assigned["depth"], 1) if "depth" in assigned else file.tables.get("model", {}).get("depth")
    document = is_document(texts) if depth is None else depth != 1
    chosen = replace(named_preset(file.base, data=data, document=document), text=text_settings(data))
    for name, table in file.tables.items():
        chosen = change_group(chosen, name, table)
    for key, value in asked.options.items():
        if value is not None:
            chosen = set_field(chosen, key, value)
    return assign(chosen, assigned)


def text_settings(data: str) -> TextConfig:
    """How the texts of a known set are read: some come tokenised."""
    return _TOKENISED.get(data, TextConfig())


def is_document(texts: Sequence[str]) -> bool:
    """Most texts are too long to be read as one sentence."""
    return median(len(text.split()) for text in texts) > DOCUMENT_WORDS


def to_dict(chosen: Preset) -> dict[str, Any]:
    """Plain values, ready for JSON."""
    return {name: getattr(chosen, name).to_dict() for name in GROUPS}


def from_dict(values: Mapping[str, Any]) -> Preset:
    """Read what `to_dict` wrote."""
    return Preset(
        ModelConfig.from_dict(values["model"]),
        TrainingConfig.from_dict(values["training"]),
        TextConfig.from_dict(values["text"]),
    )


def _is_file(name: str) -> bool:
    return name.lower().endswith(".toml") or Path(name).is_file()
