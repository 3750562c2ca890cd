"""Types: how a file is read, what a format makes of it, and what its rows become."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict

from routepool.datasets.sources import Source
from routepool.registry import Extra, Registry

# Rows of the last two kinds are left out, and counted, unless every row is wanted.
Kind = Literal["unreadable", "empty", "repeated-header"]


class ReadOptions(TypedDict, total=False):
    """How to read a file; what is left out is detected or has the default named here."""

    format: str | None  # csv, tsv, jsonl, fasttext, lines, parquet, tang; else by the file's suffix
    text_column: str | None  # a name, or a number from 1 where there is no header
    label_column: str | None
    header: bool | None  # else detected
    delimiter: str | None  # else a comma, or what the header shows
    encoding: str  # utf-8; a byte order mark in the file wins
    labels: bool  # True; False for prediction
    multi_label: bool  # False
    separator: str  # "|", between several labels in one field
    longest_row: int  # 6,000,000 characters; a longer row is an error, whatever on_error says
    allow_empty: bool | None  # texts of no words; None: only where no labels are wanted
    # The first row that cannot be used: stop there, or skip all such rows. None: leave out empty texts and repeated
    # headers, and stop at any other.
    on_error: Literal["stop", "skip", "raise"] | None


@dataclass(frozen=True, slots=True)
class Example:
    """A text with its row in the file, its labels (None where none are wanted) and the record it came from.

    A phrase is a labelled part of a sentence of the same set; the setting `phrase_weight` is for these.
    """

    row: int
    text: str
    labels: tuple[str, ...] | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    is_phrase: bool = False


@dataclass(frozen=True)
class Columns:
    """The columns in use, and why these ones; `header` says whether the file has one."""

    text: str
    label: str | None
    why: str
    header: bool = False


class Skipped(NamedTuple):
    """A row that was left out, and why."""

    row: int
    reason: str
    kind: Kind = "unreadable"


class Record(NamedTuple):
    """One record as it stands in the file."""

    row: int  # 1-based line on which it starts; in Parquet its number
    number: int  # 1-based count of records, the header not counted
    fields: Mapping[str, Any]
    size: int = 0  # characters it has in the file


class Flaw(NamedTuple):
    """A record that cannot be read, and why."""

    row: int
    number: int
    reason: str
    kind: Kind = "unreadable"
    size: int = 0  # nothing is kept of it


Item = Record | Flaw


class Layout(NamedTuple):
    """What the caller knows about a delimited file; None is to be detected."""

    header: bool | None = None
    delimiter: str | None = None
    named: frozenset[str] = frozenset()  # columns asked for by name


class Table(NamedTuple):
    """What a format makes of a source: its columns, the first records, and an iterator over those after them."""

    columns: tuple[str, ...]
    sample: list[Item]
    rest: Iterator[Item]
    header: bool = False
    note: str = ""


FORMATS: Registry[Callable[[Source, Layout], Table]] = Registry(
    "data format", extras={"parquet": Extra("routepool.extras.parquet", "parquet")}
)
