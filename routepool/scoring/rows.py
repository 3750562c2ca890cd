"""Predictions -> rows of CSV or JSON lines, one for each text."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from routepool.datasets import Example
from routepool.errors import InputError
from routepool.scoring.backends import Prediction
from routepool.settings.declarations import SEPARATOR

FORMATS = ("csv", "jsonl")
_DIGITS = 6

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class RowLayout:
    """What a row holds beside the number of the text's row, its label and the probability of that.

    Args:
        format: csv or jsonl. JSON lines also say how much of each text was read.
        top: how many of the likeliest labels.
        every_label: a probability for each label.
        keep: the input's own columns first.
    """

    format: str = "csv"
    top: int = 1
    every_label: bool = False
    keep: bool = False

    def __post_init__(self) -> None:
        """Refuse a format that is not there."""
        if self.format not in FORMATS:
            raise InputError(f"--format must be csv or jsonl, got {self.format!r}")


class PredictionFile:
    r"""Rows on their way to a file.

    >>> import sys
    >>> from routepool.text import Reading
    >>> file = PredictionFile(sys.stdout, RowLayout(every_label=True), ("bad", "good"))
    >>> file.write(Example(2, "fine"), Prediction(("good",), np.array([0.25, 0.75]), Reading(0, 1)))
    row,label,probability,p(bad),p(good)
    2,good,0.75,0.25,0.75
    """

    def __init__(self, file: TextIO, layout: RowLayout, labels: Sequence[str], *, multi_label: bool = False) -> None:
        self._file, self._layout, self._labels, self._multi_label = file, layout, labels, multi_label
        self._places = {label: place for place, label in enumerate(labels)}
        self._table = csv.writer(file, lineterminator="\n")
        self._columns: dict[str, None] = {}  # in their order, and found at once among thousands

    def write(self, example: Example, prediction: Prediction) -> None:
        """Add the row of a text."""
        row: Row = {"row": example.row, **self._answer(prediction)}
        if self._layout.keep:
            kept = dict(example.fields)
            row = {**kept, **{_free(name, kept): value for name, value in row.items()}}
        if self._layout.format == "jsonl":
            self._file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")  # a date of a Parquet file
            return
        if not self._columns:
            self._columns.update(dict.fromkeys(row))
            self._table.writerow(self._columns)
        extra = [name for name in row if name not in self._columns]
        if extra:
            raise InputError(f"row {row['row']}: column {extra[0]!r} is not in the first row; use --format jsonl")
        self._table.writerow([row.get(name, "") for name in self._columns])

    def _answer(self, prediction: Prediction) -> Row:
        labels, probabilities = prediction.labels, prediction.probabilities
        given = [self._rounded(probabilities, label) for label in labels]
        answer: Row
        if not self._multi_label:
            answer = {"label": labels[0], "probability": given[0]}
        elif self._layout.format == "jsonl":
            answer = {"labels": labels, "probabilities": given}
        else:
            answer = {"label": SEPARATOR.join(labels), "probability": SEPARATOR.join(map(str, given))}
        if self._layout.top > 1:
            places = likeliest(probabilities, self._layout.top)
            first = 1 if self._multi_label else 2  # of one label, the likeliest stands there already
            for number, place in list(enumerate(places, 1))[first - 1 :]:
                label = self._labels[place]
                answer |= {f"label_{number}": label, f"probability_{number}": self._rounded(probabilities, label)}
        if self._layout.every_label:
            every = probabilities.round(_DIGITS).tolist()
            answer |= {f"p({label})": one for label, one in zip(self._labels, every, strict=True)}
        if self._layout.format == "jsonl":
            answer |= prediction.reading._asdict()
        return answer

    def _rounded(self, probabilities: NDArray[np.float64], label: str) -> float:
        """One of thousands, perhaps: the others are not rounded."""
        return float(probabilities[self._places[label]].round(_DIGITS))


def likeliest(probabilities: NDArray[np.float64], number: int) -> list[int]:
    """Places of the largest of them (K,), the first of equal ones first.

    >>> likeliest(np.array([0.1, 0.4, 0.1, 0.4]), 3)
    [1, 3, 0]
    """
    among = np.flatnonzero(probabilities >= np.partition(probabilities, -number)[-number])
    return among[np.argsort(-probabilities[among], kind="stable")][:number].tolist()  # type: ignore[no-any-return]


def _free(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name = f"predicted_{name}"
    return name
