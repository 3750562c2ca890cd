"""Text files of vectors are parsed once: after that they are read from a safetensors file in the cache folder.

They are kept under the SHA-256 of the source's content (a second for each gigabyte or two), so a moved or touched
source is not parsed again and a changed one always is. A cache that is not what was written is made again
(`routepool.files.caching`); one that cannot be written costs a warning and the time to parse.
"""

import hashlib
import json
import logging
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from routepool.errors import InputError
from routepool.files.caching import default_folder, digest_of, find, keep
from routepool.vectors.arrays import NAMES, Block, read_safetensors

logger = logging.getLogger(__name__)

_LAYOUT = "vectors-2"  # to be counted up when the rules of parsing or of naming change
_HEADER = 512  # bytes kept free for the header, which is known only after the last row


def cached(
    source: Path, member: str, parse: Callable[[], Iterator[Block]], *, folder: Path | None = None
) -> Iterator[Block]:
    """The rows of `source`, from the cache where it has them, else parsed and put there."""
    folder = (folder or default_folder()) / _LAYOUT
    key = _key(source, member)
    file = find(folder, key)
    if file is None:
        try:
            file = keep(folder, key, lambda output: _stream(output, parse()))
        except OSError as error:
            logger.warning("%s: not cached, it will be parsed each time (%s)", source, error)
            return parse()
    return read_safetensors(file)


def _key(source: Path, member: str) -> str:
    try:
        content = digest_of(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error}); correct the path or the permissions") from error
    return hashlib.sha256(f"{content} {member}".encode()).hexdigest() if member else content


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
