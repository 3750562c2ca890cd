"""The settings a model is trained with: a preset, the tables of a file, and settings changed by name.

The command line and the estimator both choose here.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Self

from routepool.errors import InputError, unknown
from routepool.registry import AGGREGATORS, ENCODERS, PRETRAINED
from routepool.settings.declarations import GROUPS, Preset, change, split_source
from routepool.settings.presets import OF_THE_PAPER, named_preset, preset_names, text_settings
from routepool.settings.toml import Tables, read_preset

_PARTS = ("aggregator", "encoder")
_FIELDS = {item.name: name for name, group in GROUPS.items() for item in fields(group)}


class Typed(str):
    """A value as it is typed: the setting it is for decides whether it is a number, a name or a list."""

    __slots__ = ()


@dataclass(frozen=True)
class Changes:
    """A preset and what is changed in it: by the tables of a file, then by name; each later one wins.

    Args:
        base: the preset's name.
        tables: of a TOML file.
        values: name -> value, plain or `Typed`.

    >>> Changes.of("paper-sst2", {"epochs": Typed("3")}).preset().training.epochs
    3
    """

    base: str
    tables: Tables
    values: Mapping[str, Any]

    @classmethod
    def of(cls, preset: str, values: Mapping[str, Any]) -> Self:
        """Those of a preset, by its name or in a TOML file, and of values by name."""
        if preset not in preset_names() and (preset.lower().endswith(".toml") or Path(preset).is_file()):
            return cls(*read_preset(Path(preset)), values)
        return cls(preset, {}, values)

    def preset(self, *, data: str = "", document: bool = False) -> Preset:
        """The settings that result.

        Args:
            data: the known set's name, or anything else.
            document: read texts sentence by sentence, unless a depth is given.
        """
        depth = self._asked("depth", 1)
        document = document if depth is None else depth != 1
        encoder = str(self._asked("encoder", "") or "")
        options = self.tables.get("model", {}).get("encoder_options")
        of_file = isinstance(options, Mapping) and options.get("frozen")
        frozen = _read(self.values.get("frozen", of_file), False)
        chosen = named_preset(self.base, data=data, document=document, encoder=encoder, frozen=frozen is True)
        cut = {key: getattr(chosen.text, key) for key in ("max_words", "max_sentences")}
        chosen = replace(chosen, text=change(text_settings(data), **cut))
        for name, table in self.tables.items():
            chosen = _change_group(chosen, name, table)
        chosen = assign(chosen, self.values)
        pools = chosen.model.aggregator in ("max", "mean")
        if pools and depth is None and self.base.startswith(OF_THE_PAPER) and chosen.model.depth > 1:
            # There max and average pooling read a document as one sequence; attention and routing do not.
            chosen = replace(chosen, model=change(chosen.model, depth=1))
        return chosen

    def _asked(self, key: str, default: Any) -> Any:
        """The value given for a setting of the model, or None."""
        if key in self.values:
            return _read(self.values[key], default)
        return self.tables.get("model", {}).get(key)


def assign(chosen: Preset, values: Mapping[str, Any]) -> Preset:
    """Settings changed by name: fields of any group, and options of the classes of encoder and aggregator.

    Args:
        chosen: what they are now.
        values: name -> value, plain or `Typed`.

    >>> assign(named_preset("paper-sst2"), {"capsules": 7}).model.aggregator_options
    {'capsules': 7}
    """
    # The names of the classes first: they decide which options there are.
    for key in sorted(values, key=lambda name: (name not in _PARTS, name not in _FIELDS)):
        if key in _FIELDS:
            default = getattr(GROUPS[_FIELDS[key]](), key)
            chosen = _change_group(chosen, _FIELDS[key], {key: _read(values[key], default)})
        else:
            chosen = _set_option(chosen, key, values[key])
    return chosen


def value_of(chosen: Preset, key: str) -> Any:
    """The value of a setting, or of an option that was given to the encoder or the aggregator.

    >>> value_of(named_preset("released-sst2"), "capsule_size")
    400
    """
    if key in _FIELDS:
        return getattr(getattr(chosen, _FIELDS[key]), key)
    return {**chosen.model.encoder_options, **chosen.model.aggregator_options}[key]


def _change_group(chosen: Preset, group: str, values: Mapping[str, Any]) -> Preset:
    """Change settings of one group; a new encoder or aggregator drops the options that its class does not have."""
    before = getattr(chosen, group)
    kept = {}
    for part in _PARTS:
        named = values.get(part)
        if isinstance(named, str) and named != getattr(before, part):
            known = _class_options(part, named)
            options = getattr(before, f"{part}_options")
            kept[f"{part}_options"] = {name: value for name, value in options.items() if name in known}
    return replace(chosen, **{group: change(before, **{**kept, **values})})


def _set_option(chosen: Preset, key: str, given: Any) -> Preset:
    known = {part: _class_options(part, getattr(chosen.model, part)) for part in _PARTS}
    for part, options in known.items():
        if key in options:
            changed = {**getattr(chosen.model, f"{part}_options"), key: _read(given, options[key])}
            return _change_group(chosen, "model", {f"{part}_options": changed})
    raise unknown("setting", key, [*_FIELDS] + [option for options in known.values() for option in options])


def _class_options(part: str, name: str) -> dict[str, Any]:
    kind, source = split_source(name)
    cls: Any = AGGREGATORS[name] if part == "aggregator" else PRETRAINED[kind] if source else ENCODERS[name]
    parameters = signature(cls).parameters.items()
    return {option: item.default for option, item in parameters if item.kind is Parameter.KEYWORD_ONLY}


def _read(given: Any, default: Any) -> Any:
    if isinstance(given, Typed):
        return parse_value(str(given), default)
    return tuple(given) if isinstance(default, tuple) and isinstance(given, list) else given


def parse_assignments(assignments: Sequence[str]) -> dict[str, Typed]:
    """`--set key=value` as it stands on the command line -> values by name."""
    parsed = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set wants key=value, such as --set epochs=10, got {assignment!r}")
        parsed[key.strip()] = Typed(value.strip())
    return parsed


def parse_value(raw: str, default: Any) -> Any:
    """Parse a value for a setting with that default; what cannot be parsed stays a string, which the setting refuses.

    >>> parse_value("1", 0.5), parse_value("true", False), parse_value("3,4", (1, 2)), parse_value("max", "mean")
    (1.0, True, (3, 4), 'max')
    """
    as_list = isinstance(default, tuple) and not raw.startswith("[")
    try:
        value = tomllib.loads(f"value = [{raw}]" if as_list else f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return tuple(part.strip() for part in raw.split(",")) if as_list else raw
    if isinstance(default, str) and not isinstance(value, str):
        return raw
    if isinstance(value, list):
        return tuple(value)
    return float(value) if isinstance(default, float) and type(value) is int else value
