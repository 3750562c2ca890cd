"""Files that reach the disk whole or fail in one sentence, and reading that trusts nothing it finds."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from routepool.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")


class Entry(NamedTuple):
    """What a manifest says of a file."""

    name: str
    size: int
    sha256: str


def temporary(path: Path) -> Path:
    """The name a file or folder has in the same place until it is complete."""
    return path.with_name(f".{path.name}.new")


def write_file(path: Path, chunks: Iterable[bytes | memoryview], *, name: str | None = None) -> Entry:
    """Write a new file through to the disk, hashed on the way.

    Args:
        path: must not exist, so that nothing is written through a link.
        chunks: the content.
        name: the one for the manifest, if the path is only temporary.
    """
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    return Entry(name or path.name, size, digest.hexdigest())


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in its place, whole or not at all, whatever was there before."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = temporary(path)
        part.unlink(missing_ok=True)
        try:
            write_file(part, [content])
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system knows how."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn a full disk, a read-only folder and the like into one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written ({error.strerror or error}); free some space there or choose a folder "
            "you may write to, then run the same command again"
        ) from error


def foreign(path: Path, otherwise: str) -> InputError:
    """The error for a file in the way that is not known to be ours."""
    return InputError(
        f"{path}: routepool did not write it, or {otherwise}; move it away or choose another folder, it is not replaced"
    )


def read_file(path: Path, *, at_most: int) -> bytes:
    """The content of a regular file; a longer one is refused unread."""
    try:
        if not path.is_file() and path.exists():  # a pipe would never end
            raise InputError(f"{path}: wanted a regular file, got something else; copy the folder again")
        with path.open("rb") as file:
            content = file.read(at_most + 1)
    except MemoryError as error:
        raise InputError(f"{path}: it does not fit in memory; use a machine with more") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{path}: cannot be read ({_reason(error)}); correct the path or copy it again") from error
    if len(content) > at_most:
        raise InputError(f"{path}: wanted at most {at_most} bytes, got more; copy the folder again")
    return content


def stat_folder(folder: Path, wanted: str) -> None:
    """Refuse what is missing or no folder, in one sentence that says what was wanted."""
    try:
        folder.stat()
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: wanted {wanted}, got nothing ({_reason(error)}); correct the path") from error
    if not folder.is_dir():
        raise InputError(f"{folder}: wanted {wanted}, got a file; correct the path")


def told(path: Path, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call a function that reads a file's content, and name the file in its error."""
    try:
        return function(*args, **options)
    except InputError as error:
        raise InputError(f"{path}: {error}; copy the folder again or train again") from error
    except RecursionError as error:
        raise InputError(f"{path}: it is nested too deeply; copy the folder again or train again") from error


def _reason(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def to_json(values: Any) -> bytes:
    """JSON for people to read; a lone surrogate, which has no UTF-8 form, becomes JSON's own escape."""
    try:
        text = json.dumps(values, ensure_ascii=False, indent=2)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"wanted values that JSON can hold, got one it cannot ({error}); leave it out") from error
    return (text + "\n").encode("utf-8", "backslashreplace")


def parse_json(path: Path, content: bytes) -> dict[str, Any]:
    """The table in a JSON file."""
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: wanted JSON, got something else ({error}); copy the folder again") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: wanted a JSON table, got {values!r:.80}; copy the folder again")
    return values
