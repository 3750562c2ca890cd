"""Text files of vectors are parsed once: after that they are read from a safetensors file in the cache folder.

The folder is `$ROUTEPOOL_CACHE`, else `~/.cache/routepool`. A file's name there is the SHA-256 of the source's content
(a second for each gigabyte or two), so a moved or touched source is not parsed again and a changed one always is.
A cache that cannot be read is made again; one that cannot be written costs a warning and the time to parse.
"""

import hashlib
import json
import logging
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from routepool.errors import InputError
from routepool.vectors.arrays import NAMES, Block, read_safetensors

logger = logging.getLogger(__name__)

ENVIRONMENT = "ROUTEPOOL_CACHE"
_LAYOUT = "vectors-1"  # to be counted up when the rules of parsing change
_HEADER = 512  # bytes kept free for the header, which is known only after the last row


def cached(
    source: Path, member: str, parse: Callable[[], Iterator[Block]], *, folder: Path | None = None
) -> Iterator[Block]:
    """The rows of `source`, from the cache where it has them, else parsed and put there."""
    file = (folder or default_folder()) / _LAYOUT / f"{_digest(source, member)}.safetensors"
    if file.exists():
        try:
            return read_safetensors(file)
        except InputError as error:
            logger.warning("the cache is broken and made again: %s", error)
    try:
        _write(file, parse())
    except OSError as error:
        logger.warning("%s: not cached, it will be parsed each time (%s)", source, error)
        return parse()
    return read_safetensors(file)


def default_folder() -> Path:
    """Where parsed files are kept unless told otherwise."""
    chosen = os.environ.get(ENVIRONMENT)
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "routepool"


def _digest(source: Path, member: str) -> str:
    try:
        with source.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error}); correct the path or the permissions") from error
    return hashlib.sha256(f"{content} {member}".encode()).hexdigest() if member else content


def _write(file: Path, blocks: Iterator[Block]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    try:
        with part.open("wb") as output:
            _stream(output, blocks)
            output.flush()
            os.fsync(output.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _stream(output: IO[bytes], blocks: Iterator[Block]) -> None:
    """Write a safetensors file row by row: the library's own writer wants the whole table in memory."""
    output.write(bytes(8 + _HEADER))
    words, rows, size = bytearray(), 0, 0
    for names, values in blocks:
        output.write(values.astype("<f4").tobytes())
        words += "".join(f"{name}\n" for name in names).encode()
        rows, size = rows + len(names), values.shape[1]
    output.write(words[:-1])
    end = 4 * rows * size
    entries = (("F32", [rows, size], [0, end]), ("U8", [len(words) - 1], [end, end + len(words) - 1]))
    keys = ("dtype", "shape", "data_offsets")
    header = {name: dict(zip(keys, entry, strict=True)) for name, entry in zip(NAMES, entries, strict=True)}
    output.seek(0)
    output.write(struct.pack("<Q", _HEADER) + json.dumps(header).encode().ljust(_HEADER))
