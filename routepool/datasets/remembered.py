"""The columns that a model was trained on, and how a file of its kind is read by them."""

from collections.abc import Mapping
from typing import Any, cast

from routepool.datasets.loading import Dataset
from routepool.datasets.reading import ReadOptions
from routepool.datasets.sources import FORMAT_OF, PLAIN, suffix_of

_OWN_COLUMNS = {"lines", "fasttext", "tang"}  # formats whose columns are what they are


def columns_of(data: Dataset) -> dict[str, Any]:
    """The columns of a data set, as a model keeps them."""
    return {"text": data.columns.text, "label": data.columns.label, "header": data.columns.header}


def options_for(source: str, columns: Mapping[str, Any] | None, **asked: Any) -> ReadOptions:
    """How to read a file of a model's kind: in the columns it was trained on, unless others are asked for.

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
    if columns and not _has_own_columns(source, options.get("format")):
        names = [("text_column", "text")] + ([("label_column", "label")] if options.get("labels", True) else [])
        if not any(name in options for name, _ in names):
            options["header"] = columns.get("header")
        for name, key in names:
            options.setdefault(name, columns.get(key))
    return cast(ReadOptions, {name: value for name, value in options.items() if value is not None})


def _has_own_columns(source: str, name: str | None) -> bool:
    suffix = suffix_of(source)
    return (name or FORMAT_OF.get(suffix, "lines" if source == "-" or suffix in PLAIN else "")) in _OWN_COLUMNS
