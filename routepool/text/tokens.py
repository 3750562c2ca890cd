"""Text -> sentences -> tokens with their places in the text: what readers of words and of pieces have in common."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from statistics import median
from typing import NamedTuple
from unicodedata import category

import numpy as np
import sentencex
import tokenizers

from routepool.arrays import Flags, Integers
from routepool.errors import InputError
from routepool.settings import TextConfig
from routepool.text.unread import Reading

PAD, UNKNOWN = 0, 1
# Characters without a blank between them. Longer runs are read in parts of this length, each as words of its own: the
# engines panic at ten million, and no word of a language comes near a hundred.
LONGEST_WORD = 100_000
_DOCUMENT_WORDS = 60  # where the median is above this, texts that have sentences are read as sentences of words
_LOOKED_AT = 1000  # texts that decide it
# Texts encoded at once, and their characters: an encoding takes a hundred bytes a word until it becomes arrays.
_GROUP, _CHARACTERS = 128, 2**20
_RUNS = re.compile(r"\S+")
SURROGATES = re.compile("[\ud800-\udfff]")


class Encoded(NamedTuple):
    """One text as numbers: its words in reading order, sentence after sentence.

    Args:
        ids: (N,) row of each word in the vocabulary.
        spans: (N, 2) first character of each word and the one after its last, in the original text.
        lengths: (S,) words of each sentence; one entry for a text read as one sequence.
        cut_words: words of the text that are not in `ids`.
        cut_sentences: sentences of which no word is in `ids`.
        words: (N,) number of the word that each piece belongs to, rising; None where every piece is a word.
    """

    ids: Integers
    spans: Integers
    lengths: Integers
    cut_words: int
    cut_sentences: int
    words: Integers | None = None


class TextReader:
    """Text -> ids and spans, sentence by sentence: what every tokenizer has in common.

    A subclass gives the settings, the vocabulary and an engine of the tokenizers package.
    """

    config: TextConfig
    words: tuple[str, ...]  # the vocabulary: the place of a word or a piece is its id
    _engine: tokenizers.Tokenizer

    def encode(self, texts: Sequence[str], depth: int = 1) -> list[Encoded]:
        """Read texts as one sequence of words each (depth 1) or as sentences of words (depth 2).

        >>> from routepool.text import Tokenizer
        >>> (text,) = Tokenizer.build(["It works."]).encode(["Works it? It works!"], depth=2)
        >>> text.ids.tolist(), text.lengths.tolist()
        ([4, 3, 1, 3, 4, 1], [3, 3])
        >>> text.spans[0].tolist()
        [0, 5]
        """
        if isinstance(texts, str):
            raise InputError("wanted a list of texts, got one string; put it in a list")
        return list(self.stream(texts, depth))

    def stream(self, texts: Iterable[str], depth: int = 1) -> Iterator[Encoded]:
        """Encode texts that come one after the other; a group of them is read ahead."""
        if depth not in (1, 2):
            raise InputError(f"depth of a text must be 1 (words) or 2 (sentences of words), got {depth!r}")
        group, room = [], _CHARACTERS
        for text in map(clean, texts):
            group.append(text)
            room -= len(text)
            if len(group) == _GROUP or room <= 0:
                yield from self._encode_group(group, depth)
                group, room = [], _CHARACTERS
        if group:
            yield from self._encode_group(group, depth)

    def reading(self, encoded: Encoded) -> Reading:
        """How much of a text was read, and how much of that is known.

        >>> from routepool.text import Tokenizer
        >>> tokenizer = Tokenizer.build(["it works ."], config=TextConfig(max_words=2))
        >>> [tuple(tokenizer.reading(text)) for text in tokenizer.encode(["It is. It works.", "."])]
        [(4, 1), (0, 0)]
        """
        return Reading(encoded.cut_words, int(self._is_known[encoded.ids].sum()))

    def to_json(self) -> str:
        """The content of `tokenizer.json`."""
        raise NotImplementedError

    @property
    def unknown(self) -> int | None:
        """The id that stands for whatever is not in the vocabulary; None where nothing can be outside it."""
        return UNKNOWN

    @cached_property
    def _is_known(self) -> Flags:
        known = np.array([any(category(one)[0] != "P" for one in word) for word in self.words])
        if self.unknown is not None:
            known[self.unknown] = False
        return known

    def _words_of(self, encodings: Sequence[tokenizers.Encoding]) -> Integers | None:
        """The word of each piece, numbered from sentence to sentence; None where every piece is a word."""
        return None

    def _encode_group(self, texts: Sequence[str], depth: int) -> Iterator[Encoded]:
        sentences = [sentences_of(text, self.config, depth) for text in texts]
        parts = list(chain.from_iterable(sentences))
        read = list(chain.from_iterable(parts))
        encodings = self._engine.encode_batch([part for _, part in read], add_special_tokens=False)
        of_parts = np.array([len(each) for each in encodings], dtype=np.int32)
        number = int(of_parts.sum())
        ids = np.fromiter((one for each in encodings for one in each.ids), np.int32, number)
        ends = np.fromiter(
            (place for each in encodings for pair in each.offsets for place in pair), np.int32, 2 * number
        )
        spans = ends.reshape(number, 2)
        starts = np.array([start for start, _ in read], dtype=np.int32)
        spans += np.repeat(starts, of_parts)[:, None]
        words = self._words_of(encodings)
        firsts = np.cumsum([0, *map(len, parts)])[:-1]
        lengths = np.add.reduceat(of_parts, firsts, dtype=np.int32) if parts else of_parts
        end = 0
        for of_text in np.split(lengths, np.cumsum([len(text) for text in sentences])[:-1]):
            start, end = end, end + int(of_text.sum())
            kept = of_text[of_text > 0] if depth == 2 else of_text.sum(keepdims=True, dtype=np.int32)
            here = None if words is None else words[start:end] - words[start : start + 1].sum()
            yield self._cut(ids[start:end], spans[start:end], kept, here)

    def _cut(self, ids: Integers, spans: Integers, lengths: Integers, words: Integers | None) -> Encoded:
        most = min(self.config.max_words or len(ids), len(ids))  # the setting alone may not fit 32 bits
        kept = np.minimum(lengths, most)[: self.config.max_sentences or None]
        cut_words = len(ids) - int(kept.sum())
        if cut_words:
            starts = np.cumsum(lengths) - lengths
            rows = np.concatenate([np.arange(start, start + some) for start, some in zip(starts, kept, strict=False)])
            ids, spans, words = ids[rows], spans[rows], None if words is None else words[rows]
        return Encoded(ids, spans, kept, cut_words, len(lengths) - len(kept), words)


def sentences_of(text: str, config: TextConfig, depth: int) -> list[list[tuple[int, str]]]:
    """Cut a clean text into sentences, each a list of parts for the engine: one, or more where a word is too long.

    >>> sentences_of("It works. It does.", TextConfig(), depth=2)
    [[(0, 'It works. ')], [(10, 'It does.')]]
    """
    return [_parts_of(start, sentence) for start, sentence in _cut(text, config, depth)]


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
    """Replace what has no UTF-8 form, lone surrogates, without changing the length: spans stay right."""
    if not isinstance(text, str):
        raise InputError(f"a text must be a string, got {text!r}; drop missing texts or write them as ''")
    return SURROGATES.sub("\ufffd", text)


def is_document(texts: Sequence[str]) -> bool:
    """Decide whether texts are read as sentences of words: most are long and have sentences.

    A long text in which no sentence ends, as where punctuation was removed, is read as one sequence: as a document of
    a single sentence it is learned much worse (docs/decisions has the figures).

    >>> is_document(["word " * 61]), is_document(["A word. " * 61])
    (False, True)
    """
    some = texts[:: -(-len(texts) // _LOOKED_AT)]
    return median(len(text.split()) for text in some) > _DOCUMENT_WORDS and median(map(_sentences, some)) > 1


def _sentences(text: str) -> int:
    return sum(any(part.strip() for _, part in parts) for parts in sentences_of(clean(text), TextConfig(), 2))
