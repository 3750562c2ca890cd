"""Text -> what the engines of the tokenizers package are given: sentences, free of what would make an engine fail."""

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import sentencex

from routepool.errors import InputError
from routepool.settings import TextConfig

# Characters without a blank between them; what is longer is read in parts of that length, each a word (or words) of its
# own. At ten million the engines panic, and no word of a language comes near a hundred.
LONGEST_WORD = 100_000
DOCUMENT_WORDS = 60  # a median above this, and texts that have sentences are read as sentences of words
_LOOKED_AT = 1000  # texts that decide it
_RUNS = re.compile(r"\S+")
_SURROGATES = re.compile("[\ud800-\udfff]")


def sentences_of(text: str, config: TextConfig, depth: int) -> list[tuple[int, str]]:
    """The parts of a text that are tokenised on their own, and where each begins."""
    if config.separator:
        pieces, start = [], 0
        for piece in text.split(config.separator):
            pieces.append((start, piece))
            start += len(piece) + len(config.separator)
        return pieces
    if depth == 1:
        return [(0, text)]
    return [(one["start_index"], one["text"]) for one in sentencex.get_sentence_boundaries(config.language, text)]


def parts_of(start: int, piece: str) -> list[tuple[int, str]]:
    """What the engine is given at once: all of a piece, unless a word in it is too long."""
    if len(piece) <= LONGEST_WORD or max(map(len, piece.split()), default=0) <= LONGEST_WORD:
        return [(start, piece)]
    cuts = [cut for run in _RUNS.finditer(piece) for cut in range(*run.span(), LONGEST_WORD)[1:]]
    return [(start + begin, piece[begin:end]) for begin, end in pairwise([0, *cuts, len(piece)])]


def clean(text: str) -> str:
    """A text that has a UTF-8 form, of the same length."""
    if not isinstance(text, str):
        raise InputError(f"a text must be a string, got {text!r}; drop missing texts or write them as ''")
    # A lone surrogate has none; its stand-in has the same length, so spans stay right.
    return _SURROGATES.sub("\ufffd", text)


def is_document(texts: Sequence[str]) -> bool:
    """Texts are read as sentences of words: most are long and have sentences.

    A long text in which no sentence ends, as where punctuation was removed, is one sequence: as a document of a single
    sentence it is learned much worse (docs/decisions has the figures).

    >>> is_document(["word " * 61]), is_document(["A word. " * 61])
    (False, True)
    """
    some = texts[:: -(-len(texts) // _LOOKED_AT)]
    return median(len(text.split()) for text in some) > DOCUMENT_WORDS and median(map(_sentences, some)) > 1


def _sentences(text: str) -> int:
    return sum(1 for _, piece in sentences_of(clean(text), TextConfig(), 2) if piece.strip())
