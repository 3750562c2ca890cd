"""Every setting: declared with its default and its help, put together as presets, changed by name, read from TOML."""

from routepool.registry import AGGREGATORS, ENCODERS, HEADS, PRETRAINED
from routepool.settings.choosing import Changes, assign
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
from routepool.settings.presets import (
    PRESETS,
    default_preset,
    named_preset,
    preset,
    preset_names,
    pretrained_preset,
    text_settings,
)
from routepool.settings.toml import to_toml

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
    "Changes",
    "ModelConfig",
    "Preset",
    "TextConfig",
    "TrainingConfig",
    "assign",
    "change",
    "default_preset",
    "named_preset",
    "preset",
    "preset_names",
    "pretrained_preset",
    "split_source",
    "text_settings",
    "to_toml",
]
