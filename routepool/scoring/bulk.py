"""Whole files: what is written in one piece, and errors that name a row."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from routepool.datasets import Example
from routepool.errors import InputError, NotFiniteError
from routepool.files.disk import writing


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
