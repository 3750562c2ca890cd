"""Tensors <-> safetensors, streamed out without a copy in memory and checked on the way in."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from routepool.errors import InputError
from routepool.files.headers import Promise, header_of, read_header, unreadable

_NAMED = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "C64": torch.complex64,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_TYPES = {dtype: name for name, dtype in _NAMED.items()}
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
    for name in order:
        tensor = tensors[name]
        if tensor.dtype not in _TYPES or tensor.layout != torch.strided:
            raise InputError(f"tensor {name!r} must be dense and of a common type, got {tensor.dtype} {tensor.layout}")
    yield header_of({name: Promise(_TYPES[tensors[name].dtype], tensors[name].shape) for name in order})
    for name in order:
        values = tensors[name].detach().cpu().contiguous()
        yield values.reshape(-1).view(torch.uint8).numpy().data


def promised(path: Path) -> dict[str, Tensor]:
    """The tensors that a safetensors file promises, without their values: on the device `meta`, without memory."""
    return {
        name: torch.empty(tuple(shape), dtype=_NAMED[dtype], device="meta")
        for name, (dtype, shape) in read_header(path).items()
    }


def parse(path: Path, content: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        return load(content)
    except _DAMAGE as error:
        raise unreadable(path, error) from error


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


def _finite(tensor: Tensor) -> bool:
    if tensor.is_meta or not tensor.is_floating_point() or not tensor.numel():
        return True
    # Both ends are NaN if any number is; torch.isfinite of the whole would take twice the tensor's memory.
    return all(map(math.isfinite, (end.item() for end in tensor.aminmax())))
