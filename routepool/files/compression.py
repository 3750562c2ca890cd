"""Compressed files read without trust: a small file that swells without end is refused, before it fills the memory.

Honest text is packed to a third or a tenth of its size; by gzip, one row of ten letters again and again to a 516th.
What swells to more than 600 times its size is refused once a megabyte has come out: whoever trusts it can unpack it.
"""

import io
from collections.abc import Callable
from typing import IO, Any, cast

from routepool.errors import InputError

RATIO = 600
ALWAYS = 2**20  # bytes that may come out of any file
_BUFFER, _PIECE, _IN_PIECES = 2**16, 4, 2**12


class SwollenError(InputError):
    """More came out of a compressed file than an honest one holds; the caller adds the file and the place."""


class _Counted:
    """A stream whose bytes are counted as they are read.

    A decompressor reads ahead, and a few bytes may swell to millions: the first ones are handed out in small pieces, so
    that what is counted is what was needed.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.size = 0

    def read(self, size: int) -> bytes:
        content = self._stream.read(min(size, _PIECE) if self.size < _IN_PIECES else size)
        self.size += len(content)
        return content


class _Bounded(io.RawIOBase):
    """Unpacked bytes, as long as they are not too many for those they came from."""

    def __init__(self, unpacked: io.BufferedIOBase, packed: _Counted) -> None:
        self._unpacked, self._packed = unpacked, packed
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = self._unpacked.read1(len(buffer))  # and not `read`, which loses what comes before damage
        self._size += len(content)
        if self._size > ALWAYS:
            check_swelling(self._size, self._packed.size)
        buffer[: len(content)] = content
        return len(content)


def unpacked(stream: IO[bytes], decompress: Callable[[IO[bytes]], Any]) -> io.BufferedReader:
    """What `decompress`, such as `gzip.open`, makes of a stream.

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
    """Refuse a number of unpacked bytes that no honest file has."""
    if size > max(ALWAYS, RATIO * packed_size):
        raise SwollenError(f"it swells more than {RATIO} times; if that is right, store it uncompressed")
