"""Whole files: texts read, computed and written one after the other, in memory that does not grow."""

import io
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, TextIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from routepool.datasets import Example, Reader, options_for, read
from routepool.errors import InputError, NotFiniteError
from routepool.files.disk import writing
from routepool.printable import by_row
from routepool.scoring.backends import Encoding, Prediction
from routepool.scoring.predictor import load
from routepool.scoring.rows import PredictionFile, RowLayout
from routepool.scoring.vector_files import VECTOR_FILES
from routepool.text import Unread

R = TypeVar("R", Prediction, Encoding)
Watch = Callable[[Iterable[Any]], Iterable[Any]]
ROWS = 1024  # of vectors, written at once


class Engine(Protocol):
    """What computes the texts of a file: a `Predictor`, in this process, or what spreads them over others.

    A stream gives one result for each text, in their order, and reads only so far ahead that memory does not grow. What
    is not finite is a `NotFiniteError` with the place of its text, after the results of all texts before it.
    """

    labels: tuple[str, ...]
    multi_label: bool
    columns: Mapping[str, Any] | None  # the data columns of training, looked for in other files too

    def stream(self, texts: Iterable[str]) -> Iterator[Prediction]: ...

    def stream_encodings(self, texts: Iterable[str], *, capsules: bool = False) -> Iterator[Encoding]: ...

    def encode(self, texts: Sequence[str], *, capsules: bool = False) -> NDArray[np.float32]: ...


class Done(NamedTuple):
    """What there is to say of a file that was read to its end."""

    reader: Reader  # its source, and the rows that were left out
    unread: Unread  # the texts that were not read whole or not known


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
        layout: of the rows.
        force: replace an output that is there.
        watch: handed the results on their way to the file, such as a progress bar.
        reading: how the file is read, the options of `routepool.datasets.read`.
    """
    layout = layout or RowLayout()
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
        capsules: each vector as its parts.
        force: replace an output that is there.
        watch: handed the results on their way to the file, such as a progress bar.
        reading: how the file is read, the options of `routepool.datasets.read`.
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
    """Let an error about a text's place among the examples name its row."""
    try:
        yield
    except NotFiniteError as error:
        raise NotFiniteError(error.place, f"{source}, row {examples[error.place].row}") from error


def check_out(path: Path, *, force: bool) -> None:
    """Refuse an output that cannot be written or is there already, before anything is computed for it."""
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
    part = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with writing(path):
            with part.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


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
