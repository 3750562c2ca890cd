"""Compressed files, read without trust: a small file that swells without end is refused before it fills the memory.

Text is usually packed to between a third and a tenth of its size; gzip packs one row of ten letters, repeated, to a
516th. A file that swells more than 600 times is refused once a megabyte has come out; it can be unpacked by hand.
"""

import io
from collections.abc import Callable
from typing import IO, Any, cast

from routepool.errors import InputError

RATIO = 600
ALWAYS = 2**20  # bytes that may come out of any file
_BUFFER, _PIECE, _IN_PIECES = 2**16, 4, 2**12


class SwollenError(InputError):
    """A compressed file swells more than an honest one; the caller adds the file and the place."""


class _Counted:
    """A stream that counts the bytes read from it.

    A decompressor reads ahead, and a few bytes may swell to millions. So the first bytes are handed out in small
    pieces: then no more are counted than were needed.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.size = 0

    def read(self, size: int) -> bytes:
        content = self._stream.read(min(size, _PIECE) if self.size < _IN_PIECES else size)
        self.size += len(content)
        return content


class _Bounded(io.RawIOBase):
    """Unpacked bytes; too many for the packed ones raise."""

    def __init__(self, unpacked: io.BufferedIOBase, packed: _Counted) -> None:
        self._unpacked, self._packed = unpacked, packed
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = self._unpacked.read1(len(buffer))  # `read` would lose what comes before damage
        self._size += len(content)
        if self._size > ALWAYS:
            check_swelling(self._size, self._packed.size)
        buffer[: len(content)] = content
        return len(content)


def unpacked(stream: IO[bytes], decompress: Callable[[IO[bytes]], Any]) -> io.BufferedReader:
    """Unpack a stream by `decompress`, such as `gzip.open`.

    >>> import gzip
    >>> unpacked(io.BytesIO(gzip.compress(b"a fine day")), gzip.open).read()
    b'a fine day'
    >>> unpacked(io.BytesIO(gzip.compress(bytes(2**24))), gzip.open).read()
    Traceback (most recent call last):
    routepool.files.compression.SwollenError: it swells more than 600 times; if that is right, store it uncompressed
    """
    packed = _Counted(stream)
    return io.BufferedReader(_Bounded(decompress(cast(IO[bytes], packed)), packed), _BUFFER)


def check_swelling(size: int, packed_size: int) -> None:
    """Raise if a file swells more than an honest one."""
    if size > max(ALWAYS, RATIO * packed_size):
        raise SwollenError(f"it swells more than {RATIO} times; if that is right, store it uncompressed")
