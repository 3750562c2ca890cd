"""A file, a stream or standard input -> numbered lines of text: suffixes, compression, encodings, bad bytes."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple, Protocol, TypeVar, cast

from routepool.errors import InputError
from routepool.files.compression import SwollenError, unpacked

SourceLike = str | os.PathLike[str] | IO[bytes]

LONGEST_ROW = 6_000_000  # characters; a million words fit
# Records from which columns and headers are detected, and their characters: all are in memory at once.
_SAMPLED, _SAMPLED_CHARACTERS = 100, 2**20

COMPRESSED = (".gz", ".bz2", ".xz")
_COMPRESSIONS = (
    (re.compile(rb"\x1f\x8b"), gzip.open),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), bz2.open),
    (re.compile(rb"\xfd7zXZ\x00"), lzma.open),
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the start of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, UnicodeError)
# A byte that does not decode arrives as one of these surrogates, so that the error can name its row.
_UNDECODED = re.compile("[\0\udc80-\udcff]")


class Line(NamedTuple):
    """One line with its 1-based number, its newline kept, and what is wrong with its bytes if anything is."""

    row: int
    text: str
    flaw: str | None


@dataclass(frozen=True)
class Source:
    """Where data come from, under the name that errors give it."""

    name: str
    file: Path | IO[bytes]
    encoding: str = "utf-8"
    longest_row: int = LONGEST_ROW

    @classmethod
    def of(cls, source: SourceLike, *, encoding: str = "utf-8", longest_row: int = LONGEST_ROW) -> "Source":
        """Accept the path of a readable file, `-` for standard input, or an open binary stream."""
        try:
            io.TextIOWrapper(io.BytesIO(), encoding)  # unlike `codecs.lookup` it takes only those for text
        except (LookupError, ValueError) as error:
            raise InputError(f"unknown encoding {encoding!r}; common ones: utf-8, utf-16, latin-1, cp1252") from error
        if type(longest_row) is not int or longest_row < 1:
            raise InputError(f"longest_row must be a number of characters, 1 or more, got {longest_row!r}")
        if source == "-":
            return cls("standard input", sys.stdin.buffer, encoding, longest_row)
        if isinstance(source, str | os.PathLike):
            _check_file(Path(source))
            return cls(str(source), Path(source), encoding, longest_row)
        return cls(str(getattr(source, "name", "stream")), source, encoding, longest_row)

    def lines(self) -> Iterator[Line]:
        """Yield decoded lines, each ended by CR, LF or CRLF. A line that is too long is not read to its end."""
        row, most = 0, self.longest_row
        try:
            with self._opened() as stream:
                for row, text in enumerate(iter(partial(stream.readline, most + 1), ""), 1):
                    if len(text) > most:
                        raise InputError(f"{self.name}, row {row}: {self.too_long()}")
                    yield Line(row, text, self._flaw(text))
        except SwollenError as error:
            raise InputError(f"{self.name}, row {row + 1}: {error}") from error
        except _BROKEN as error:
            raise InputError(
                f"{self.name}, row {row + 1}: cannot be read from here on ({error}); "
                "the file is cut short or damaged: copy or download it again"
            ) from error

    def too_long(self) -> str:
        """What is said of a row that is too long."""
        return (
            f"longer than {self.longest_row:,} characters, the longest row that is read; shorten the text, or allow "
            "more: --longest-row N (longest_row=N in Python)"
        )

    @contextmanager
    def _opened(self) -> Iterator[io.TextIOWrapper]:
        if isinstance(self.file, Path):
            with self.file.open("rb") as handle, self._decoded(handle) as text:
                yield text
            return
        # A stream that was handed in stays open: it is its owner's to close.
        given = self.file
        buffered = given if isinstance(given, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, given))
        try:
            with self._decoded(buffered) as text:
                yield text
        finally:
            if buffered is not given:
                buffered.detach()

    @contextmanager
    def _decoded(self, stream: io.BufferedReader) -> Iterator[io.TextIOWrapper]:
        data = self._decompressed(stream)
        text = io.TextIOWrapper(data, self._detected(data.peek()), errors="surrogateescape", newline="")
        try:
            yield text
        finally:
            text.detach()  # or it would close the stream below

    def _decompressed(self, stream: io.BufferedReader) -> io.BufferedReader:
        start = stream.peek(16)
        if start.startswith(b"PK\x03\x04"):
            raise InputError(f"{self.name}: is a zip or spreadsheet file; unpack it or save the sheet as CSV (UTF-8)")
        for magic, decompress in _COMPRESSIONS:
            if magic.match(start):
                return unpacked(stream, decompress)
        return stream

    def _detected(self, start: bytes) -> str:
        for mark, encoding in _MARKS:
            if start.startswith(mark):
                return encoding
        for first_zero, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            share_of_zeros = start[first_zero::2].count(0) / max(len(start) // 2, 1)
            if self.encoding == "utf-8" and len(start) > 3 and share_of_zeros > 0.4:
                raise InputError(
                    f"{self.name}, row 1: looks like UTF-16 without a byte order mark; set the encoding to "
                    f"{encoding}, or convert it: iconv -f {encoding} -t utf-8"
                )
        return self.encoding

    def _flaw(self, text: str) -> str | None:
        if text.isascii() and "\0" not in text:
            return None
        found = _UNDECODED.search(text)
        if found is None:
            return None
        if found.group() == "\0":
            return f"NUL byte at character {found.start() + 1}; a text file has none: remove it, e.g. tr -d '\\000'"
        offset = len(text[: found.start()].encode(self.encoding, "surrogateescape"))
        return (
            f"byte 0x{ord(found.group()) - 0xDC00:02x} at byte {offset + 1} of the row is not {self.encoding}; "
            "if the file is Latin-1 or Windows-1252, set the encoding to latin-1 or cp1252"
        )


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=_Sized)


def first_of(records: Iterator[S]) -> list[S]:
    """Take the first records from an iterator, as many as a sample has."""
    sample, room = [], _SAMPLED_CHARACTERS
    for record in islice(records, _SAMPLED):
        sample.append(record)
        room -= record.size
        if room < 0:
            break
    return sample


def suffix_of(name: str | Path) -> str:
    """The last suffix in lower case, not counting that of a compression.

    >>> suffix_of("reviews.CSV.gz"), suffix_of("reviews"), suffix_of("-")
    ('.csv', '', '')
    """
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")


def _check_file(path: Path) -> None:
    # Asked without opening it: a pipe can be opened only once.
    if path.is_dir():
        names = sorted(item.name for item in path.iterdir() if item.is_file())[:5]
        raise InputError(f"{path}: is a folder; name one file in it (it holds {', '.join(names) or 'none'})")
    if not path.exists():
        raise InputError(f"{path}: no such file{_nearest(path)}")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: no permission to read it; ask its owner, or: chmod u+r {path}")


def _nearest(path: Path) -> str:
    if not path.parent.is_dir():
        return f"; nor is there a folder {path.parent}"
    close = get_close_matches(path.name, [item.name for item in path.parent.iterdir()], n=3)
    return f"; near names in its folder: {', '.join(close)}" if close else "; check the name and the folder"
