"""What is said beside a result: which rows were left out."""

from collections.abc import Mapping, Sequence

from routepool.cli import screen
from routepool.datasets import Dataset, Kind, Reader, Skipped

_LISTED = 20  # rows that are listed with their reasons
_NAMED = 5  # rows that are named in a line
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
    more = ", ..." if count > _NAMED else ""
    return f"row{'s' * (count > 1)} {', '.join(map(str, first[:_NAMED]))}{more}"


def _list_unreadable(source: str, skipped: Sequence[Skipped], count: int) -> None:
    screen.note(f"{source}: {count} rows skipped")
    for one in skipped[:_LISTED]:
        screen.note(f"  row {one.row}: {one.reason}")
    if count > _LISTED:
        screen.note(f"  and {count - _LISTED} more")
