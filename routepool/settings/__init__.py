"""Every setting: declared with its default and its help, put together as presets, changed by name, read from TOML."""

from routepool.settings.choosing import Changes, Typed, assign, parse_assignments, parse_value, value_of
from routepool.settings.declarations import (
    GROUPS,
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
from routepool.settings.parts import AGGREGATORS, ENCODERS, PRETRAINED
from routepool.settings.presets import (
    PRESETS,
    default_preset,
    named_preset,
    preset,
    preset_names,
    pretrained_preset,
    text_settings,
)
from routepool.settings.toml import read_toml, to_toml, toml_value

__all__ = [
    "AGGREGATORS",
    "ENCODERS",
    "GROUPS",
    "LARGEST",
    "OF_LEARNING",
    "PHRASES",
    "PRESETS",
    "PRETRAINED",
    "Changes",
    "ModelConfig",
    "Preset",
    "TextConfig",
    "TrainingConfig",
    "Typed",
    "assign",
    "change",
    "default_preset",
    "named_preset",
    "parse_assignments",
    "parse_value",
    "preset",
    "preset_names",
    "pretrained_preset",
    "read_toml",
    "split_source",
    "text_settings",
    "to_toml",
    "toml_value",
    "value_of",
]
