"""CSV and TSV lines -> records: quotes, headers told from data, rows of the wrong width."""

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from routepool.datasets.columns import KNOWN_NAMES
from routepool.datasets.records import FORMATS, SAMPLE, Flaw, Item, Layout, Record, Table
from routepool.datasets.sources import Line, Source
from routepool.errors import InputError

LONGEST_FIELD = 2**27  # characters; the bound on what an unclosed quote can swallow before it is reported
_NUMBER = re.compile(r"\s*[-+]?[\d.,]+([eE][-+]?\d+)?\s*%?\s*")


class _Cells(tuple[str, ...]):
    """The fields of one row, before the header is known."""

    row: int


class _Lines(Iterator[str]):
    """Lines that remember those of the record in hand, and take them back when it turns out to be broken."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._returned: deque[Line] = deque()
        self.held: list[Line] = []

    def __next__(self) -> str:
        self.held.append(self._returned.popleft() if self._returned else next(self._lines))
        return self.held[-1].text

    def take_back(self) -> None:
        """All lines after the record's first are read again, as records of their own."""
        self._returned.extendleft(reversed(self.held[1:]))


@FORMATS.register("csv")
def read_csv(source: Source, layout: Layout) -> Table:
    """Quoted fields, which may hold newlines; the delimiter is a comma unless the header shows another."""
    lines = source.lines()
    first = next((line for line in lines if line.text.strip()), None)
    if first is None:
        return Table((), iter(()))
    delimiter = layout.delimiter or _delimiter(first.text)
    return _table(source, chain([first], lines), layout, delimiter, quoting=csv.QUOTE_MINIMAL)


@FORMATS.register("tsv")
def read_tsv(source: Source, layout: Layout) -> Table:
    """Tabs and no quoting: a quote is a character like any other. A quoted TSV is read as format csv."""
    return _table(source, source.lines(), layout, layout.delimiter or "\t", quoting=csv.QUOTE_NONE)


def _delimiter(header: str) -> str:
    for delimiter in ",;\t|":
        if any(cell.strip(' "\r\n').lower() in KNOWN_NAMES for cell in header.split(delimiter)):
            return delimiter
    return ","


def _table(source: Source, lines: Iterator[Line], layout: Layout, delimiter: str, *, quoting: int) -> Table:
    rows = _rows(_Lines(lines), delimiter, quoting)
    first = next(rows, None)
    if first is None:
        return Table((), iter(()))
    if isinstance(first, Flaw):  # it decides the columns, so it cannot be skipped
        raise InputError(f"{source.name}, row {first.row}: {first.reason}")
    sample = list(islice(rows, SAMPLE))
    header = _is_header(first, [row for row in sample if isinstance(row, _Cells)], layout)
    names = tuple(cell.strip() or str(place) for place, cell in enumerate(first, 1))
    if not header:
        names = tuple(str(place) for place in range(1, len(first) + 1))
        sample.insert(0, first)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{source.name}, row {first.row}: column {twice!r} comes twice in the header; rename one")
    note = f"row {first.row} is the header" if header else "no header: columns are numbered from 1"
    records = _records(chain(sample, rows), names, delimiter, header=first if header else None)
    return Table(names, records, header, note)


def _rows(lines: _Lines, delimiter: str, quoting: int) -> Iterator[_Cells | Flaw]:
    # Module-wide in the standard library; raised, never lowered under another user of it.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
    while True:
        lines.held.clear()
        try:
            cells = _Cells(next(reader))
        except StopIteration:
            return
        except csv.Error as error:
            yield Flaw(lines.held[0].row, 0, _quote_flaw(lines.held, error))
            lines.take_back()
            continue
        flaw = next((line.flaw for line in lines.held if line.flaw), None)
        cells.row = lines.held[0].row
        if flaw or cells:
            yield Flaw(cells.row, 0, flaw) if flaw else cells


def _quote_flaw(held: Sequence[Line], error: csv.Error) -> str:
    if len(held) == 1 and "end of data" not in str(error):
        return f"a quoted field goes on after its closing quote ({error}); double each quote inside a quoted text"
    return (
        f"the quote opened in this row is not closed (read up to row {held[-1].row}); "
        "close it, or double each quote inside a quoted text"
    )


def _is_header(first: _Cells, later: Sequence[_Cells], layout: Layout) -> bool:
    """A header holds a known column name, or only short words, no numbers, that do not come again below."""
    if layout.header is not None:
        return layout.header
    if any(not name.isdigit() for name in layout.named):
        return True
    if any(cell.strip().lower() in KNOWN_NAMES for cell in first):
        return True
    if len(first) == 1:
        return False  # rather a header predicted as a text than a text lost
    others = [row for row in later if len(row) == len(first) and not _repeats(row, first)]
    if later and not others:
        return False
    below = [set(column) for column in zip(*others, strict=True)]
    return all(
        0 < len(cell.split()) <= 3 and len(cell) <= 40 and not _NUMBER.fullmatch(cell) for cell in first
    ) and not any(cell in column for cell, column in zip(first, below, strict=False))


def _repeats(row: _Cells, header: _Cells) -> bool:
    """The whole header again, as where files were joined, each with its own and perhaps with a byte order mark."""
    return len(row) > 1 and list(map(_bare, row)) == list(map(_bare, header))


def _bare(cell: str) -> str:
    return cell.removeprefix("\ufeff").strip(' "')  # a mark before a quote makes the quote a part of the field


def _records(
    rows: Iterator[_Cells | Flaw], names: tuple[str, ...], delimiter: str, *, header: _Cells | None
) -> Iterator[Item]:
    for number, row in enumerate(rows, 1):
        if isinstance(row, Flaw):
            yield row._replace(number=number)
        elif header is not None and _repeats(row, header):
            yield Flaw(row.row, number, "the header comes again; remove the row", kind="repeated-header")
        elif len(row) == len(names):
            yield Record(row.row, number, dict(zip(names, row, strict=True)))
        else:
            yield Flaw(
                row.row,
                number,
                f"{len(row)} fields where {len(names)} are wanted ({', '.join(names)}); "
                f"a text that holds {delimiter!r} needs quotes in a csv file",
            )
