"""What is said beside a result: which rows were left out, and which texts were not read whole or not known."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from routepool.cli import screen
from routepool.datasets import Dataset, Example, Kind, Reader, Skipped
from routepool.errors import NotFiniteError
from routepool.text import NAMED, Reading, Unread

_LISTED = 20  # rows that are listed with their reasons
_LEFT_OUT: Mapping[Kind, str] = {"empty": "empty texts", "repeated-header": "repeats of the header"}


def list_skipped(data: Reader | Dataset) -> None:
    """Say which rows were left out."""
    for kind, count in data.skipped_kinds.items():
        skipped = [one for one in data.skipped if one.kind == kind]
        if kind in _LEFT_OUT:
            found = named_rows([one.row for one in skipped], count)
            screen.note(f"{data.source}: {_LEFT_OUT[kind]} left out: {count} ({found})")
        else:
            _list_unreadable(data.source, skipped, count)


def named_rows(first: Sequence[int], count: int) -> str:
    """The first of some rows by their numbers.

    >>> named_rows([3], 1), named_rows([3, 8], 2), named_rows(range(1, 9), 900)
    ('row 3', 'rows 3, 8', 'rows 1, 2, 3, 4, 5, ...')
    """
    more = ", ..." if count > NAMED else ""
    return f"row{'s' * (count > 1)} {', '.join(map(str, first[:NAMED]))}{more}"


class _Result(Protocol):
    @property
    def reading(self) -> Reading: ...


R = TypeVar("R", bound=_Result)


def telling_unread(source: str, results: Iterable[tuple[Example, R]]) -> Iterator[tuple[Example, R]]:
    """The same results; after the last one it is said which texts were not read whole or not known."""
    unread = Unread()
    for example, result in results:
        unread.add(example.row, result.reading)
        yield example, result
    _say(source, unread)


def tell_unread(source: str, examples: Iterable[Example], readings: Iterable[Reading]) -> None:
    """Say which texts were not read whole or not known."""
    unread = Unread()
    for example, reading in zip(examples, readings, strict=True):
        unread.add(example.row, reading)
    _say(source, unread)


def _say(source: str, unread: Unread) -> None:
    for line in unread.lines(named_rows):
        screen.note(f"{source}: {line}")


@contextmanager
def naming_rows(source: str, examples: Sequence[Example]) -> Iterator[None]:
    """Let an error about a text's place among the examples name its row."""
    try:
        yield
    except NotFiniteError as error:
        raise NotFiniteError(error.place, f"{source}, row {examples[error.place].row}") from error


def _list_unreadable(source: str, skipped: Sequence[Skipped], count: int) -> None:
    screen.note(f"{source}: {count} rows skipped")
    for one in skipped[:_LISTED]:
        screen.note(f"  row {one.row}: {one.reason}")
    if count > _LISTED:
        screen.note(f"  and {count - _LISTED} more")
