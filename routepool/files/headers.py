"""The header of a safetensors file, written and read within bounds: which arrays follow it, of what type and shape.

The package's own writers need all arrays in memory; here they may follow the header one by one.
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from routepool.errors import InputError

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "C64": 8, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_LENGTH = struct.Struct("<Q")
_MOST = 2**22  # bytes: forty thousand arrays
_LARGEST, _MOST_AXES = 2**59, 64  # numbers of an array: the bytes of more do not fit a 64-bit number
_UNREADABLE = (OSError, struct.error, ValueError, TypeError, LookupError, AttributeError, RecursionError)


class Promise(NamedTuple):
    """What a header says of an array."""

    dtype: str  # a name of SIZES
    shape: Sequence[int]


def header_of(arrays: Mapping[str, Promise], *, length: int = 0) -> bytes:
    """The bytes before the arrays, which follow in this order.

    Args:
        arrays: what follows.
        length: the least length of the header, for one that is written again once all shapes are known.

    >>> header_of({"row": Promise("F32", (1, 2))})[8:].rstrip()
    b'{"row": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}'
    """
    entries, end = {}, 0
    for name, (dtype, shape) in arrays.items():
        start, end = end, end + SIZES[dtype] * math.prod(shape)
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}
    head = json.dumps(entries).encode().ljust(length)
    head += b" " * (-len(head) % 8)
    return _LENGTH.pack(len(head)) + head


def read_header(path: Path) -> dict[str, Promise]:
    """Read the header of a file, which must be as long as the header says."""
    try:
        with path.open("rb") as file:
            (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
            entries = json.loads(file.read(length)) if length <= _MOST else None
        if not isinstance(entries, dict):
            raise ValueError(f"a header of {length} bytes, wanted a table of at most {_MOST}")
        entries.pop("__metadata__", None)
        size = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        if path.stat().st_size != _LENGTH.size + length + size:
            raise ValueError(f"{_LENGTH.size + length + size} bytes by its header, {path.stat().st_size} in all")
        return {name: _promise(entry["dtype"], entry["shape"]) for name, entry in entries.items()}
    except _UNREADABLE as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> InputError:
    """The error for a file that is no safetensors file."""
    return InputError(f"{path}: wanted safetensors, got something else ({error!r:.200}); copy it again")


def _promise(dtype: Any, shape: Any) -> Promise:
    sizes = isinstance(shape, list) and len(shape) <= _MOST_AXES
    if not sizes or not all(type(size) is int and 0 <= size <= _LARGEST for size in shape):
        raise ValueError(f"shape {shape!r:.80}")
    if dtype not in SIZES or math.prod(size or 1 for size in shape) > _LARGEST:
        raise ValueError(f"{dtype!r:.80} of shape {shape!r:.80}")
    return Promise(dtype, shape)
