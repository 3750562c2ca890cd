"""Records -> examples, one by one in bounded memory: the columns of text and label, and what a row holds in them."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

from routepool.datasets.records import (
    FORMATS,
    LABEL_NAMES,
    LABEL_PREFIX,
    TEXT_NAMES,
    Flaw,
    Item,
    Kind,
    Layout,
    Record,
    sampled,
)
from routepool.datasets.sources import FORMAT_OF, LONGEST_ROW, PLAIN, Source, SourceLike, suffix_of
from routepool.errors import InputError, listed, unknown
from routepool.settings.declarations import SEPARATOR

LISTED = 1000  # skipped rows of a kind that are kept by name; all are counted
ON_ERROR = ("stop", "skip")
_STOP = ("stop", "raise")  # the second is its older name, which runs that were stopped have on record
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # only an escape in JSON can bring one here


class ReadOptions(TypedDict, total=False):
    """How to read a file; everything left out is found out or has the default named here."""

    format: str | None  # csv, tsv, jsonl, fasttext, lines, parquet, tang; else by the file's suffix
    text_column: str | None  # a name, or a number from 1 where there is no header
    label_column: str | None
    header: bool | None  # else seen in the data
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
    """The columns in use, and why these; `header` says whether the file has one."""

    text: str
    label: str | None
    why: str
    header: bool = False


class Skipped(NamedTuple):
    """A row that was left out, and why."""

    row: int
    reason: str
    kind: Kind = "unreadable"


class _EmptyError(InputError):
    """A text of no words where a label is to be learnt from it."""


def read(source: SourceLike, **options: Unpack[ReadOptions]) -> "Reader":
    r"""Open a file, `-` for standard input, or a binary stream, to be read example by example.

    >>> import io
    >>> reader = read(io.BytesIO(b"label,text\n1,a fine day\n0,rain again"), format="csv")
    >>> reader.columns.why
    "text column 'text' and label column 'label', by their names; row 1 is the header"
    >>> [(example.row, example.text, example.labels) for example in reader]
    [(2, 'a fine day', ('1',)), (3, 'rain again', ('0',))]
    """
    for name in options:
        if name not in ReadOptions.__annotations__:
            raise unknown("option", name, list(ReadOptions.__annotations__))
    if options.get("on_error") not in (None, *ON_ERROR, *_STOP):
        raise unknown("on_error", str(options["on_error"]), ON_ERROR)
    encoding, longest = options.get("encoding", "utf-8"), options.get("longest_row", LONGEST_ROW)
    return Reader(Source.of(source, encoding=encoding, longest_row=longest), options)


class Reader(Iterator[Example]):
    """Examples in the file's order, read once. Rows are skipped or raised as `on_error` says; a damaged file raises."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source = source.name
        self.skipped: list[Skipped] = []
        self.skipped_kinds: Counter[Kind] = Counter()
        self._options = options
        asked = {name for key in ("text_column", "label_column") if (name := options.get(key))}
        self.format = options.get("format") or _format_of(source)
        layout = Layout(options.get("header"), options.get("delimiter"), frozenset(map(str, asked)))
        table = FORMATS[self.format](source, layout)
        self._header = table.header
        sample, self._items = sampled(table.records)
        self._refuse_nothing(sample)
        self.columns = self._choose(table.columns, sample, table.note)

    @property
    def skipped_count(self) -> int:
        """Rows left out so far, of every kind."""
        return self.skipped_kinds.total()

    def __next__(self) -> Example:
        for item in self._items:
            if isinstance(item, Flaw):
                self._handle(item, item.reason, item.kind)
                continue
            try:
                return self._example(item)
            except InputError as error:
                self._handle(item, str(error), "empty" if isinstance(error, _EmptyError) else "unreadable")
        raise StopIteration

    def _refuse_nothing(self, sample: Collection[Item]) -> None:
        if not sample:
            what = "has a header and no rows" if self._header else "is empty"
            raise InputError(f"{self.source}, row 1: the file {what}; at least one record is wanted")

    def _choose(self, names: tuple[str, ...], sample: list[Item], note: str) -> Columns:
        if not names:  # nothing but flaws
            self._handle(sample[0], str(getattr(sample[0], "reason", "an object without keys")), final=True)
        options = self._options
        try:
            columns = choose_columns(
                names,
                sample,
                text=options.get("text_column"),
                label=options.get("label_column"),
                want_label=options.get("labels", True),
            )
        except InputError as error:
            raise type(error)(f"{self.source}, row 1: {error}") from error
        why = f"{columns.why}; {note}" if note else columns.why
        return Columns(columns.text, columns.label, why, self._header)

    def _handle(self, item: Item, reason: str, kind: Kind = "unreadable", *, final: bool = False) -> None:
        asked = self._options.get("on_error")
        if final or asked in _STOP or (asked is None and kind == "unreadable"):
            shown = f" (record {item.number})" if item.row != item.number + self._header else ""
            raise InputError(f"{self.source}, row {item.row}{shown}: {reason}")
        self.skipped_kinds[kind] += 1
        if self.skipped_kinds[kind] <= LISTED:
            self.skipped.append(Skipped(item.row, reason, kind))

    def _example(self, record: Record) -> Example:
        text = _value(record, self.columns.text)
        if not isinstance(text, str):
            raise InputError(f"{self.columns.text!r} is {text!r:.80} where a text in quotes is wanted")
        _check_characters(text, self.columns.text)
        wanted = self.columns.label
        allow_empty = self._options.get("allow_empty")
        if (not text or text.isspace()) and not (wanted is None if allow_empty is None else allow_empty):
            raise _EmptyError(f"the text in {self.columns.text!r} is empty; remove the row")
        return Example(record.row, text, self._labels(record, wanted) if wanted else None, record.fields)

    def _labels(self, record: Record, column: str) -> tuple[str, ...]:
        multi_label = self._options.get("multi_label", False)
        separator = self._options.get("separator", SEPARATOR) if multi_label else None
        labels = _as_labels(_value(record, column), separator)
        for label in labels:
            _check_characters(label, column)
        if multi_label or len(labels) == 1:
            return labels
        if not labels:
            raise InputError(f"the label in {column!r} is missing; fill it in, or skip such rows: --on-error skip")
        raise InputError(f"{len(labels)} labels in {column!r} where one is wanted; ask for multi-label if several are")


def _value(record: Record, column: str) -> Any:
    if column not in record.fields:
        raise unknown("column", column, list(record.fields))
    return record.fields[column]


def _check_characters(text: str, column: str) -> None:
    if not text.isascii() and _UNUSABLE.search(text):
        raise InputError(f"{column!r} holds half a character (a lone surrogate); write the whole one")
    if "\0" in text:
        raise InputError(f"{column!r} holds a NUL character; remove it")


def _as_labels(value: Any, separator: str | None) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        parts = [_as_label(part) for part in value]
    elif isinstance(value, str) and separator:
        parts = [part.strip() for part in value.split(separator)]
    else:
        label = _as_label(value)
        return (label,) if label else ()
    return tuple(dict.fromkeys(part for part in parts if part))


def _as_label(value: Any) -> str:
    """Labels are compared as strings, spaces around them dropped; nothing, null and NaN are no label."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()  # as JSON writes it
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise InputError(f"{value!r:.80} as a label, where a string, a number, true or false is wanted")


def _format_of(source: Source) -> str:
    if not (isinstance(source.file, Path) and source.file.is_file()):
        return "lines"  # standard input or a pipe: read once, so it cannot be looked into first
    suffix = suffix_of(source.file)
    if suffix in FORMAT_OF:
        return FORMAT_OF[suffix]
    if suffix in PLAIN:
        first = next(source.lines(), None)
        return "fasttext" if first and first.text.lstrip().startswith(LABEL_PREFIX) else "lines"
    raise InputError(f"{source.name}: no data format goes with {suffix!r}; name one of {', '.join(FORMATS.names())}")


def choose_columns(
    names: Sequence[str],
    sample: Sequence[Item],
    *,
    text: str | None = None,
    label: str | None = None,
    want_label: bool = True,
) -> Columns:
    """Settle the columns: those asked for, else by their names, else the longer of two is the text.

    >>> choose_columns(["id", "review", "stars"], []).why
    "text column 'review' and label column 'stars', by their names"
    >>> choose_columns(["review", "stars"], [], text="reviews")
    Traceback (most recent call last):
    routepool.errors.UnknownNameError: unknown column 'reviews', did you mean 'review'? Known: review, stars
    """
    for asked in (text, label):
        if asked is not None and asked not in names:
            raise unknown("column", asked, names)
    asked_for = text is not None and (label is not None or not want_label)
    label = label or _by_name(names, LABEL_NAMES, taken=text)
    known_text = text or _by_name(names, TEXT_NAMES, taken=label)
    by_name = known_text is not None and (label is not None or not want_label)
    text = known_text or _longest([name for name in names if name != label], sample)
    if want_label:
        label = label or _only([name for name in names if name != text])
    chosen = f"text column {text!r}" + (f" and label column {label!r}" if want_label else "")
    why = "as asked" if asked_for else "by their names" if by_name else "guessed: the longer texts"
    return Columns(text, label if want_label else None, f"{chosen}, {why}")


def _by_name(names: Sequence[str], known: Sequence[str], *, taken: str | None) -> str | None:
    matches = [name for name in names if name != taken and name.strip().lower() in known]
    return min(matches, key=lambda name: known.index(name.strip().lower()), default=None)


def _longest(names: Sequence[str], sample: Sequence[Item]) -> str:
    if not 1 <= len(names) <= 2:
        raise InputError(f"cannot tell which column is the text; name it: {listed(names) or 'there is none'}")
    records = [item for item in sample if isinstance(item, Record)]
    return max(names, key=lambda name: sum(len(str(record.fields.get(name, ""))) for record in records))


def _only(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise InputError(f"cannot tell which column is the label; name it: {listed(names) or 'there is no other'}")
    return names[0]
