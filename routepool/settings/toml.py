"""Presets as TOML files: tables [model], [training] and [text], and optionally the preset they start from."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from routepool.errors import InputError, unknown
from routepool.settings.declarations import GROUPS, Preset, Settings, TextConfig

_AT_MOST = 100_000  # bytes; every setting with its help has a tenth
_MOST_DOTS = 1000  # of a line: a name of many parts, a.b.c, takes the parser the square of their number
Tables = dict[str, dict[str, Any]]


class PresetFile(NamedTuple):
    """What a TOML file asks for."""

    base: str
    tables: Tables


def read_preset(path: Path) -> PresetFile:
    """Read a file; names of settings are checked here, their values where they are used."""
    base, values = read_toml(path, "`routepool presets default` prints one")
    for name, table in values.items():
        if name not in GROUPS:
            raise _in_file(path, unknown("table", name, ["base", *GROUPS]))
        if not isinstance(table, dict):
            raise InputError(f"{path}: {name} must be a table of settings, [{name}], got {table!r}")
        _check_names(path, table, GROUPS[name])
    return PresetFile(base, values)


def read_toml(path: Path, hint: str) -> tuple[str, dict[str, Any]]:
    """The preset that a file starts from, and its other values; `hint` ends the message of an error."""
    try:
        with path.open("rb") as file:
            content = file.read(_AT_MOST + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); correct the path") from error
    if len(content) > _AT_MOST or any(line.count(b".") > _MOST_DOTS for line in content.splitlines()):
        raise InputError(f"{path}: not a file of settings, it is too long or a line of it has too many dots; {hint}")
    try:
        values = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # ValueError: no UTF-8, no TOML, or a number of thousands of digits
        raise InputError(f"{path}: not a TOML file ({error!s:.200}); {hint}") from error
    base = values.pop("base", "default")
    if not isinstance(base, str):
        raise InputError(f"{path}: base must be the name of a preset, got {base!r:.80}")
    return base, values


def to_toml(preset: Preset, *, complete: bool = False) -> str:
    """A preset as a file to change and train with; each setting's help stands beside it.

    Settings of how text is read are comments, since they depend on the data; a `complete` file sets them.
    """
    lines = []
    for name, settings in (("model", preset.model), ("training", preset.training), ("text", preset.text)):
        lines += ["", f"[{name}]", *_lines(settings, complete=complete)]
    return "\n".join(lines[1:]) + "\n"


def _lines(settings: Settings, *, complete: bool) -> list[str]:
    lines = []
    for item in fields(settings):
        value = getattr(settings, item.name)
        usual = not complete and isinstance(settings, TextConfig) and value == item.default
        lines.append(f"{'# ' if usual else ''}{item.name} = {toml_value(value)}  # {item.metadata['help']}")
    return lines


def toml_value(value: Any) -> str:
    """A value as TOML has it.

    >>> toml_value((1, "a", True)), toml_value({"capsules": 3})
    ('[1, "a", true]', '{ "capsules" = 3 }')
    """
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _check_names(path: Path, table: Mapping[str, Any], group: type[Settings]) -> None:
    known = [item.name for item in fields(group)]
    for key in table:
        if key not in known:
            raise _in_file(path, unknown("setting", key, known))


def _in_file(path: Path, error: InputError) -> InputError:
    return type(error)(f"{path}: {error}")
