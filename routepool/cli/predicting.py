"""What `routepool predict` does: texts read, predicted and written one after the other."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from routepool.cli.notices import list_skipped, telling_unread
from routepool.cli.streaming import check_out, counted, new_file, read_for, with_examples
from routepool.datasets import Example
from routepool.errors import InputError
from routepool.scoring.predictor import Predictor, load
from routepool.scoring.results import Prediction

JOINED = "|"
_DIGITS = 6

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be written.

    Args:
        run: the model folder.
        source: a file, or `-`.
        out: a file; None for standard output.
        format: csv or jsonl.
        every_label: a probability for each label.
        top: how many of the likeliest labels.
        keep: the input's own columns first.
        force: replace an output that is there.
    """

    run: str
    source: str
    out: str | None = None
    format: str = "csv"
    every_label: bool = False
    top: int = 1
    keep: bool = False
    force: bool = False


def predict_file(order: Order, **reading: Any) -> None:
    """Predict all texts of a file or of standard input; the options are those of `datasets.read`."""
    if order.format not in ("csv", "jsonl"):
        raise InputError(f"--format must be csv or jsonl, got {order.format!r}")
    if order.out:
        check_out(Path(order.out), force=order.force)
    model = load(order.run)
    if order.top > len(model.labels):
        raise InputError(f"-k must be at most {len(model.labels)}, the labels of the model, got {order.top}")
    reader = read_for(model, order.source, **reading)
    places = {label: place for place, label in enumerate(model.labels)}
    with _output(order.out) as file:
        write = _writer(file, order.format)
        results = telling_unread(reader.source, with_examples(reader, model.stream))
        for example, prediction in counted(results, show=order.out is not None):
            write(_row(order, model, example, Shares(prediction, places)))
    list_skipped(reader)


class Shares:
    """The probabilities of one text as they are written: of thousands of labels, only those that are asked for."""

    def __init__(self, prediction: Prediction, places: Mapping[str, int]) -> None:
        self.labels, self.reading = prediction.labels, prediction.reading
        self._all, self._places = prediction.probabilities, places

    def __getitem__(self, label: str) -> float:
        return float(self._all[self._places[label]].round(_DIGITS))

    def all(self) -> list[float]:
        rounded: list[float] = self._all.round(_DIGITS).tolist()
        return rounded

    def likeliest(self, number: int) -> list[int]:
        """Places of the largest ones, the first of equal ones first."""
        among = np.flatnonzero(self._all >= np.partition(self._all, -number)[-number])
        return among[np.argsort(-self._all[among], kind="stable")][:number].tolist()  # type: ignore[no-any-return]


def _row(order: Order, model: Predictor, example: Example, shares: Shares) -> Row:
    row: Row = {"row": example.row, **_answer(order, model, shares)}
    if not order.keep:
        return row
    kept = dict(example.fields)
    return {**kept, **{_free(name, kept): value for name, value in row.items()}}


def _answer(order: Order, model: Predictor, shares: Shares) -> Row:
    answer: Row
    if not model.multi_label:
        (label,) = shares.labels
        answer = {"label": label, "probability": shares[label]}
    elif order.format == "jsonl":
        answer = {"labels": shares.labels, "probabilities": [shares[label] for label in shares.labels]}
    else:
        probabilities = JOINED.join(str(shares[label]) for label in shares.labels)
        answer = {"label": JOINED.join(shares.labels), "probability": probabilities}
    if order.top > 1:
        likeliest = [model.labels[place] for place in shares.likeliest(order.top)]
        first = 1 if model.multi_label else 2  # of one label, the likeliest stands there already
        for place, label in list(enumerate(likeliest, 1))[first - 1 :]:
            answer |= {f"label_{place}": label, f"probability_{place}": shares[label]}
    if order.every_label:
        answer |= {f"p({label})": share for label, share in zip(model.labels, shares.all(), strict=True)}
    if order.format == "jsonl":
        answer |= shares.reading._asdict()
    return answer


def _free(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name = f"predicted_{name}"
    return name


def _writer(file: TextIO, form: str) -> Callable[[Row], None]:
    columns: dict[str, None] = {}  # in their order, and found at once among thousands
    table = csv.writer(file, lineterminator="\n")

    def write_json(row: Row) -> None:
        file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")  # a date of a Parquet file

    def write_csv(row: Row) -> None:
        if not columns:
            columns.update(dict.fromkeys(row))
            table.writerow(columns)
        extra = [name for name in row if name not in columns]
        if extra:
            raise InputError(f"row {row['row']}: column {extra[0]!r} is not in the first row; use --format jsonl")
        table.writerow([row.get(name, "") for name in columns])

    return write_json if form == "jsonl" else write_csv


@contextmanager
def _output(name: str | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears complete or not at all."""
    if name is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="")
        yield sys.stdout
        return
    with new_file(name) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.flush()
