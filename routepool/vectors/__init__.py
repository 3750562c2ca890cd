r"""Pre-trained word vectors: a table with one row for each word of a vocabulary, from files and installed packages.

A spec is the path of a file or a registered name, or several of these joined by commas: then a word has the vectors of
all, side by side. A registered name wins over a file of that name; write `./name` for the file. `word_files` describes
the formats.

Words of the Stanford treebanks are looked up in their plain form, `-lrb-` as `(` and `\/` as `/`; a curly apostrophe as
a straight one. Rows of words that no source has are zeros and not `known`; the embedding decides what to put there.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from routepool.arrays import Flags, Floats32
from routepool.errors import InputError
from routepool.registry import Extra, Registry
from routepool.text import SPECIAL_WORDS
from routepool.vectors.word_files import FileSource

_PACKAGE = "wordllama"  # a registered source, named as the package it reads
_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}


class VectorSource(Protocol):
    """Anything that has vectors for words."""

    name: str

    def frequent(self, limit: int) -> list[str]:
        """At most `limit` words of this source, the most frequent first."""

    def lookup(self, words: Sequence[str]) -> tuple[Floats32, Flags]:
        """One row for each word (N, D), and which words it has (N,); the other rows are zeros."""


SOURCES: Registry[Callable[[], VectorSource]] = Registry(
    "source of vectors", extras={"wordllama": Extra("routepool.extras.wordllama_vectors", "vectors")}
)


class Coverage(NamedTuple):
    """How many words of a training set a source has vectors for.

    >>> print(Coverage("glove.txt", words=200, known_words=180, tokens=4000, known_tokens=3940))
    glove.txt: 90.0 % of 200 words, 98.5 % of 4,000 tokens
    """

    source: str
    words: int
    known_words: int
    tokens: int
    known_tokens: int

    def __str__(self) -> str:
        words = 100 * self.known_words / max(self.words, 1)
        tokens = 100 * self.known_tokens / max(self.tokens, 1)
        return f"{self.source}: {words:.1f} % of {self.words:,} words, {tokens:.1f} % of {self.tokens:,} tokens"


class Vectors(NamedTuple):
    """The vectors of a vocabulary.

    Args:
        table: (N, D) one row for each word, the sources side by side.
        known: (N,) words that at least one source has.
        coverage: one for each source.
    """

    table: Floats32
    known: Flags
    coverage: tuple[Coverage, ...]


def load_vectors(
    spec: str, words: Sequence[str], *, counts: Sequence[int] | None = None, cache: Path | None = None
) -> Vectors:
    r"""Find the vectors of a vocabulary.

    Args:
        spec: files and names, see above.
        words: the vocabulary; the rows for padding and unknown words are zeros.
        counts: how often each word was seen. Words seen 0 times do not count for the coverage.
        cache: folder for parsed text files, see `tables`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "tiny.txt")
    ...     _ = file.write_text("good 1 2\n( 3 4\n", encoding="utf-8")
    ...     vectors = load_vectors(str(file), ["good", "-lrb-", "odd"], counts=[6, 2, 2], cache=Path(folder))
    >>> vectors.table.tolist(), vectors.known.tolist()
    ([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]], [True, True, False])
    >>> print(*vectors.coverage)
    tiny.txt: 66.7 % of 3 words, 80.0 % of 10 tokens
    """
    real = np.array([word not in SPECIAL_WORDS for word in words], dtype=bool)
    seen = np.ones(len(words), dtype=int) if counts is None else np.asarray(counts)
    if len(seen) != len(words):
        raise InputError(f"wanted a count for each of the {len(words)} words, got {len(seen)}")
    seen = seen * real
    plain = [plain_form(word) for word in words]
    tables, knowns, coverage = [], [], []
    for source in sources(spec, cache=cache):
        table, known = source.lookup(plain)
        known &= real
        table[~known] = 0
        tables.append(table)
        knowns.append(known)
        counted = (np.count_nonzero(seen), np.count_nonzero(seen[known]), seen.sum(), seen[known].sum())
        coverage.append(Coverage(source.name, *map(int, counted)))
    return Vectors(np.concatenate(tables, axis=1), np.any(knowns, axis=0), tuple(coverage))


def frequent(spec: str, limit: int, *, cache: Path | None = None) -> list[str]:
    """The most frequent words of the first source, then of the next: words to know without having seen them."""
    lists = (source.frequent(limit) for source in sources(spec, cache=cache))
    return list(dict.fromkeys(chain.from_iterable(lists)))[:limit]


def sources(spec: str, *, cache: Path | None = None) -> list[VectorSource]:
    """Open what a spec names.

    >>> sources("glove.zip,wordlama")
    Traceback (most recent call last):
    routepool.errors.InputError: glove.zip: no such file; wanted a file of vectors or one of: wordllama
    """
    parts = [part.strip() for part in spec.split(",")]
    if not all(parts):
        raise InputError(f"wanted files or names of vectors joined by commas, got {spec!r}")
    return [SOURCES[part]() if part in SOURCES.names() else _file(part, cache) for part in parts]


def installed() -> str | None:
    """The source to use if none is named: that of an installed package, if there is one."""
    return _PACKAGE if find_spec(_PACKAGE) else None


def plain_form(word: str) -> str:
    r"""The spelling under which a word is looked up.

    >>> [plain_form(word) for word in ("-LRB-", "and\\/or", "n’t")]
    ['(', 'and/or', "n't"]
    """
    escapes_undone = word.replace("\\/", "/").replace("\\*", "*").replace("’", "'")
    return _BRACKETS.get(word.lower(), escapes_undone)


def _file(part: str, cache: Path | None) -> VectorSource:
    source = FileSource(part, cache=cache)
    if not source.path.is_file():
        what = "is a folder" if source.path.is_dir() else "no such file"
        raise InputError(f"{part}: {what}; wanted a file of vectors or one of: {', '.join(SOURCES.names())}")
    return source
