"""Vectors as arrays, `.npz` and `.safetensors`: `vectors` (rows, size) and `words_utf8`, joined by newlines.

A text file of vectors is parsed once. After that its rows are read from such a file in the cache folder, found by the
SHA-256 of the text (a second for each gigabyte or two): a text that was moved or touched is not parsed again, a changed
one always is. A damaged cache is made again (`routepool.files.caching`); if it cannot be written, the text is parsed
each time, with a warning.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError  # noqa: N812 - a class with a small name

import numpy as np
from safetensors import SafetensorError, safe_open

from routepool.arrays import Floats32
from routepool.errors import InputError
from routepool.files.caching import default_folder, find, keep
from routepool.files.compression import SwollenError, check_swelling
from routepool.files.disk import digest_of
from routepool.files.headers import Promise, header_of

logger = logging.getLogger(__name__)

Block = tuple[list[str], Floats32]

NAMES = ("vectors", "words_utf8")
SUFFIXES = (".npz", ".safetensors")
_ROWS = 10_000  # converted at once
_LAYOUT = "vectors-2"  # of the cache: count it up when the rules of parsing or naming change
_HEADER = 512  # bytes kept free for the header, which is known only after the last row
_DAMAGE = (OSError, EOFError, KeyError, TypeError, ValueError, MemoryError, BadZipFile, ZlibError, SafetensorError)


def read_table(path: Path) -> Iterator[Block]:
    """The checked rows of a file, which is opened at once; of a safetensors file one block is in memory at a time."""
    try:
        values, joined = _npz(path) if path.suffix.lower() == ".npz" else _safetensors(path)
        shape = tuple(values.shape if isinstance(values, np.ndarray) else values.get_shape())
        words = bytes(joined).decode().split("\n")
        kind = values[:1].dtype.kind
    except SwollenError as error:
        raise InputError(f"{path}: {error}") from error
    except _DAMAGE as error:
        raise InputError(
            f"{path}: wanted the arrays {' and '.join(NAMES)}, got {error!r:.200}; write or download it again"
        ) from error
    if len(shape) != 2 or 0 in shape or shape[0] != len(words) or kind != "f":
        raise InputError(
            f"{path}: wanted a table of floats with a row for each of its {len(words)} words, got shape {shape}"
        )
    return _checked_blocks(path, words, values)


def _npz(path: Path) -> tuple[Any, Any]:
    with ZipFile(path) as archive:
        check_swelling(sum(item.file_size for item in archive.infolist()), path.stat().st_size)
    with np.load(path, allow_pickle=False) as archive:
        return archive[NAMES[0]], archive[NAMES[1]]


def _safetensors(path: Path) -> tuple[Any, Any]:
    file: Any = safe_open(path, framework="numpy")  # its methods are untyped
    return file.get_slice(NAMES[0]), file.get_tensor(NAMES[1])


def _checked_blocks(path: Path, words: list[str], values: Any) -> Iterator[Block]:
    for start in range(0, len(words), _ROWS):
        block = values[start : min(start + _ROWS, len(words))].astype(np.float32)
        finite = np.isfinite(block).all(axis=1)
        if not finite.all():
            row = start + int(finite.argmin())
            raise InputError(
                f"{path}, row {row + 1}: the vector of {words[row]!r} holds NaN or infinity; remove the row"
            )
        yield words[start : start + _ROWS], block


def cached(
    source: Path, member: str, parse: Callable[[], Iterator[Block]], *, folder: Path | None = None
) -> Iterator[Block]:
    """The rows of a text file, from the cache; if they are not in it, they are parsed and put there."""
    folder = (folder or default_folder()) / _LAYOUT
    key = _key(source, member)
    file = find(folder, key)
    if file is None:
        try:
            file = keep(folder, key, lambda output: _write(output, parse()))
        except OSError as error:
            logger.warning("%s: not cached, it will be parsed each time (%s)", source, error)
            return parse()
    return read_table(file)


def _key(source: Path, member: str) -> str:
    try:
        content = digest_of(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error}); correct the path or the permissions") from error
    return hashlib.sha256(f"{content} {member}".encode()).hexdigest() if member else content


def _write(output: BinaryIO, blocks: Iterator[Block]) -> None:
    output.write(_header(0, 0, 0))
    words, rows, size = bytearray(), 0, 0
    for names, values in blocks:
        output.write(values.astype("<f4").tobytes())
        words += "".join(f"{name}\n" for name in names).encode()
        rows, size = rows + len(names), values.shape[1]
    output.write(words[:-1])
    output.seek(0)
    output.write(_header(rows, size, len(words) - 1))


def _header(rows: int, size: int, letters: int) -> bytes:
    promises = (Promise("F32", (rows, size)), Promise("U8", (letters,)))
    return header_of(dict(zip(NAMES, promises, strict=True)), length=_HEADER)
