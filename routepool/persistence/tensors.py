"""Tensors <-> safetensors, streamed out without a copy in memory and checked on the way in."""

import json
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from routepool.errors import InputError

_TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_NAMED = {name: dtype for dtype, name in _TYPES.items()}
_MOST_HEADER = 2**22  # bytes: forty thousand tensors
_UNREADABLE = (OSError, struct.error, ValueError, TypeError, LookupError, AttributeError, RuntimeError)
_DAMAGE = (SafetensorError, KeyError, ValueError, TypeError, RuntimeError, AssertionError)


def stream(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """The content of a safetensors file, piece by piece.

    The library's own writer copies everything in memory twice, or renames a file readable by its owner alone over
    the target; it also refuses two names for one tensor, which a checkpoint may well have.

    >>> content = b"".join(stream({"step": torch.tensor(3), "row": torch.ones(1, 2)}))
    >>> load(content)["step"]
    tensor(3)
    """
    # Wide types first, so that each tensor begins at a multiple of its item's size.
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header, end = {}, 0
    for name in order:
        tensor = tensors[name]
        if tensor.dtype not in _TYPES or tensor.layout != torch.strided:
            raise InputError(f"tensor {name!r} must be dense and of a common type, got {tensor.dtype} {tensor.layout}")
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    yield struct.pack("<Q", len(head)) + head
    for name in order:
        values = tensors[name].detach().cpu().contiguous()
        yield values.reshape(-1).view(torch.uint8).numpy().data


def read_header(path: Path) -> dict[str, Tensor]:
    """The tensors that a safetensors file promises, without their values: on the device `meta`, without memory."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            entries = json.loads(file.read(length)) if length <= _MOST_HEADER else None
        if not isinstance(entries, dict):
            raise ValueError(f"a header of {length} bytes, wanted a table of at most {_MOST_HEADER}")
        entries.pop("__metadata__", None)
        size = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        if path.stat().st_size != 8 + length + size:
            raise ValueError(f"{8 + length + size} bytes by its header, {path.stat().st_size} in all")
        return {name: _promised(entry["shape"], entry["dtype"]) for name, entry in entries.items()}
    except _UNREADABLE as error:
        raise InputError(f"{path}: wanted safetensors, got something else ({error!r:.200}); copy it again") from error


def parse(path: Path, content: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        return load(content)
    except _DAMAGE as error:
        raise InputError(f"{path}: wanted safetensors, got something else ({error!r:.200}); copy it again") from error


def check_tensors(tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], *, source: str) -> None:
    """Refuse other names, shapes and types than the model has, and numbers that are none.

    Args:
        tensors: what came.
        wanted: tensors of the right shapes and types; their values do not matter.
        source: what the model was built from, for the message.
    """
    missing, extra = sorted(wanted.keys() - tensors.keys()), sorted(tensors.keys() - wanted.keys())
    if missing or extra:
        kind, names = ("lacks", missing) if missing else ("has also", extra)
        raise InputError(f"wanted the {len(wanted)} tensors {source}, but it {kind} {', '.join(names):.200}")
    for name, model in wanted.items():
        tensor = tensors[name]
        came, right = (f"{tuple(one.shape)} {one.dtype}" for one in (tensor, model))
        if came != right:
            raise InputError(f"{name} must be {right} {source}, got {came}")
        if not _finite(tensor):
            raise InputError(f"{name} must hold finite numbers, got NaN or infinity")


def _promised(shape: list[int], dtype: str) -> Tensor:
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"shape {shape!r:.80}")
    return torch.empty(shape, dtype=_NAMED[dtype], device="meta")


def _finite(tensor: Tensor) -> bool:
    if tensor.is_meta or not tensor.is_floating_point() or not tensor.numel():
        return True
    # Both ends are NaN if any number is; torch.isfinite of the whole would take twice the tensor's memory.
    return all(map(math.isfinite, (end.item() for end in tensor.aminmax())))
