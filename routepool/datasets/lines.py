"""Formats of one record a line: plain lines, fastText's, JSON lines, and that of Tang et al. (2015)."""

import json
import re
from collections.abc import Callable, Iterator
from statistics import mode
from typing import Any

from routepool.datasets.records import FORMATS, Flaw, Item, Layout, Record, Table
from routepool.datasets.sources import Line, Source, first_of
from routepool.errors import InputError

LABEL_PREFIX = "__label__"
# What fastText itself takes for the end of a word; other spaces, such as U+00A0, may stand in a label.
_FASTTEXT_LABEL = re.compile(rf"{LABEL_PREFIX}([^ \t\n\v\f\r]*)[ \t\n\v\f\r]*")
_TANG = ("user", "product", "rating", "text")

Parse = Callable[[str], dict[str, Any]]


@FORMATS.register("lines")
def read_lines(source: Source, layout: Layout) -> Table:
    """One text a line, no labels; a blank line is an empty text, so that every line in has its row out."""
    return _table(("text",), source, lambda text: {"text": text}, keep_blank=True)


@FORMATS.register("fasttext")
def read_fasttext(source: Source, layout: Layout) -> Table:
    """`__label__a __label__b the text`, as fastText writes them."""
    return _table(("label", "text"), source, _fasttext)


@FORMATS.register("tang")
def read_tang(source: Source, layout: Layout) -> Table:
    """The Yelp and IMDB sets of Tang et al. (2015): user, product, rating and text, two tabs between them."""
    return _table(_TANG, source, _tang)


@FORMATS.register("jsonl")
def read_jsonl(source: Source, layout: Layout) -> Table:
    """One JSON object a line; the columns are the keys of the first records."""
    table = _table((), source, _json_object)
    keys = dict.fromkeys(key for item in table.sample if isinstance(item, Record) for key in item.fields)
    return table._replace(columns=tuple(keys))


def _table(columns: tuple[str, ...], source: Source, parse: Parse, *, keep_blank: bool = False) -> Table:
    records = _records(source.lines(), parse, keep_blank=keep_blank)
    return Table(columns, first_of(records), records)


def _records(lines: Iterator[Line], parse: Parse, *, keep_blank: bool) -> Iterator[Item]:
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
        raise InputError(f"key {mode(key for key, _ in pairs)!r:.80} comes twice; keep one")
    return fields
