"""What the commands print: plain lines and tables on standard output, notes and errors on standard error."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from routepool.printable import one_line

if TYPE_CHECKING:  # `routepool --help` must not wait for them
    from routepool.datasets import Dataset, Reader
    from routepool.scoring.bulk import Done
    from routepool.text import Unread

T = TypeVar("T")


out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(text: str) -> None:
    """One line of a command's result."""
    out.print(one_line(text))


def note(text: str) -> None:
    """One line beside the result: what was decided, skipped or went wrong."""
    err.print(one_line(text))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table whose first column is text and whose others are numbers."""
    shown = Table(title=one_line(title), title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        shown.add_column(one_line(column), justify="right" if place else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*(one_line(cell) for cell in row))
    # In a pipe, as wide as its columns. A console of its own: `print` takes no width above that of its console.
    wide = out if out.is_terminal else Console(file=out.file, width=10_000, highlight=False, markup=False, emoji=False)
    wide.print(shown)


def progress(*columns: ProgressColumn, shown: bool = True) -> Progress:
    """A bar on standard error if a person watches it; notes meanwhile stay above it."""
    return Progress(
        *columns,
        console=err,
        transient=True,
        disable=not (shown and err.is_terminal),
        redirect_stdout=False,  # lines for a file or a pipe go there, not to the terminal
    )


def counted(items: Iterable[T]) -> Iterator[T]:
    """The same items, with their count on the terminal while they pass."""
    with progress(TextColumn("{task.completed} texts"), TimeElapsedColumn()) as bar:
        task = bar.add_task("", total=None)
        for item in items:
            yield item
            bar.advance(task)


def list_skipped(data: "Reader | Dataset") -> None:
    """Say which rows were left out."""
    from routepool.datasets import skipped_lines  # noqa: PLC0415

    for line in skipped_lines(data):
        note(line)


def note_left(done: "Done") -> None:
    """Say what was not read or not known of a file's texts, and which rows were left out."""
    note_unread(done.reader.source, done.unread)
    list_skipped(done.reader)


def note_unread(source: str, unread: "Unread") -> None:
    """Say which texts were not read whole or not known."""
    for line in unread.lines():
        note(f"{source}: {line}")
