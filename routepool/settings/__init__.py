"""Every setting: declared with its default and its help, put together as presets, changed by name, read from TOML."""

from routepool.settings.assignments import parse_assignments, parse_value
from routepool.settings.choosing import (
    GROUPS,
    as_flat_as_the_paper,
    assign,
    change_group,
    default_preset,
    named_preset,
    preset_names,
    pretrained_preset,
    set_field,
)
from routepool.settings.declarations import (
    LARGEST,
    OF_LEARNING,
    PHRASES,
    ModelConfig,
    Preset,
    TextConfig,
    TrainingConfig,
    change,
    split_source,
)
from routepool.settings.parts import AGGREGATORS, ENCODERS, HEADS, PRETRAINED
from routepool.settings.presets import PRESETS, preset
from routepool.settings.toml import PresetFile, read_preset, read_toml, to_toml, toml_value

__all__ = [
    "AGGREGATORS",
    "ENCODERS",
    "GROUPS",
    "HEADS",
    "LARGEST",
    "OF_LEARNING",
    "PHRASES",
    "PRESETS",
    "PRETRAINED",
    "ModelConfig",
    "Preset",
    "PresetFile",
    "TextConfig",
    "TrainingConfig",
    "as_flat_as_the_paper",
    "assign",
    "change",
    "change_group",
    "default_preset",
    "named_preset",
    "parse_assignments",
    "parse_value",
    "preset",
    "preset_names",
    "pretrained_preset",
    "read_preset",
    "read_toml",
    "set_field",
    "split_source",
    "to_toml",
    "toml_value",
]
