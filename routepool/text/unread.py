"""What a model leaves unread of texts: words behind its limits, and words that it does not know."""

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, Self

from routepool.errors import UnreadTextWarning
from routepool.text.words import Encoded, TextReader

_PACKAGE = __name__.partition(".")[0]

NAMED = 5  # texts that are named in a line


class Truncation(NamedTuple):
    """What was cut from training texts, to be told to the user."""

    texts: int
    sentences: int
    words: int

    @classmethod
    def of(cls, encoded: Iterable[Encoded]) -> Self:
        """Add up what was cut from the texts.

        >>> from routepool.settings import TextConfig
        >>> from routepool.text.words import Tokenizer
        >>> tokenizer = Tokenizer.build(["one two three"], config=TextConfig(max_words=2))
        >>> Truncation.of(tokenizer.encode(["one two three", "one"]))
        Truncation(texts=1, sentences=0, words=1)
        """
        cut = [(one.cut_sentences, one.cut_words) for one in encoded if one.cut_words]
        return cls(len(cut), sum(sentences for sentences, _ in cut), sum(words for _, words in cut))

    def told(self) -> str:
        """What was left unread, in a line."""
        return (
            f"{self.texts} training texts were too long: {self.words} words and {self.sentences} whole "
            "sentences were left unread (max_words, max_sentences)"
        )


class Reading(NamedTuple):
    """How much of a text was read."""

    unread: int  # words behind the model's limits
    known: int  # words among those read that the model knows; punctuation does not count


def reading_of(tokenizer: TextReader, encoded: Encoded) -> Reading:
    """How much was read of a text.

    >>> from routepool.settings import TextConfig
    >>> from routepool.text.words import Tokenizer
    >>> tokenizer = Tokenizer.build(["it works ."], config=TextConfig(max_words=2))
    >>> [tuple(reading_of(tokenizer, text)) for text in tokenizer.encode(["It is. It works.", "."])]
    [(4, 1), (0, 0)]
    """
    return Reading(encoded.cut_words, tokenizer.known(encoded))


@dataclass
class _Some:
    """A number of texts, the first of them by name."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, name: int) -> None:
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(name)


Naming = Callable[[Sequence[int], int], str]


def by_place(first: Sequence[int], count: int) -> str:
    """The first of some texts by their places in a list.

    >>> by_place([3, 8], 2), by_place(range(5), 900)
    ('texts[3], texts[8]', 'texts[0], texts[1], texts[2], texts[3], texts[4], ...')
    """
    return ", ".join(f"texts[{place}]" for place in first) + (", ..." if count > len(first) else "")


class Unread:
    r"""The texts that were cut and those of which the model knows no word, counted as they pass.

    >>> print(*Unread.of([Reading(0, 7), Reading(90, 700), Reading(0, 0)]).lines(), sep="\n")
    texts longer than the model reads: 1 of 3, 90 words left unread (texts[1])
    texts without a word that the model knows: 1 of 3, their results mean nothing (texts[2])
    """

    def __init__(self) -> None:
        self._texts, self._words = 0, 0
        self._cut, self._unknown = _Some(), _Some()

    @classmethod
    def of(cls, readings: Iterable[Reading], rows: Iterable[int] | None = None) -> Self:
        """Of a whole list, each by its place, or by its row."""
        counted = cls()
        for name, reading in zip(count() if rows is None else rows, readings, strict=False):
            counted.add(name, reading)
        return counted

    def add(self, name: int, reading: Reading) -> None:
        """Count one text, under its place or its row."""
        self._texts += 1
        self._words += reading.unread
        if reading.unread:
            self._cut.add(name)
        if not reading.known:
            self._unknown.add(name)

    def lines(self, naming: Naming = by_place) -> list[str]:
        """What there is to tell, a sentence for each of the two; nothing if all was read and known."""
        told = []
        if self._cut.count:
            left = f"{self._words:,} words left unread"
            told.append(self._line("longer than the model reads", self._cut, left, naming))
        if self._unknown.count:
            told.append(
                self._line("without a word that the model knows", self._unknown, "their results mean nothing", naming)
            )
        return told

    def warn(self) -> None:
        """The same as one warning, in Python."""
        if lines := self.lines():
            warn("; ".join(lines))

    def _line(self, which: str, some: _Some, what: str, naming: Naming) -> str:
        return f"texts {which}: {some.count:,} of {self._texts:,}, {what} ({naming(some.first, some.count)})"


def warn(message: str) -> None:
    """A warning at the line of the user's code that called routepool."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UnreadTextWarning, stacklevel=level)
