"""Vectors kept as arrays, `.npz` and `.safetensors`: `vectors` (rows, size) and `words_utf8`, joined by newlines."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError  # noqa: N812 - a class with a small name

import numpy as np
from safetensors import SafetensorError, safe_open

from routepool.arrays import Floats32
from routepool.errors import InputError
from routepool.files.compression import SwollenError, check_swelling

Block = tuple[list[str], Floats32]

NAMES = ("vectors", "words_utf8")
_ROWS = 10_000  # converted at once
_DAMAGE = (OSError, EOFError, KeyError, TypeError, ValueError, MemoryError, BadZipFile, ZlibError, SafetensorError)


def read_npz(path: Path) -> Iterator[Block]:
    """The rows of a NumPy archive, checked; it is opened before the first row is asked for."""

    def open_npz() -> tuple[Any, Any]:
        with ZipFile(path) as archive:
            check_swelling(sum(item.file_size for item in archive.infolist()), path.stat().st_size)
        with np.load(path, allow_pickle=False) as archive:
            return tuple(archive[name] for name in NAMES)

    return _read(path, open_npz)


def read_safetensors(path: Path) -> Iterator[Block]:
    """The rows of a safetensors file, checked; only a block of them is in memory at a time."""

    def open_safetensors() -> tuple[Any, Any]:
        file: Any = safe_open(path, framework="numpy")  # its methods are untyped
        return file.get_slice(NAMES[0]), file.get_tensor(NAMES[1])

    return _read(path, open_safetensors)


def _read(path: Path, opener: Callable[[], tuple[Any, Any]]) -> Iterator[Block]:
    try:
        values, joined = opener()
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
