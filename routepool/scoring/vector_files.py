"""Vectors of texts -> a file, a piece at a time: their number need not be known before the last one is written."""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import BinaryIO, Protocol

import numpy as np

from routepool.arrays import Floats32
from routepool.files.headers import Promise, header_of
from routepool.registry import Extra, Registry

NAME = "vectors"  # of the tensor
_HEADER = 512  # bytes of a safetensors header with room for any number of rows


class VectorFile(Protocol):
    """A file being filled; made from a binary file that can be sought, and the shape of one vector."""

    def write(self, rows: Sequence[int], vectors: Floats32) -> None:
        """Add vectors (N, ...) and the rows of the input they belong to."""

    def close(self) -> None:
        """Write what is known only at the end; the file itself stays open."""


VECTOR_FILES: Registry[Callable[[BinaryIO, tuple[int, ...]], VectorFile]] = Registry(
    "file of vectors", extras={"parquet": Extra("routepool.extras.parquet", "parquet")}
)


class _Headed:
    """Numbers after a header of fixed length, which is written again at the end, when the number of rows is known."""

    def __init__(self, file: BinaryIO, shape: tuple[int, ...]) -> None:
        self._file, self._shape, self._rows = file, shape, 0
        file.write(self.header((0, *shape)))

    def write(self, rows: Sequence[int], vectors: Floats32) -> None:
        self._file.write(vectors.astype("<f4", copy=False).tobytes())
        self._rows += len(vectors)

    def close(self) -> None:
        self._file.seek(0)
        self._file.write(self.header((self._rows, *self._shape)))

    def header(self, shape: tuple[int, ...]) -> bytes:
        raise NotImplementedError


@VECTOR_FILES.register("npy")
class NpyFile(_Headed):
    """NumPy's own format.

    >>> file = BytesIO()
    >>> vectors = NpyFile(file, (2,))
    >>> vectors.write([1, 2], np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32))
    >>> vectors.close()
    >>> np.load(BytesIO(file.getvalue())).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """

    def header(self, shape: tuple[int, ...]) -> bytes:
        written = BytesIO()  # NumPy leaves room for the number of rows to grow
        np.lib.format.write_array_header_1_0(written, {"descr": "<f4", "fortran_order": False, "shape": shape})
        return written.getvalue()


@VECTOR_FILES.register("safetensors")
class SafetensorsFile(_Headed):
    """One tensor, `vectors`, in safetensors."""

    def header(self, shape: tuple[int, ...]) -> bytes:
        return header_of({NAME: Promise("F32", shape)}, length=_HEADER - 8)
