"""Whole files: texts are read, computed and written one after the other, in memory that does not grow."""

import csv
import io
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, TypeVar

import numpy as np

from routepool.arrays import Floats64
from routepool.datasets import Example, Reader, options_for, read
from routepool.errors import InputError, NotFiniteError
from routepool.files.disk import whole, writing
from routepool.printable import by_row
from routepool.scoring.backends import Encoding, Engine, Prediction
from routepool.scoring.predictor import load
from routepool.scoring.vector_files import VECTOR_FILES
from routepool.settings.declarations import SEPARATOR
from routepool.text import Unread

R = TypeVar("R", Prediction, Encoding)
Watch = Callable[[Iterable[Any]], Iterable[Any]]
ROWS = 1024  # of vectors, written at once
FORMATS = ("csv", "jsonl")
_DIGITS = 6  # of a probability


class Done(NamedTuple):
    """A file that was read to its end."""

    reader: Reader  # its source, and the rows that were left out
    unread: Unread  # the texts that were not read whole or not known


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


def predict_file(
    model: Engine | str | os.PathLike[str],
    source: str,
    out: str | None = None,
    layout: RowLayout | None = None,
    *,
    force: bool = False,
    watch: Watch = iter,
    **reading: Any,
) -> Done:
    """Predict all texts of a file: what `routepool predict RUN FILE --out O` does.

    Args:
        model: what computes, or a model folder.
        source: a file, or `-` for standard input.
        out: a file, which appears complete or not at all; None for standard output.
        layout: what a row holds.
        force: replace an existing file.
        watch: wraps the stream of results, as a progress bar does.
        reading: options of `routepool.datasets.read`.
    """
    layout = layout or RowLayout()
    if layout.format not in FORMATS:
        raise InputError(f"--format must be csv or jsonl, got {layout.format!r}")
    if out is not None:
        check_out(Path(out), force=force)
    engine = load(model) if isinstance(model, str | os.PathLike) else model
    if layout.top > len(engine.labels):
        raise InputError(f"-k must be at most {len(engine.labels)}, the labels of the model, got {layout.top}")
    reader, unread = _opened(engine, source, **reading)
    with _text_file(out) as file:
        rows = PredictionFile(file, layout, engine.labels, multi_label=engine.multi_label)
        for example, prediction in watch(_results(reader, engine.stream, unread)):
            rows.write(example, prediction)
    return Done(reader, unread)


def encode_file(
    model: Engine | str | os.PathLike[str],
    source: str,
    out: str,
    *,
    capsules: bool = False,
    force: bool = False,
    watch: Watch = iter,
    **reading: Any,
) -> Done:
    """Write the vectors of all texts of a file: what `routepool encode RUN FILE --out O` does.

    Args:
        model: what computes, or a model folder.
        source: a file, or `-` for standard input.
        out: a file whose suffix says the format; it appears complete or not at all.
        capsules: split each vector into its parts.
        force: replace an existing file.
        watch: wraps the stream of results, as a progress bar does.
        reading: options of `routepool.datasets.read`.
    """
    name = Path(out).suffix.lower().removeprefix(".")
    if name not in VECTOR_FILES.names():
        wanted = ", ".join(f".{name}" for name in VECTOR_FILES.names())
        raise InputError(f"{out}: the name of --out must end in one of {wanted}, which says the format")
    check_out(Path(out), force=force)
    make = VECTOR_FILES[name]  # one whose package is missing is said now
    engine = load(model) if isinstance(model, str | os.PathLike) else model
    reader, unread = _opened(engine, source, **reading)
    shape = engine.encode([], capsules=capsules).shape[1:]
    results = iter(watch(_results(reader, partial(engine.stream_encodings, capsules=capsules), unread)))
    with new_file(out) as file, closing(make(file, shape)) as vectors:
        while piece := list(islice(results, ROWS)):
            vectors.write([example.row for example, _ in piece], np.stack([one.vector for _, one in piece]))
    return Done(reader, unread)


def _opened(engine: Engine, source: str, **reading: Any) -> tuple[Reader, Unread]:
    return read(source, **options_for(source, engine.columns, labels=False, **reading)), Unread(by_row)


def _results(
    reader: Reader, compute: Callable[[Iterable[str]], Iterator[R]], unread: Unread
) -> Iterator[tuple[Example, R]]:
    """Each example with what is computed of its text, in the order of the file."""
    waiting: deque[Example] = deque()

    def texts() -> Iterator[str]:
        for example in reader:
            waiting.append(example)
            yield example.text

    try:
        for result in compute(texts()):
            example = waiting.popleft()
            unread.add(example.row, result.reading)
            yield example, result
    except NotFiniteError as error:  # results come in the order of the texts
        raise NotFiniteError(error.place, f"{reader.source}, row {waiting[0].row}") from error


@contextmanager
def naming_rows(source: str, examples: Sequence[Example]) -> Iterator[None]:
    """Make an error that names a text's place among the examples name its row."""
    try:
        yield
    except NotFiniteError as error:
        raise NotFiniteError(error.place, f"{source}, row {examples[error.place].row}") from error


def check_out(path: Path, *, force: bool) -> None:
    """Raise `InputError` if an output cannot be written or exists, before anything is computed for it."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it, or choose another")
    if path.exists() and not path.is_file():  # a device would be replaced by a file
        raise InputError(f"{path}: wanted a file to write, got something else; choose another --out")
    if path.exists() and not force:
        raise InputError(f"{path}: there is such a file already; choose another, or use --force to replace it")


@contextmanager
def new_file(name: str) -> Iterator[BinaryIO]:
    """A file that appears complete or not at all."""
    path = Path(name).resolve()  # a link stays one
    with writing(path), whole(path) as file:
        yield file


@contextmanager
def _text_file(name: str | None) -> Iterator[TextIO]:
    """Standard output, or a new file."""
    if name is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="")
        yield sys.stdout
        return
    with new_file(name) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.flush()


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
        row: dict[str, Any] = {"row": example.row, **self._answer(prediction)}
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

    def _answer(self, prediction: Prediction) -> dict[str, Any]:
        labels, probabilities = prediction.labels, prediction.probabilities
        given = [self._rounded(probabilities, label) for label in labels]
        answer: dict[str, Any]
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

    def _rounded(self, probabilities: Floats64, label: str) -> float:
        """One of thousands, perhaps: the others are not rounded."""
        return float(probabilities[self._places[label]].round(_DIGITS))


def likeliest(probabilities: Floats64, number: int) -> list[int]:
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
