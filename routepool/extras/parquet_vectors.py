"""Vectors of texts -> a Parquet file: the row of the input and its vector, as lists of one fixed size."""

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]
from numpy.typing import NDArray
from pyarrow import parquet

from routepool.scoring.vector_files import VECTOR_FILES


@VECTOR_FILES.register("parquet")
class ParquetVectors:
    """Columns `row` and `vector`.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> vectors = ParquetVectors(file, (2,))
    >>> vectors.write([2, 5], np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32))
    >>> vectors.close()
    >>> parquet.read_table(file).to_pylist()
    [{'row': 2, 'vector': [1.0, 2.0]}, {'row': 5, 'vector': [3.0, 4.0]}]
    """

    def __init__(self, file: BinaryIO, shape: tuple[int, ...]) -> None:
        kind = pyarrow.float32()
        for size in reversed(shape):
            kind = pyarrow.list_(kind, size)
        self._shape = shape
        self._schema = pyarrow.schema([("row", pyarrow.int64()), ("vector", kind)])
        self._writer = parquet.ParquetWriter(file, self._schema)

    def write(self, rows: Sequence[int], vectors: NDArray[np.float32]) -> None:
        nested: Any = pyarrow.array(vectors.ravel())
        for size in reversed(self._shape):
            nested = pyarrow.FixedSizeListArray.from_arrays(nested, size)
        self._writer.write_batch(pyarrow.record_batch([pyarrow.array(rows, pyarrow.int64()), nested], self._schema))

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._writer.is_open = False  # else it tries again, after a full disk, and complains on its own
