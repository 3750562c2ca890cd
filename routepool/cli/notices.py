"""What is said beside a result: which rows were left out, and which texts were not read whole or not known."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from routepool.cli import screen
from routepool.datasets import Dataset, Example, Reader
from routepool.errors import NotFiniteError
from routepool.runs.sets import named_rows, note_left_out
from routepool.text import Reading, Unread


def list_skipped(data: Reader | Dataset) -> None:
    """Say which rows were left out."""
    note_left_out(data, screen.note)


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
