"""Parquet files: records from them, a batch of rows at a time, and vectors of texts into them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from statistics import mode
from typing import Any, BinaryIO

import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]
from pyarrow import parquet, types

from routepool.arrays import Floats32
from routepool.datasets.records import FORMATS, Flaw, Item, Layout, Record, Table
from routepool.datasets.sources import Source, first_of
from routepool.errors import InputError
from routepool.files.compression import SwollenError, check_swelling
from routepool.scoring.vector_files import VECTOR_FILES

_ROWS, _BYTES = 32, 2**24  # in memory at once: so many rows, or fewer where these are long
_DAMAGE = (pyarrow.ArrowException, OSError)
_UNREADABLE = (ValueError, OverflowError, pyarrow.ArrowException)  # a cell: no UTF-8, a time that Python cannot hold


@FORMATS.register("parquet")
def read_parquet(source: Source, layout: Layout) -> Table:
    """Columns and rows of a Parquet file; a row's number is its place."""
    try:
        file = parquet.ParquetFile(source.file)
        names = tuple(file.schema_arrow.names)
        rows = _rows_at_once(file.metadata)
    except SwollenError as error:
        raise InputError(f"{source.name}, row 1: {error}") from error
    except (*_DAMAGE, UnicodeError) as error:
        raise InputError(f"{source.name}, row 1: not a whole Parquet file ({error}); write or copy it again") from error
    if len(set(names)) < len(names):
        raise InputError(f"{source.name}, row 1: column {mode(names)!r:.80} comes twice; rename one")
    records = _records(source, file, rows)
    return Table(names, first_of(records), records)


def _rows_at_once(metadata: parquet.FileMetaData) -> int:
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    columns = [group.column(place) for group in groups for place in range(metadata.num_columns)]
    size = sum(column.total_uncompressed_size for column in columns)
    check_swelling(size, sum(column.total_compressed_size for column in columns))
    longest = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=0)
    return max(1, min(_ROWS, int(_BYTES / max(longest, 1))))


def _records(source: Source, file: parquet.ParquetFile, rows: int) -> Iterator[Item]:
    number = 0
    try:
        for batch in file.iter_batches(batch_size=rows):
            for fields in _plain(_with_times_as_text(batch)):
                number += 1
                yield _record(source, number, fields)
    except _DAMAGE as error:
        raise InputError(f"{source.name}, row {number + 1}: damaged from here on ({error}); copy it again") from error


def _with_times_as_text(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Times to the nanosecond have no other plain form: Python's end at microseconds."""
    for place, field in enumerate(batch.schema):
        if types.is_timestamp(field.type) and field.type.unit == "ns":
            with suppress(pyarrow.ArrowException):  # a time zone that is none: said of its row
                batch = batch.set_column(place, field.name, batch.column(place).cast(pyarrow.string()))
    return batch


def _plain(batch: pyarrow.RecordBatch) -> Iterator[dict[str, Any] | str]:
    """The cells of each row, or what is wrong with one of them."""
    try:
        yield from batch.to_pylist()
    except _UNREADABLE:
        for row in range(batch.num_rows):
            yield _cells(batch, row)


def _cells(batch: pyarrow.RecordBatch, row: int) -> dict[str, Any] | str:
    cells = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            cells[name] = column[row].as_py()
        except _UNREADABLE as error:
            return (
                f"column {name!r:.80} holds a {column.type} that cannot be read ({error!s:.200}); correct it, write "
                "the file without that column, or skip such rows: --on-error skip"
            )
    return cells


def _record(source: Source, number: int, fields: dict[str, Any] | str) -> Item:
    if isinstance(fields, str):
        return Flaw(number, number, fields)
    size = sum(len(value) for value in fields.values() if isinstance(value, str))
    if size > source.longest_row:
        return Flaw(number, number, source.too_long())
    return Record(number, number, fields, size)


@VECTOR_FILES.register("parquet")
class ParquetVectors:
    """Columns `row`, the row of the input, and `vector`, a list of one fixed size.

    >>> import numpy as np
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

    def write(self, rows: Sequence[int], vectors: Floats32) -> None:
        nested: Any = pyarrow.array(vectors.ravel())
        for size in reversed(self._shape):
            nested = pyarrow.FixedSizeListArray.from_arrays(nested, size)
        self._writer.write_batch(pyarrow.record_batch([pyarrow.array(rows, pyarrow.int64()), nested], self._schema))

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._writer.is_open = False  # else it tries again, after a full disk, and complains on its own
