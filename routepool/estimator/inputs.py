"""Texts, labels and weights as Python users hold them -> plain values: lists, arrays, series of any package.

No such package is imported: the methods of a value decide how it is read. Sets and mappings are errors, because they
lose the order of the texts; so are tables, whose columns would be taken for texts.
"""

# N texts  K classes

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from routepool.arrays import Flags
from routepool.errors import InputError

Form = Literal["one", "indicator", "sets"]
_ROW_OF_LABELS = (list, tuple, Set, np.ndarray)
_KINDS = "biufUO"  # of NumPy: booleans, numbers, strings and objects


@dataclass(frozen=True)
class Labels:
    """The labels of texts.

    Args:
        of_texts: the names of each text's labels.
        classes: (K,) every label, sorted, in its own type.
        form: "one" label for each text; "indicator", a matrix of zeros and ones; or "sets" of labels.
    """

    of_texts: list[tuple[str, ...]]
    classes: NDArray[Any]
    form: Form = "one"

    @property
    def names(self) -> tuple[str, ...]:
        """The classes as strings: what a model folder keeps."""
        return tuple(map(str, self.classes.tolist()))

    def select(self, rows: Flags) -> "Labels":
        """The labels of some texts; classes without any text go too, except the columns of a matrix."""
        of_texts = [labels for labels, kept in zip(self.of_texts, rows, strict=True) if kept]
        present = {name for labels in of_texts for name in labels}
        classes = self.classes
        if self.form != "indicator":
            classes = classes[[name in present for name in self.names]]
        return replace(self, of_texts=of_texts, classes=classes)


class Material(NamedTuple):
    """Texts with as many labels and weights."""

    texts: list[str]
    labels: Labels
    weights: NDArray[np.float64] | None = None


def read_training(texts: Any, labels: Any, weights: Any = None) -> Material:
    """What a classifier can learn from; a text of weight 0 is left out.

    >>> read_training(["a", "b", "c"], [1, 2, 3], [1, 0, 2]).labels.names
    ('1', '3')
    """
    read = _labelled(texts, labels)
    weighed = read_weights(weights, len(read.texts))
    if weighed is not None:
        kept = weighed > 0
        some = [text for text, one in zip(read.texts, kept, strict=True) if one]
        read = Material(some, read.labels.select(kept), weighed[kept])
    least = 2 if read.labels.form == "one" else 1
    names = read.labels.names
    if len(names) < least:
        got = f"one class, {names[0]!r}" if names else "none"
        raise InputError(f"wanted labels of {'two classes' if least == 2 else 'one class'} or more, got {got}")
    return read


def read_dev(pair: Any, form: Form) -> Material:
    """Texts and labels of the same form as those of training."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"dev must be a pair of texts and their labels, got {pair!r:.80}")
    read = _labelled(*pair)
    if read.labels.form != form:
        raise InputError(f"the labels of dev must have the form of y, {form!r}, got {read.labels.form!r}")
    return read


def _labelled(texts: Any, labels: Any) -> Material:
    read = Material(read_texts(texts), read_labels(labels))
    if not read.texts:
        raise InputError("wanted at least one text to learn from, got 0 samples")
    if len(read.labels.of_texts) != len(read.texts):
        raise InputError(f"wanted a label for each of the {len(read.texts)} texts, got {len(read.labels.of_texts)}")
    return read


def read_texts(values: Any) -> list[str]:
    """Strings from any iterable of them.

    >>> read_texts(text for text in ("a", "b"))
    ['a', 'b']
    >>> read_texts(["fine", None])
    Traceback (most recent call last):
    routepool.errors.InputError: X[1] must be a string, got None; drop missing texts or write them as ''
    """
    texts = _listed(values, "X")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"X[{place}] must be a string, got {text!r:.80}; drop missing texts or write them as ''")
    return [str(text) for text in texts]


def read_labels(values: Any) -> Labels:
    """One label for each text, a matrix of zeros and ones (N, K), or a list of each text's labels.

    >>> read_labels([3, 1, 3]).classes.tolist(), read_labels([["b", "a"], []]).of_texts
    ([1, 3], [('b', 'a'), ()])
    """
    if values is None:
        raise InputError("the classifier requires y to be passed, but the target y is None; give a label for each text")
    values = values.toarray() if hasattr(values, "toarray") else values  # a sparse matrix
    if len(getattr(values, "shape", ())) == 2:
        return _of_matrix(np.asarray(values))
    rows = _listed(values, "y")
    if rows and all(isinstance(row, _ROW_OF_LABELS) for row in rows):
        return _of_matrix(np.asarray(rows)) if _is_matrix(rows) else _of_sets(rows)
    known_type = isinstance(values, np.ndarray) and values.dtype.kind in _KINDS  # kept, an int32 as an int32
    column = _column(values if known_type else rows)
    return Labels([(str(label),) for label in column.tolist()], _sorted(column))


def read_weights(values: Any, number: int) -> NDArray[np.float64] | None:
    """(N,) numbers from 0, not all of them 0; None stays None."""
    if values is None:
        return None
    try:
        weights = np.array(values if hasattr(values, "__array__") else list(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight must be a number for each text, got {values!r:.80}") from error
    if weights.shape != (number,):
        raise InputError(f"sample_weight must be a number for each of the {number} texts, got shape {weights.shape}")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise InputError(f"sample_weight[{wrong[0]}] must be a finite number from 0, got {weights[wrong[0]]:g}")
    if not weights.any():
        raise InputError("sample_weight must not be zero for every text; a weight of zero leaves a text out")
    return weights


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes):
        raise InputError(f"{name} must be a list with an entry for each text, got one string; put it in a list")
    if isinstance(values, Mapping | Set):
        raise InputError(f"{name} must be a list, in the order of the texts, got a {type(values).__name__}")
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        raise InputError(f"{name} must have one entry for each text, got shape {shape}; choose one column of a table")
    for method in ("to_pylist", "tolist"):  # of Arrow; of NumPy and pandas
        if hasattr(values, method):
            return list(getattr(values, method)())
    if isinstance(values, Iterable):
        return list(values)
    if hasattr(values, "__array__"):
        return _listed(np.asarray(values), name)
    raise InputError(f"{name} must be a list with an entry for each text, got {values!r:.80}")


def _is_matrix(rows: Sequence[Any]) -> bool:
    """Are these rows of zeros and ones of one length above 1? scikit-learn reads them as a matrix."""
    if any(isinstance(row, Set) for row in rows) or len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        return False
    return all(not isinstance(cell, str) and cell in (0, 1) for row in rows for cell in row)


def _of_matrix(matrix: NDArray[Any]) -> Labels:
    if matrix.shape[1] == 1:
        # Here and not above: it is needed for a warning in scikit-learn's own words.
        from sklearn.utils import column_or_1d  # noqa: PLC0415

        return read_labels(column_or_1d(matrix, warn=True))
    if matrix.dtype.kind not in "biuf" or not np.isin(matrix, (0, 1)).all():
        raise InputError(
            f"a y of {matrix.shape[1]} columns must hold zeros and ones, one column for each label, got {matrix!r:.80}"
        )
    of_texts = [tuple(map(str, np.flatnonzero(row).tolist())) for row in matrix]
    return Labels(of_texts, np.arange(matrix.shape[1]), "indicator")


def _of_sets(rows: Sequence[Any]) -> Labels:
    of_texts = [list(dict.fromkeys(row)) for row in rows]
    every = _column([label for labels in of_texts for label in labels])
    return Labels([tuple(map(str, labels)) for labels in of_texts], _sorted(every), "sets")


def _column(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Labels as an array of one type."""
    if not isinstance(values, np.ndarray):
        _check_one_kind(values)
    column = np.asarray(values)
    if column.dtype.kind == "O":
        _check_one_kind(column.tolist())
        if len(column) and not isinstance(column[0], str):
            column = np.asarray(column.tolist())
    if column.dtype.kind not in _KINDS or column.ndim != 1:
        raise InputError(f"labels must be strings, whole numbers or booleans, got {values!r:.80}")
    if column.dtype.kind == "f":
        _check_whole(column)
    return column


def _check_one_kind(labels: Sequence[Any]) -> None:
    """Raise InputError for a missing label, and for a mixture, which NumPy would turn into strings."""
    for place, label in enumerate(labels):
        if label is None or (isinstance(label, float) and math.isnan(label)):
            raise InputError(f"y[{place}] must be a label, got {label!r}; drop texts without one")
        if isinstance(label, bytes) or isinstance(label, str) != isinstance(labels[0], str):
            raise InputError(f"labels must be all of one type, got {labels[0]!r:.40} and y[{place}] = {label!r:.40}")


def _check_whole(column: NDArray[Any]) -> None:
    broken = np.flatnonzero(~np.isfinite(column))
    if len(broken):
        raise InputError(f"y[{broken[0]}] must be a label, got {column[broken[0]]}; drop texts without one")
    parts = np.flatnonzero(column != np.floor(column))
    if len(parts):
        raise InputError(f"y must hold classes, got continuous numbers such as y[{parts[0]}] = {column[parts[0]]}")


def _sorted(column: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.unique(column)
    except TypeError as error:
        raise InputError(f"labels must be of one type that can be sorted ({error})") from error
