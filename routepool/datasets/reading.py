"""Records -> examples, one by one in bounded memory: the columns of text and label, and what a row holds in them."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from routepool.datasets.delimited import LABEL_NAMES, TEXT_NAMES
from routepool.datasets.lines import LABEL_PREFIX
from routepool.datasets.records import (
    FORMATS,
    Columns,
    Example,
    Flaw,
    Item,
    Kind,
    Layout,
    ReadOptions,
    Record,
    Skipped,
    Table,
)
from routepool.datasets.sources import COMPRESSED, LONGEST_ROW, Source, SourceLike, suffix_of
from routepool.errors import InputError, listed, unknown
from routepool.printable import by_row, plural
from routepool.settings.declarations import SEPARATOR

if TYPE_CHECKING:
    from routepool.datasets.loading import Dataset

LISTED = 1000  # skipped rows of a kind that are kept by name; all are counted
ON_ERROR = ("stop", "skip")
_STOP = ("stop", "raise")  # the second is its older name, which runs that were stopped have on record
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # only an escape in JSON can bring one here
# Suffixes that are not the name of their format; what has none is lines of text, or fastText's format.
_FORMAT_OF = {
    "": "lines", ".txt": "lines", ".tab": "tsv", ".ndjson": "jsonl", ".json": "jsonl", ".ss": "tang", ".ft": "fasttext",
}  # fmt: skip
_OWN_COLUMNS = ("lines", "fasttext", "tang")  # formats whose columns are always the same
LEFT_OUT: Mapping[Kind, str] = {"empty": "empty texts", "repeated-header": "repeats of the header"}
_SAID = 20  # skipped rows that are listed with their reasons


class _EmptyError(InputError):
    """An empty text where a label is to be learned from it."""


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
    """Examples in the file's order, read once. `on_error` decides what bad rows do; a damaged file always raises."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source = source.name
        self.skipped: list[Skipped] = []
        self.skipped_kinds: Counter[Kind] = Counter()
        self._options = options
        asked = {str(name) for key in ("text_column", "label_column") if (name := options.get(key))}
        layout = Layout(options.get("header"), options.get("delimiter"), frozenset(asked))
        table = FORMATS[options.get("format") or _format_of(source)](source, layout)
        if not table.sample:
            what = "has a header and no rows" if table.header else "is empty"
            raise InputError(f"{self.source}, row 1: the file {what}; at least one record is wanted")
        self._header = table.header
        self._items = chain(table.sample, table.rest)
        self.columns = self._choose(table)

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

    def _choose(self, table: Table) -> Columns:
        if not table.columns:  # nothing but flaws
            reason = getattr(table.sample[0], "reason", "an object without keys")
            self._handle(table.sample[0], reason, final=True)
        options = self._options
        try:
            columns = choose_columns(
                table.columns,
                table.sample,
                text=options.get("text_column"),
                label=options.get("label_column"),
                want_label=options.get("labels", True),
            )
        except InputError as error:
            raise type(error)(f"{self.source}, row 1: {error}") from error
        why = f"{columns.why}; {table.note}" if table.note else columns.why
        return replace(columns, why=why, header=table.header)

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
    """A label as a string without spaces around it; nothing, null and NaN are no label."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()  # as JSON writes it
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise InputError(f"{value!r:.80} as a label, where a string, a number, true or false is wanted")


def options_for(source: str, columns: Mapping[str, Any] | None, **asked: Any) -> ReadOptions:
    """Options to read a file for a model: the columns it was trained on, unless others are asked for.

    Args:
        source: the file, or `-`.
        columns: those of the model; None if it has none.
        asked: options of `read`; None is not asked.

    >>> options_for("new.csv", {"text": "review", "label": "stars", "header": True}, labels=False, on_error=None)
    {'labels': False, 'header': True, 'text_column': 'review'}
    """
    options = {name: value for name, value in asked.items() if value is not None}
    if columns and options.get("multi_label"):
        options.setdefault("separator", columns.get("separator"))
    if columns and (options.get("format") or _named_format(source)) not in _OWN_COLUMNS:
        names = [("text_column", "text")] + ([("label_column", "label")] if options.get("labels", True) else [])
        if not any(name in options for name, _ in names):
            options["header"] = columns.get("header")
        for name, key in names:
            options.setdefault(name, columns.get(key))
    return cast(ReadOptions, {name: value for name, value in options.items() if value is not None})


def _named_format(name: str | Path) -> str | None:
    """The format that goes with a file's suffix; files of plain lines and of fastText may share one."""
    suffix = suffix_of(name)
    named = suffix[1:] if suffix[1:] in FORMATS.names() else None
    return _FORMAT_OF.get(suffix, named)


def looks_like_data(name: str) -> bool:
    """Whether a name ends as that of a data file, compressed or not, does.

    >>> looks_like_data("reviews.csv.gz"), looks_like_data("great."), looks_like_data("3.50")
    (True, False, False)
    """
    return name.lower().endswith(COMPRESSED) or (suffix_of(name) != "" and _named_format(name) is not None)


def _format_of(source: Source) -> str:
    if not (isinstance(source.file, Path) and source.file.is_file()):
        return "lines"  # standard input or a pipe: read once, so it cannot be looked into first
    name = _named_format(source.file)
    if name is None:
        known = ", ".join(FORMATS.names())
        raise InputError(f"{source.name}: no data format goes with {suffix_of(source.file)!r}; name one of {known}")
    if name == "lines":
        first = next(source.lines(), None)
        return "fasttext" if first and first.text.lstrip().startswith(LABEL_PREFIX) else "lines"
    return name


def choose_columns(
    names: Sequence[str],
    sample: Sequence[Item],
    *,
    text: str | None = None,
    label: str | None = None,
    want_label: bool = True,
) -> Columns:
    """Choose the columns: those asked for, else by their names, else the longer of two is the text.

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


def skipped_lines(data: "Dataset | Reader") -> Iterator[str]:
    """Which rows were left out: how many of each kind, and why some cannot be read."""
    for kind, count in data.skipped_kinds.items():
        skipped = [one for one in data.skipped if one.kind == kind]
        if kind in LEFT_OUT:
            rows = by_row([one.row for one in skipped], count)
            yield f"{data.source}: {LEFT_OUT[kind]} left out: {count} ({rows})"
            continue
        yield f"{data.source}: {plural(count, 'row')} skipped"
        yield from (f"  row {one.row}: {one.reason}" for one in skipped[:_SAID])
        if count > _SAID:
            yield f"  and {count - _SAID} more"
