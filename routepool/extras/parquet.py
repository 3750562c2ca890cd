"""Parquet files -> records, a batch of rows at a time."""

from collections.abc import Iterator

import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]
from pyarrow import parquet

from routepool.datasets.records import FORMATS, Item, Layout, Record, Table
from routepool.datasets.sources import Source
from routepool.errors import InputError

ROWS = 1024  # in memory at once


@FORMATS.register("parquet")
def read_parquet(source: Source, layout: Layout) -> Table:
    """Columns and rows of a Parquet file; a row's number is its place."""
    try:
        file = parquet.ParquetFile(source.file)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{source.name}, row 1: not a whole Parquet file ({error}); write or copy it again") from error
    return Table(tuple(file.schema_arrow.names), _records(source, file))


def _records(source: Source, file: parquet.ParquetFile) -> Iterator[Item]:
    number = 0
    try:
        for batch in file.iter_batches(batch_size=ROWS):
            for fields in batch.to_pylist():
                number += 1
                yield Record(number, number, fields)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{source.name}, row {number + 1}: damaged from here on ({error}); copy it again") from error
