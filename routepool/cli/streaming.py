"""Texts in, one result for each out: what `predict` and `encode` share."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from rich.progress import TextColumn, TimeElapsedColumn

from routepool.cli import screen
from routepool.datasets import Example, Reader, read
from routepool.errors import InputError, NotFiniteError
from routepool.files.disk import writing
from routepool.runs.sets import options_for
from routepool.scoring.predictor import Predictor

R = TypeVar("R")


def read_for(model: Predictor, source: str, **reading: Any) -> Reader:
    """The texts of a file, or of standard input for `-`, in the columns of the model unless told otherwise."""
    return read(source, **options_for(source, model.columns, labels=False, **reading))


def with_examples(reader: Reader, compute: Callable[[Iterable[str]], Iterator[R]]) -> Iterator[tuple[Example, R]]:
    """Each example with what is computed of its text, in the order of the file."""
    waiting: deque[Example] = deque()

    def texts() -> Iterator[str]:
        for example in reader:
            waiting.append(example)
            yield example.text

    try:
        for result in compute(texts()):
            yield waiting.popleft(), result
    except NotFiniteError as error:  # results come in the order of the texts
        raise NotFiniteError(error.place, f"{reader.source}, row {waiting[0].row}") from error


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


def counted(items: Iterable[R], *, show: bool = True) -> Iterator[R]:
    """The same items, with a count on the terminal if it is free for one."""
    columns = (TextColumn("{task.completed} texts"), TimeElapsedColumn())
    with screen.progress(*columns, shown=show) as bar:
        task = bar.add_task("", total=None)
        for item in items:
            yield item
            bar.advance(task)
