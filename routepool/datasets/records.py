"""Numbered lines -> records: the table of data formats, and the formats of one record a line."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from routepool.datasets.sources import Line, Source
from routepool.errors import InputError
from routepool.registry import Extra, Registry

SAMPLE = 100  # records looked at before columns and headers are decided
_SAMPLED_CHARACTERS = 2**20  # or fewer, where these are long: all are in memory at once
LABEL_PREFIX = "__label__"
TEXT_NAMES = (
    "text", "texts", "review", "review_text", "reviewtext", "sentence", "content", "comment", "document", "body",
    "message", "tweet", "utterance", "question", "description", "headline", "title",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "category", "categories", "sentiment", "target", "stars", "rating", "score", "intent",
    "topic", "polarity", "emotion", "genre", "tag", "tags",
)  # fmt: skip
KNOWN_NAMES = frozenset(TEXT_NAMES + LABEL_NAMES)
# What fastText itself takes for the end of a word; other spaces, such as U+00A0, may stand in a label.
_FASTTEXT_LABEL = re.compile(rf"{LABEL_PREFIX}([^ \t\n\v\f\r]*)[ \t\n\v\f\r]*")
# Rows of the last two kinds are left out, and counted, unless every row is wanted.
Kind = Literal["unreadable", "empty", "repeated-header"]


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
    """What the caller knows about a delimited file; None is to be found out."""

    header: bool | None = None
    delimiter: str | None = None
    named: frozenset[str] = frozenset()  # columns asked for by name


@dataclass(frozen=True)
class Table:
    """What a format makes of a source: its columns, and its records one by one."""

    columns: tuple[str, ...]
    records: Iterator[Item]
    header: bool = False
    note: str = ""


FORMATS: Registry[Callable[[Source, Layout], Table]] = Registry(
    "data format", extras={"parquet": Extra("routepool.extras.parquet", "parquet")}
)


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=_Sized)


def sampled(records: Iterable[S]) -> tuple[list[S], Iterator[S]]:
    """The first records, and an iterator over all of them, those included."""
    rest = iter(records)
    sample, room = [], _SAMPLED_CHARACTERS
    for record in islice(rest, SAMPLE):
        sample.append(record)
        room -= record.size
        if room < 0:
            break
    return sample, chain(sample, rest)


@FORMATS.register("lines")
def read_lines(source: Source, layout: Layout) -> Table:
    """One text a line, no labels; a blank line is an empty text, so that every line in has its row out."""
    return Table(("text",), _each(source.lines(), lambda text: {"text": text}, keep_blank=True))


@FORMATS.register("fasttext")
def read_fasttext(source: Source, layout: Layout) -> Table:
    """`__label__a __label__b the text`, as fastText writes them."""
    return Table(("label", "text"), _each(source.lines(), _fasttext))


@FORMATS.register("tang")
def read_tang(source: Source, layout: Layout) -> Table:
    """The Yelp and IMDB sets of Tang et al. (2015): user, product, rating and text, two tabs between them."""
    return Table(_TANG, _each(source.lines(), _tang))


@FORMATS.register("jsonl")
def read_jsonl(source: Source, layout: Layout) -> Table:
    """One JSON object a line; the columns are the keys of the first records."""
    sample, records = sampled(_each(source.lines(), _json_object))
    keys = dict.fromkeys(key for item in sample if isinstance(item, Record) for key in item.fields)
    return Table(tuple(keys), records)


def _each(lines: Iterable[Line], parse: Callable[[str], dict[str, Any]], *, keep_blank: bool = False) -> Iterator[Item]:
    number = 0
    for line in lines:
        text = line.text.rstrip("\r\n")
        if not (keep_blank or text.strip()):
            continue
        number += 1
        try:
            if line.flaw:
                raise InputError(line.flaw)
            yield Record(line.row, number, parse(text), len(text))
        except InputError as error:
            yield Flaw(line.row, number, str(error))


def _fasttext(line: str) -> dict[str, Any]:
    labels, start = [], len(line) - len(line.lstrip())
    while found := _FASTTEXT_LABEL.match(line, start):
        if not found[1]:
            raise InputError(f"{LABEL_PREFIX} without a name; write {LABEL_PREFIX}NAME")
        labels.append(found[1])
        start = found.end()
    return {"label": labels, "text": line[start:]}


_TANG = ("user", "product", "rating", "text")


def _tang(line: str) -> dict[str, Any]:
    parts = re.split("\t\t", line, maxsplit=len(_TANG) - 1)
    if len(parts) != len(_TANG):
        raise InputError(f"{len(parts)} fields where {', '.join(_TANG)} are wanted, two tabs between them")
    return dict(zip(_TANG, parts, strict=True))


def _json_object(line: str) -> dict[str, Any]:
    if line.lstrip().startswith("["):
        raise InputError("a JSON list where one object a line is wanted; convert the file: jq -c '.[]'")
    try:
        value = json.loads(line, object_pairs_hook=_unique_keys)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"broken JSON ({error}); one whole object a line is wanted") from error
    if not isinstance(value, dict):
        raise InputError(f'a JSON {type(value).__name__} where an object such as {{"text": ...}} is wanted')
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise InputError(f"key {first_repeated(key for key, _ in pairs)!r:.80} comes twice; keep one")
    return fields


def first_repeated(names: Iterable[str]) -> str | None:
    """The first name that has come before.

    >>> first_repeated(["a", "b", "b", "a"])
    'b'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
