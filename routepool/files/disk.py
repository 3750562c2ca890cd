"""Files that are written whole or fail with one sentence, and reading that trusts nothing."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from routepool.errors import InputError


@contextmanager
def whole(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Write a file that gets its name when it is complete; an older file of that name stays until then.

    Args:
        path: in an existing folder.
        sync: wait for the disk; False for files that can be made again and whose damage is noticed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole(Path(folder, "a")) as file:
    ...         _ = file.write(b"content")
    ...     [(path.name, path.read_bytes()) for path in Path(folder).iterdir()]
    [('a', b'content')]
    """
    # A name of its own, so that processes and threads may write the same file at once.
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with fresh_file(part, sync=sync) as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def fresh_file(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Write a file that must not exist, so that nothing is written through a link, through to the disk."""
    with path.open("xb") as file:
        yield file
        if sync:
            file.flush()
            os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Write or replace a file, whole or not at all."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as file:
            file.write(content)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Report a full disk, a read-only folder and the like in one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written ({error.strerror or error}); free some space there or choose a folder "
            "you may write to, then run the same command again"
        ) from error


def foreign(path: Path, otherwise: str) -> InputError:
    """The error for a file in the way that routepool may not have written."""
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
        raise InputError(f"{path}: cannot be read ({reason_of(error)}); correct the path or copy it again") from error
    if len(content) > at_most:
        raise InputError(f"{path}: wanted at most {at_most} bytes, got more; copy the folder again")
    return content


def digest_of(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reason_of(error: OSError | ValueError) -> str:
    """Why a path cannot be used."""
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


def read_json(path: Path, *, at_most: int) -> dict[str, Any]:
    """The table in a JSON file of at most so many bytes."""
    return parse_json(path, read_file(path, at_most=at_most))
