"""Which settings a model is trained with: a preset, a file's tables, options, --set; each later one wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from routepool.settings import (
    GROUPS,
    PHRASES,
    ModelConfig,
    Preset,
    PresetFile,
    TextConfig,
    TrainingConfig,
    as_flat_as_the_paper,
    assign,
    change,
    change_group,
    named_preset,
    parse_assignments,
    parse_value,
    preset_names,
    read_preset,
    set_field,
)

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


def resolve(asked: Asked, *, data: str, texts: Sequence[str]) -> Preset:
    """The settings for this data.

    Args:
        asked: what the user says.
        data: the known set's name, or anything else.
        texts: of the training set; long ones make it a set of documents unless a depth is asked for.
    """
    from routepool.text import is_document  # noqa: PLC0415  `routepool --help` must not wait for its packages

    file = PresetFile(asked.preset, {})
    if asked.preset not in preset_names() and _is_file(asked.preset):
        file = read_preset(Path(asked.preset))
    assigned = parse_assignments(asked.assignments)
    depth = parse_value(assigned["depth"], 1) if "depth" in assigned else file.tables.get("model", {}).get("depth")
    document = is_document(texts, depth)
    model = {**file.tables.get("model", {}), **{key: asked.options[key] for key in asked.options if asked.options[key]}}
    encoder = str(assigned.get("encoder") or model.get("encoder") or "")
    frozen = parse_value(assigned["frozen"], False) if "frozen" in assigned else _frozen_of(model)
    chosen = named_preset(file.base, data=data, document=document, encoder=encoder, frozen=frozen is True)
    chosen = replace(chosen, text=_text_of(chosen, data))
    for name, table in file.tables.items():
        chosen = change_group(chosen, name, table)
    for key, value in asked.options.items():
        if value is not None:
            chosen = set_field(chosen, key, value)
    chosen = assign(chosen, assigned, read=parse_value)
    return as_flat_as_the_paper(file.base, chosen) if depth is None else chosen


def _frozen_of(model: Mapping[str, Any]) -> bool:
    options = model.get("encoder_options")
    return isinstance(options, Mapping) and options.get("frozen") is True


def _text_of(chosen: Preset, data: str) -> TextConfig:
    """As the set is read, and cut where the preset cuts."""
    cut = {key: getattr(chosen.text, key) for key in ("max_words", "max_sentences")}
    return change(text_settings(data), **cut)


def text_settings(data: str) -> TextConfig:
    """How the texts of a known set are read: some come tokenised."""
    return _TOKENISED.get(data.removesuffix(PHRASES), TextConfig())


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
