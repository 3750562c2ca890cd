"""manifest.json: which files belong together, by size and SHA-256, and a digest of that list itself."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from routepool.errors import InputError
from routepool.files.caching import digest_of
from routepool.files.disk import Entry, parse_json, read_file, temporary, to_json

MANIFEST = "manifest.json"
FORMAT_VERSION = 1  # of model folders and checkpoints
_AT_MOST = 100_000  # bytes: a manifest has a line or four for each of three files
_SHA256 = re.compile("[0-9a-f]{64}")


def seal(entries: Sequence[Entry]) -> bytes:
    """The content of a manifest for these files."""
    values = {"format_version": FORMAT_VERSION, "files": [entry._asdict() for entry in entries]}
    return to_json({**values, "sha256": _digest(values)})


def read_manifest(folder: Path, names: Collection[str]) -> list[Entry]:
    """The entries of a folder's manifest, which must list exactly these names: no path can be smuggled in."""
    path = folder / MANIFEST
    values = parse_json(path, read_file(path, at_most=_AT_MOST))
    digest = values.pop("sha256", None)
    if digest != _digest(values):
        raise InputError(f"{path}: it is damaged, its digest is not that of its content; copy the folder again")
    check_version(path, values.get("format_version"))
    entries = [_entry(path, item) for item in _items(path, values.get("files"))]
    if sorted(entry.name for entry in entries) != sorted(names):
        listed = ", ".join(repr(entry.name) for entry in entries)
        raise InputError(f"{path}: wanted it to list {', '.join(names)}, got {listed:.200}; copy the folder again")
    return entries


def has_manifest(folder: Path) -> bool:
    """Did routepool write the manifest there, in this format or another? Its digest tells."""
    path = folder / MANIFEST
    try:
        values = parse_json(path, read_file(path, at_most=_AT_MOST))
    except InputError:
        return False
    return bool(values.pop("sha256", None) == _digest(values))


def read_entry(folder: Path, entry: Entry) -> tuple[Path, bytes]:
    """The content a manifest promises, and where it was."""
    for path in _places(folder, entry):
        content = read_file(path, at_most=entry.size)
        if len(content) == entry.size and hashlib.sha256(content).hexdigest() == entry.sha256:
            return path, content
    raise _refusal(folder, entry)


def place_of(folder: Path, entry: Entry) -> Path:
    """Where the file is that a manifest promises, by its size; its hash is asked for only between two of one size."""
    places = _places(folder, entry)
    if len(places) > 1:
        places = [path for path in places if digest_of(path) == entry.sha256]
    if not places:
        raise _refusal(folder, entry)
    return places[0]


def check_version(path: Path, version: Any) -> int:
    """The version of a file's format, if this routepool can read it."""
    if type(version) is not int or version < 1:
        raise InputError(f"{path}: wanted a format_version from 1 to {FORMAT_VERSION}, got {version!r:.80}")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path}: made by a newer routepool (format {version}, this one reads up to {FORMAT_VERSION}): upgrade, "
            "pip install -U routepool"
        )
    return version


def _digest(values: Mapping[str, Any]) -> str:
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _items(path: Path, files: Any) -> list[dict[str, Any]]:
    if not isinstance(files, list) or not all(isinstance(item, dict) for item in files):
        raise InputError(f"{path}: wanted a list of files, got {files!r:.80}; copy the folder again")
    return files


def _entry(path: Path, item: dict[str, Any]) -> Entry:
    name, size, sha256 = (item.get(key) for key in Entry._fields)
    named = isinstance(name, str) and isinstance(sha256, str) and _SHA256.fullmatch(sha256)
    if not named or type(size) is not int or size < 0:
        raise InputError(f"{path}: wanted name, size and sha256 of a file, got {item!r:.200}; copy the folder again")
    return Entry(str(name), size, str(sha256))


def _places(folder: Path, entry: Entry) -> list[Path]:
    """Files of the right size under both names.

    A save that was killed just after its manifest was in place leaves files under their temporary names: the hash
    tells them from others.
    """
    usual = folder / entry.name
    return [path for path in (usual, temporary(usual)) if path.is_file() and _size(path) == entry.size]


def _refusal(folder: Path, entry: Entry) -> InputError:
    path = folder / entry.name
    return InputError(f"{path}: {_difference(path, entry)}; copy the folder again or train again")


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _difference(path: Path, entry: Entry) -> str:
    size = _size(path)
    if size is None:
        return "the file is missing or cannot be read"
    if size != entry.size:
        return f"wanted {entry.size} bytes, got {size}"
    return f"the file is damaged, its SHA-256 is not the {entry.sha256[:12]}... of {MANIFEST}"
