"""Files of word vectors -> blocks of words and rows.

- Text, as GloVe, word2vec and fastText write it: a word and its numbers on a line, with or without a first line
  "rows size"; plain, `.gz`, or a member of a `.zip` (`glove.6B.zip:glove.6B.100d.txt`, or the zip alone where it holds
  one file). Parsed once, see `tables`.
- `.npz` and `.safetensors` with `vectors` (rows, size) and `words_utf8`, the words joined by newlines, as bytes.

Rules for text: UTF-8, fields separated by blanks. The first line sets the size. The last fields of each line are its
numbers, the rest is the word. It may hold blanks, but not end in a number, as in a row with too many numbers. Blank
lines are skipped. Of a word that comes twice the first row is used.
"""

import gzip
import io
import logging
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import cast

import numpy as np

from routepool.arrays import Flags, Floats32
from routepool.errors import InputError, listed
from routepool.files.compression import SwollenError, check_swelling, unpacked
from routepool.printable import plural
from routepool.vectors.tables import SUFFIXES, Block, cached, read_table

logger = logging.getLogger(__name__)

_ROWS, _BYTES = 1000, 2**22  # parsed at once: so many rows, or fewer where these are long
_MOST_NUMBERS = 2**16  # of a vector
_LONGEST_LINE = 2**20  # bytes
_MEMBER = re.compile(r"(.+\.zip):(.+)", re.IGNORECASE)
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, RuntimeError)


class FileSource:
    """The vectors in one file. It is read again at each call; only the rows asked for are kept."""

    def __init__(self, spec: str, *, cache: Path | None = None) -> None:
        member = _MEMBER.fullmatch(spec)
        path, self.member = member.groups() if member else (spec, "")
        self.path = Path(path).expanduser()
        self.name = self.member or self.path.name
        self._cache = cache

    def frequent(self, limit: int) -> list[str]:
        """The first `limit` words: all known files of vectors begin with the most frequent words."""
        words = chain.from_iterable(names for names, _ in self._blocks())
        return list(dict.fromkeys(islice(words, limit)))

    def lookup(self, words: Sequence[str]) -> tuple[Floats32, Flags]:
        """One row for each word (N, D), and which words the file has (N,)."""
        rows = {word: row for row, word in enumerate(dict.fromkeys(words))}
        known = np.zeros(len(rows), dtype=bool)
        table = np.zeros((len(rows), 0), dtype=np.float32)
        repeated = 0
        for names, values in self._blocks():
            if not table.shape[1]:
                table = np.zeros((len(rows), values.shape[1]), dtype=np.float32)
            for place, row in [(place, rows[name]) for place, name in enumerate(names) if name in rows]:
                if known[row]:
                    repeated += 1
                else:
                    table[row], known[row] = values[place], True
        if repeated:
            logger.warning("%s: %s; the first row of a word is used", self.path, plural(repeated, "repeated word"))
        order = [rows[word] for word in words]
        return table[order], known[order]

    def _blocks(self) -> Iterator[Block]:
        if self.path.suffix.lower() in SUFFIXES:
            return read_table(self.path)
        return cached(self.path, self.member, lambda: parse(self.path, self.member), folder=self._cache)


def parse(path: Path, member: str = "") -> Iterator[Block]:
    """Read a text file a block of rows at a time.

    Args:
        path: plain, `.gz` or `.zip`.
        member: the file inside the zip; it may be left out where there is one.
    """
    lines = _lines(path, member)
    number, first = next(lines, (0, b""))
    if not first:
        raise InputError(f"{path}: is empty; wanted a word and its numbers on each line")
    header = [int(field) for field in first.split()] if re.fullmatch(rb"\d{1,18}\s+\d{1,18}\s*", first) else None
    size = header[1] if header else len(first.split()) - 1
    if not 1 <= size <= _MOST_NUMBERS:
        raise InputError(
            f"{path}, line {number}: wanted a word and its numbers, {_MOST_NUMBERS:,} at most, separated by blanks, "
            f"got {first!r:.80}"
        )
    rows = 0
    lines = lines if header else chain([(number, first)], lines)
    while numbered := _some(lines):
        rows += len(numbered)
        yield _block(path, numbered, size)
    if header and rows != header[0]:
        raise InputError(
            f"{path}: its first line promises {plural(header[0], 'row')}, {rows} came; cut short? download it again"
        )


def _some(lines: Iterator[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The next lines, as many as are parsed at once."""
    some, size = [], 0
    for numbered in islice(lines, _ROWS):
        some.append(numbered)
        size += len(numbered[1])
        if size > _BYTES:
            break
    return some


def _lines(path: Path, member: str) -> Iterator[tuple[int, bytes]]:
    number, line = 0, b"\n"
    with ExitStack() as files:
        try:
            opened = _open(path, member, files)
            for number, line in enumerate(iter(partial(opened.readline, _LONGEST_LINE + 1), b""), start=1):
                if len(line) > _LONGEST_LINE:
                    raise InputError(f"{path}, line {number}: longer than {_LONGEST_LINE:,} bytes; is it a text file?")
                if not line.isspace():
                    yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        except SwollenError as error:
            raise InputError(f"{path}, after line {number}: {error}") from error
        except _DAMAGE as error:
            raise InputError(
                f"{path}, after line {number}: damaged or cut short ({error}); download it again"
            ) from error
    if not line.endswith(b"\n"):
        logger.warning("%s, line %d: no newline at its end; if the file is cut short this row is wrong", path, number)


def _open(path: Path, member: str, files: ExitStack) -> io.BufferedReader:
    if path.suffix.lower() != ".zip":
        stream = files.enter_context(path.open("rb"))
        return unpacked(stream, gzip.open) if path.suffix.lower() == ".gz" else stream
    archive = files.enter_context(zipfile.ZipFile(path))
    held = [item.filename for item in archive.infolist() if not item.is_dir()]
    if member not in held and (member or len(held) != 1):
        wanted = f"no member {member!r}" if member else "name one member"
        raise InputError(f"{path}: {wanted}, as in {path}:MEMBER; it holds {listed(held) or 'nothing'}")
    chosen = archive.getinfo(member or held[0])
    check_swelling(chosen.file_size, min(chosen.compress_size, path.stat().st_size))  # no more is read than it claims
    return io.BufferedReader(cast(io.RawIOBase, files.enter_context(archive.open(chosen))))


def _block(path: Path, numbered: list[tuple[int, bytes]], size: int) -> Block:
    rows = [_row(f"{path}, line {number}", line.split(), size) for number, line in numbered]
    with np.errstate(over="ignore"):
        values = np.array([numbers for _, numbers in rows], dtype=np.float32)
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        number, _ = numbered[int(finite.argmin())]
        raise InputError(f"{path}, line {number}: a number is NaN or too large; correct the line or remove it")
    return [word for word, _ in rows], values


def _row(where: str, fields: list[bytes], size: int) -> tuple[str, list[float]]:
    if len(fields) <= size:
        raise InputError(
            f"{where}: wanted a word and {size} numbers, as in the first line, got {len(fields)} fields; "
            "cut short? download the file again"
        )
    if len(fields) > size + 1 and _is_number(fields[-size - 1]):
        raise InputError(
            f"{where}: wanted {size} numbers, as in the first line, got more; correct the line or remove it"
        )
    try:
        return b" ".join(fields[:-size]).decode(), list(map(float, fields[-size:]))
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: the word is not UTF-8; wanted a text file, converted to UTF-8 (iconv)") from error
    except ValueError as error:
        bad = next(field for field in fields[-size:] if not _is_number(field))
        raise InputError(f"{where}: wanted a number, got {bad!r:.80}; correct the line or remove it") from error


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
