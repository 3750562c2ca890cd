"""`--set key=value`, read: typed text -> the values that `routepool.settings.choosing.assign` takes."""

import tomllib
from collections.abc import Sequence
from typing import Any

from routepool.errors import InputError


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
