"""CSV and TSV lines -> records: quotes, detected headers, rows of the wrong width."""

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from statistics import mode

from routepool.datasets.records import FORMATS, Flaw, Item, Layout, Record, Table
from routepool.datasets.sources import Line, Source, first_of
from routepool.errors import InputError, listed

TEXT_NAMES = (
    "text", "texts", "review", "review_text", "reviewtext", "sentence", "content", "comment", "document", "body",
    "message", "tweet", "utterance", "question", "description", "headline", "title",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "category", "categories", "sentiment", "target", "stars", "rating", "score", "intent",
    "topic", "polarity", "emotion", "genre", "tag", "tags",
)  # fmt: skip
_KNOWN_NAMES = frozenset(TEXT_NAMES + LABEL_NAMES)
MOST_COLUMNS = 2**14  # as many as a sheet has
_SHORTEST_LINES = 40  # characters on average; with `longest_row`, this bounds what an unclosed quote can swallow
_PER_LINE = 50  # characters that are read in the time that a line takes, however short
_MOST_IN_VAIN = 0.8  # of all reading may be for quotes that are not closed; with more it would never end
_SPARE = 2**23  # characters that may be read in vain in any file
_TOO_LONG = "record too long"
_NUMBER = re.compile(r"\s*[-+]?[\d.,]+([eE][-+]?\d+)?\s*%?\s*")


class _Cells(tuple[str, ...]):
    """The fields of one row, before the header is known."""

    row: int
    size: int


class _Lines(Iterator[str]):
    """The lines of a source. Those of the record in hand are kept, and read again if it turns out to be broken."""

    def __init__(self, source: Source) -> None:
        self._source, self._lines = source, source.lines()
        self._returned: deque[Line] = deque()
        self._cost, self._in_vain = 0, 0  # of all reading so far, and of the part that was taken back
        self.longest = source.longest_row
        self._most_lines = self.longest // _SHORTEST_LINES + 1
        self.held: list[Line] = []  # those of the record in hand, their size and the first thing wrong with them
        self.size = 0
        self.flaw: str | None = None

    def __next__(self) -> str:
        line = self._returned.popleft() if self._returned else next(self._lines)
        _, text, flaw = line
        self.held.append(line)
        self.size += len(text)
        if flaw:
            self.flaw = self.flaw or flaw
        if self.size > self.longest or len(self.held) > self._most_lines:
            raise csv.Error(_TOO_LONG)
        return text

    def peek(self) -> str:
        """The first line that is not blank, which is read again; empty if there is none."""
        for text in self:
            if text.strip():
                self._returned.append(self.held.pop())
                return text
            self.begin()
        return ""

    def begin(self) -> None:
        """Forget the record in hand: the next one begins."""
        self._cost += self.size + _PER_LINE * len(self.held)
        self.held.clear()
        self.size, self.flaw = 0, None

    def take_back(self) -> None:
        """Read all lines after the record's first again, as records of their own."""
        cost = self.size + _PER_LINE * len(self.held)
        self._in_vain += cost - len(self.held[0].text) - _PER_LINE
        if self._in_vain > _SPARE + _MOST_IN_VAIN * (self._cost + cost):
            raise InputError(
                f"{self._source.name}, row {self.held[0].row}: too many rows up to here open a quote that is not "
                "closed; close them, or read the file as tsv, where a quote is a character like any other"
            )
        self._returned.extendleft(reversed(self.held[1:]))


@FORMATS.register("csv")
def read_csv(source: Source, layout: Layout) -> Table:
    """Quoted fields, which may hold newlines; the delimiter is a comma unless the header shows another."""
    lines = _Lines(source)
    delimiter = layout.delimiter or _delimiter(lines.peek())
    return _table(source, lines, layout, delimiter, quoting=csv.QUOTE_MINIMAL)


@FORMATS.register("tsv")
def read_tsv(source: Source, layout: Layout) -> Table:
    """Tabs and no quoting: a quote is a character like any other. A quoted TSV is read as format csv."""
    return _table(source, _Lines(source), layout, layout.delimiter or "\t", quoting=csv.QUOTE_NONE)


def _delimiter(header: str) -> str:
    for delimiter in ",;\t|":
        if any(cell.strip(' "\r\n').lower() in _KNOWN_NAMES for cell in header.split(delimiter, MOST_COLUMNS)):
            return delimiter
    return ","


def _table(source: Source, lines: _Lines, layout: Layout, delimiter: str, *, quoting: int) -> Table:
    rows = _rows(lines, delimiter, quoting)
    first = next(rows, None)
    if first is None:
        return Table((), [], iter(()))
    if isinstance(first, Flaw):  # it decides the columns, so it cannot be skipped
        raise InputError(f"{source.name}, row {first.row}: {first.reason}")
    if len(first) > MOST_COLUMNS:
        raise InputError(f"{source.name}, row {first.row}: {len(first):,} columns where {MOST_COLUMNS:,} are the most")
    sample = first_of(rows)
    header = _is_header(first, [row for row in sample if isinstance(row, _Cells)], layout)
    if header:
        names = tuple(cell.strip() or str(place) for place, cell in enumerate(first, 1))
        note = f"row {first.row} is the header"
    else:
        names = tuple(str(place) for place in range(1, len(first) + 1))
        note = "no header: columns are numbered from 1"
        sample.insert(0, first)
    if len(set(names)) < len(names):
        raise InputError(
            f"{source.name}, row {first.row}: column {mode(names)!r:.80} comes twice in the header; rename one"
        )
    records = _records(chain(sample, rows), names, delimiter, header=first if header else None)
    return Table(names, list(islice(records, len(sample))), records, header, note)


def _rows(lines: _Lines, delimiter: str, quoting: int) -> Iterator[_Cells | Flaw]:
    # The csv module has one limit for all its users, so it is only ever raised; `_Lines` keeps to the real one.
    csv.field_size_limit(max(csv.field_size_limit(), lines.longest))
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
    while True:
        lines.begin()
        try:
            cells = _Cells(next(reader))
        except StopIteration:
            return
        except csv.Error as error:
            flaw = Flaw(lines.held[0].row, 0, _quote_flaw(lines.held, error))
            lines.take_back()
            yield flaw
            continue
        cells.row, cells.size = lines.held[0].row, lines.size
        if cells or lines.flaw:
            yield Flaw(cells.row, 0, lines.flaw) if lines.flaw else cells


def _quote_flaw(held: Sequence[Line], error: csv.Error) -> str:
    if len(held) == 1 and "end of data" not in str(error):
        return f"a quoted field goes on after its closing quote ({error}); double each quote inside a quoted text"
    more = ", or allow longer rows: --longest-row N (longest_row=N in Python)" if _TOO_LONG in str(error) else ""
    return (
        f"the quote opened in this row is not closed (read up to row {held[-1].row}); "
        f"close it, or double each quote inside a quoted text{more}"
    )


def _is_header(first: _Cells, later: Sequence[_Cells], layout: Layout) -> bool:
    """A header holds a known column name, or only short words, no numbers, that do not come again below."""
    if layout.header is not None:
        return layout.header
    if any(not name.isdigit() for name in layout.named):
        return True
    if any(cell.strip().lower() in _KNOWN_NAMES for cell in first):
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
            yield Record(row.row, number, dict(zip(names, row, strict=True)), row.size)
        else:
            yield Flaw(
                row.row,
                number,
                f"{len(row)} fields where {len(names)} are wanted ({listed(names)}); "
                f"a text that holds {delimiter!r} needs quotes in a csv file",
            )
