"""Text -> what the engines of the tokenizers package are given: sentences, and how these are split into words."""

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
# No \X for the last case: it is quadratic on a long run of flag letters.
_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_NOT = r"[nN]['’][tT](?!\p{L})"
_CASES = (
    r"</?\p{L}+\ ?/?>",  # <br />: one token, not four
    r"(?:\p{L}\.){2,}",
    r"\p{N}+(?:[.,:]\p{N}+)+",
    # The joiners stand inside words of Persian and of Indic scripts.
    rf"(?:(?!{_NOT})[[\p{{L}}\p{{M}}\p{{N}}_\x{{200C}}\x{{200D}}]&&[^{_SPACELESS}]])+",
    _NOT,
    r"['’](?i:s|re|ve|ll|d|m)(?!\p{L})",
    r"\.{2,}|-{2,}",
    r"[\x{1F1E6}-\x{1F1FF}]{2}",  # a flag is two letters
    # Any other character with its marks, skin tone and flag tags, and what a joiner ties to it: an emoji family.
    r"\S(?:[\p{M}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]|\x{200D}\S)*",
)
# A saved model names its way of splitting: change none of these, add another name.
SPLITS = {"words": "|".join(_CASES), "spaces": r"\S+"}
_RUNS = re.compile(r"\S+")
_SURROGATES = re.compile("[\ud800-\udfff]")


def sentences_of(text: str, config: TextConfig, depth: int) -> list[list[tuple[int, str]]]:
    """The sentences of a text, each as what the engine is given at once: one part, or more where a word is too long.

    >>> sentences_of("It works. It does.", TextConfig(), depth=2)
    [[(0, 'It works. ')], [(10, 'It does.')]]
    """
    return [_parts_of(start, sentence) for start, sentence in _cut(clean(text), config, depth)]


def _cut(text: str, config: TextConfig, depth: int) -> list[tuple[int, str]]:
    if config.separator:
        sentences, start = [], 0
        for sentence in text.split(config.separator):
            sentences.append((start, sentence))
            start += len(sentence) + len(config.separator)
        return sentences
    if depth == 1:
        return [(0, text)]
    return [(one["start_index"], one["text"]) for one in sentencex.get_sentence_boundaries(config.language, text)]


def _parts_of(start: int, sentence: str) -> list[tuple[int, str]]:
    if len(sentence) <= LONGEST_WORD or max(map(len, sentence.split()), default=0) <= LONGEST_WORD:
        return [(start, sentence)]
    cuts = [cut for run in _RUNS.finditer(sentence) for cut in range(*run.span(), LONGEST_WORD)[1:]]
    return [(start + begin, sentence[begin:end]) for begin, end in pairwise([0, *cuts, len(sentence)])]


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
    return sum(any(part.strip() for _, part in parts) for parts in sentences_of(text, TextConfig(), 2))
