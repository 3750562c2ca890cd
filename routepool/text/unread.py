"""What a model leaves unread of texts: words beyond its limits, and words that it does not know."""

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

from routepool.errors import UnreadTextWarning
from routepool.printable import NAMED_AT_MOST, by_row, plural

if TYPE_CHECKING:
    from routepool.text.tokens import Encoded

_PACKAGE = __name__.partition(".")[0]


class Truncation(NamedTuple):
    """What was cut from training texts."""

    texts: int
    sentences: int
    words: int

    @classmethod
    def of(cls, encoded: "Iterable[Encoded]") -> Self:
        """Add up what was cut from the texts.

        >>> from routepool.settings import TextConfig
        >>> from routepool.text.words import Tokenizer
        >>> tokenizer = Tokenizer.build(["one two three"], config=TextConfig(max_words=2))
        >>> Truncation.of(tokenizer.encode(["one two three", "one"]))
        Truncation(texts=1, sentences=0, words=1)
        """
        cut = [(one.cut_sentences, one.cut_words) for one in encoded if one.cut_words]
        return cls(len(cut), sum(sentences for sentences, _ in cut), sum(words for _, words in cut))

    def line(self) -> str:
        """What was left unread, in a line."""
        unread = f"{plural(self.words, 'word')} and {plural(self.sentences, 'whole sentence')} left unread"
        return f"{plural(self.texts, 'training text')} too long: {unread} (max_words, max_sentences)"


class Reading(NamedTuple):
    """How much of a text was read."""

    unread: int  # words beyond the model's limits
    known: int  # words among those read that the model knows; punctuation does not count


@dataclass
class _Some:
    """A number of texts, the first of them by name."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, name: int) -> None:
        self.count += 1
        if len(self.first) < NAMED_AT_MOST:
            self.first.append(name)


Naming = Callable[[Sequence[int], int], str]


def _by_place(first: Sequence[int], count: int) -> str:
    return ", ".join(f"texts[{place}]" for place in first) + (", ..." if count > len(first) else "")


class Unread:
    r"""Counts the texts that were cut and those of which the model knows no word.

    >>> print(*Unread.of([Reading(0, 7), Reading(90, 700), Reading(0, 0)]).lines(), sep="\n")
    texts longer than the model reads: 1 of 3, 90 words left unread (texts[1])
    texts without a word that the model knows: 1 of 3, their results mean nothing (texts[2])
    """

    def __init__(self, naming: Naming = _by_place) -> None:
        self._naming = naming
        self._texts, self._words = 0, 0
        self._cut, self._unknown = _Some(), _Some()

    @classmethod
    def of(cls, readings: Iterable[Reading], rows: Iterable[int] | None = None) -> Self:
        """Count a whole list of texts, each under its place or its row in a file."""
        counted = cls(_by_place if rows is None else by_row)
        for name, reading in enumerate(readings) if rows is None else zip(rows, readings, strict=True):
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

    def lines(self) -> list[str]:
        """A sentence for each of the two kinds of texts, if there are any."""
        said = []
        if self._cut.count:
            unread = plural(self._words, "word")
            said.append(self._line("longer than the model reads", self._cut, f"{unread} left unread"))
        if self._unknown.count:
            what = "their results mean nothing"
            said.append(self._line("without a word that the model knows", self._unknown, what))
        return said

    def _line(self, which: str, some: _Some, what: str) -> str:
        return f"texts {which}: {some.count:,} of {self._texts:,}, {what} ({self._naming(some.first, some.count)})"

    def warn(self) -> None:
        """Give these sentences as one warning."""
        if lines := self.lines():
            warn("; ".join(lines))


def warn(message: str) -> None:
    """Warn at the line of the user's code that called routepool."""
    frame, level = sys._getframe(), 1  # noqa: SLF001
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UnreadTextWarning, stacklevel=level)
