"""Settings changed by name: `--set key=value`, for fields of any group and options of the chosen classes."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from inspect import Parameter, signature
from typing import Any

from routepool.cli.options import GROUPS
from routepool.config import Preset, change
from routepool.errors import InputError, unknown

_PARTS = ("aggregator", "encoder")
_FIELDS = {item.name: name for name, group in GROUPS.items() for item in fields(group)}


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """`key=value` strings as a table of strings."""
    parsed = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set wants key=value, such as --set epochs=10, got {assignment!r}")
        parsed[key.strip()] = value.strip()
    return parsed


def parse_value(raw: str, default: Any) -> Any:
    """A typed value for a setting with that default; what cannot be parsed stays a string, for the setting to refuse.

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


def assign(chosen: Preset, assigned: Mapping[str, str]) -> Preset:
    """Settings changed by name: fields of any group, and options of the classes of encoder and aggregator."""
    # The names of the classes first: they decide which options there are.
    for key in sorted(assigned, key=lambda name: (name not in _PARTS, name not in _FIELDS)):
        if key in _FIELDS:
            default = getattr(GROUPS[_FIELDS[key]](), key)
            chosen = set_field(chosen, key, parse_value(assigned[key], default))
        else:
            chosen = _set_option(chosen, key, assigned[key])
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


def _set_option(chosen: Preset, key: str, raw: str) -> Preset:
    known = {part: _class_options(part, getattr(chosen.model, part)) for part in _PARTS}
    for part, options in known.items():
        if key in options:
            changed = {**getattr(chosen.model, f"{part}_options"), key: parse_value(raw, options[key])}
            return change_group(chosen, "model", {f"{part}_options": changed})
    raise unknown("setting", key, [*_FIELDS] + [option for options in known.values() for option in options])


def _class_options(part: str, name: str) -> dict[str, Any]:
    # Here and not above: the classes need torch.
    from routepool.aggregation import AGGREGATORS  # noqa: PLC0415
    from routepool.encoding import ENCODERS  # noqa: PLC0415

    cls: Any = AGGREGATORS[name] if part == "aggregator" else ENCODERS[name]
    parameters = signature(cls).parameters.items()
    return {option: item.default for option, item in parameters if item.kind is Parameter.KEYWORD_ONLY}
