"""Texts of different lengths -> one array, some of its words hidden, and which of them are computed together."""

# B batch  S sentences  T tokens  N texts  K kinds of length: 1 for words, 2 for sentences and words

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import NamedTuple, Self

import numpy as np

from routepool.arrays import Flags, Floats64, Integers
from routepool.errors import InputError
from routepool.text import PAD, UNKNOWN, Encoded

Lengths = Sequence[int] | Sequence[tuple[int, ...]] | Integers

# Of a batch that is computed without gradients, at most: texts, and words with their padding, of which a BiLSTM of the
# paper's size holds about 8 kB each while it reads them.
BATCH, TOKENS = 256, 2**15
# Texts that come one after the other are sorted by length at most so many at once, and so many words of 12 bytes each,
# so that long documents fill a buffer before their number does.
BUFFER, BUFFER_WORDS = 4096, 2**24


class Batch(NamedTuple):
    """Examples to be computed together, no wider than the longest of them.

    Args:
        rows: (B,) place of each example in its set.
        ids: (B, T), or (B, S, T) for documents; PAD where the mask is False.
        mask: of the same shape, True at real words.
    """

    rows: Integers
    ids: Integers
    mask: Flags

    @classmethod
    def of(cls, encoded: Sequence[Encoded], rows: Integers, depth: int) -> Self:
        """Pad some rows of a set.

        >>> from routepool.text import Tokenizer
        >>> texts = Tokenizer.build(["a b"]).encode(["a", "b a", "a b a"])
        >>> Batch.of(texts, np.array([1, 0]), depth=1).ids
        array([[3, 2],
               [2, 0]])
        """
        return cls(rows, *pad([encoded[row] for row in rows.tolist()], depth))

    @classmethod
    def by_length(
        cls, encoded: Sequence[Encoded], depth: int, *, batch_size: int = BATCH, tokens: int = TOKENS
    ) -> Iterator[Self]:
        """A whole set, texts of near-equal length together, the longest first.

        >>> from routepool.text import Tokenizer
        >>> texts = Tokenizer.build(["a b"]).encode(["a", "b a a", "b"])
        >>> [batch.rows.tolist() for batch in Batch.by_length(texts, depth=1, batch_size=2)]
        [[1, 2], [0]]
        """
        lengths = [length_of(text, depth) for text in encoded]
        for rows in evaluation_batches(lengths, batch_size=batch_size, tokens=tokens):
            yield cls.of(encoded, rows, depth)

    def parts(self, words: int) -> list[Self]:
        """The batch in parts of at most so many real words, the longest texts first; a longer text is alone.

        >>> ids = np.array([[3, 0, 0], [4, 5, 6], [2, 2, 0]])
        >>> batch = Batch(np.array([7, 8, 9]), ids, ids != 0)
        >>> [(part.rows.tolist(), part.ids.tolist()) for part in batch.parts(3)]
        [([8], [[4, 5, 6]]), ([9, 7], [[2, 2], [3, 0]])]
        """
        of_texts = self.mask.reshape(len(self.rows), -1).sum(1)
        if of_texts.sum() <= words:
            return [self]
        order = np.argsort(-of_texts, kind="stable")
        cuts, held = [], 0
        for place, number in enumerate(of_texts[order].tolist()):
            if held and held + number > words:
                cuts.append(place)
                held = 0
            held += number
        return [self._of_rows(rows) for rows in np.split(order, cuts)]

    def _of_rows(self, rows: Integers) -> Self:
        mask = self.mask[rows]
        sizes = [mask.any((0, *range(1, axis), *range(axis + 1, mask.ndim))).sum() for axis in range(1, mask.ndim)]
        room = [slice(max(1, int(size))) for size in sizes]
        return type(self)(self.rows[rows], self.ids[rows][:, *room], mask[:, *room])


def forget_words(batch: Batch, share: float, *, seed: int, epoch: int, index: int) -> Batch:
    """A batch with this share of its words replaced by the unknown word: a pure function of seed and place.

    A model that will meet unknown words should have met some in training.

    >>> batch = Batch(np.array([0]), np.array([[5, 6, 7, 0]]), np.array([[True, True, True, False]]))
    >>> forget_words(batch, 0.99, seed=0, epoch=0, index=0).ids
    array([[1, 1, 1, 0]])
    >>> forget_words(batch, 0.0, seed=0, epoch=0, index=0) is batch
    True
    """
    if share == 0:
        return batch
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch, index)))
    # Drawn for the real words only, in reading order: padding changes no draw.
    forgotten = np.zeros(batch.mask.shape, dtype=bool)
    forgotten[batch.mask] = generator.random(int(batch.mask.sum())) < share
    return batch._replace(ids=np.where(forgotten, UNKNOWN, batch.ids))


def length_of(encoded: Encoded, depth: int) -> tuple[int, ...]:
    """What to sort a text by, so that texts of near-equal shape stand together.

    Depth 1: its words. Depth 2: its sentences, as in the released code, then the words of its longest sentence. A
    model reads the sentences of a batch in groups of near-equal length, so this second key saves it 7 to 9 % of the
    time on IMDB reviews (batches of 32 or 64, a window of 256).

    >>> from routepool.text import Tokenizer
    >>> (text,) = Tokenizer.build(["It works."]).encode(["It works. Really, it does."], depth=2)
    >>> length_of(text, depth=1), length_of(text, depth=2)
    ((8,), (2, 5))
    """
    _check(depth)
    if depth == 1:
        return (len(encoded.ids),)
    return len(encoded.lengths), int(encoded.lengths.max(initial=0))


def pad(encoded: Sequence[Encoded], depth: int) -> tuple[Integers, Flags]:
    """Texts as ids and mask, (B, T) for depth 1 and (B, S, T) for depth 2; T and S are at least 1.

    >>> from routepool.text import Tokenizer
    >>> ids, mask = pad(Tokenizer.build(["a b"]).encode(["a b", ""]), depth=1)
    >>> ids
    array([[2, 3],
           [0, 0]])
    >>> mask.tolist()
    [[True, True], [False, False]]
    """
    _check(depth)
    if depth == 1:
        lengths: Integers = np.array([len(text.ids) for text in encoded], dtype=np.int64)
    else:
        sentences = np.array([len(text.lengths) for text in encoded], dtype=np.int64)
        lengths, _ = _spread(_joined([text.lengths for text in encoded]), sentences, fill=0)
    return _spread(_joined([text.ids for text in encoded]), lengths, fill=PAD)


def evaluation_batches(lengths: Lengths, *, batch_size: int = BATCH, tokens: int = TOKENS) -> list[Integers]:
    """Group a set by length, longest first, so that too little memory shows at once.

    Args:
        lengths: of the texts, numbers or the tuples of `length_of`.
        batch_size: most texts of a batch.
        tokens: most words of a batch, padding included; a longer text is a batch of its own.

    Returns:
        Places of each batch's texts; every text once.

    >>> [rows.tolist() for rows in evaluation_batches([2, 9, 3, 1], batch_size=2, tokens=9)]
    [[1], [2, 0], [3]]
    """
    of_texts = table(lengths)
    order = sort_by_length(of_texts)[::-1]
    batches, start, shape = [], 0, [1] * of_texts.shape[1]
    for place, length in enumerate(of_texts[order].tolist()):
        rows = place - start
        wider = [max(pair) for pair in zip(shape, length, strict=True)]
        if rows == batch_size or (rows and (rows + 1) * prod(wider) > tokens):
            batches.append(order[start:place])
            start, wider = place, [max(one, 1) for one in length]
        shape = wider
    return [*batches, order[start:]] if len(order) else []


def buffers(texts: Iterable[Encoded], *, most: int = BUFFER, words: int = BUFFER_WORDS) -> Iterator[list[Encoded]]:
    """Texts of a stream in lists, so that each list can be sorted by length.

    Args:
        texts: any number of them, read only as far as a list needs.
        most: texts of a list.
        words: of a list; its last text may go beyond.
    """
    held: list[Encoded] = []
    room = words
    for text in texts:
        held.append(text)
        room -= len(text.ids)
        if len(held) >= most or room <= 0:
            yield held
            held, room = [], words
    if held:
        yield held


def sort_by_length(lengths: Integers, *, ties: Floats64 | None = None) -> Integers:
    """Rows of a table (N, K), shortest first by its first column, then the next; equals by `ties`, else in order."""
    columns = lengths.T[::-1]  # lexsort has its first key last
    return np.lexsort(columns if ties is None else (ties, *columns))


def table(lengths: Lengths) -> Integers:
    """Lengths as (N, K), whether given as numbers, as the tuples of `length_of` or as an array of either."""
    values = np.array(lengths, dtype=np.int64)
    return values[:, None] if values.ndim == 1 else values


def _spread(values: Integers, lengths: Integers, *, fill: int) -> tuple[Integers, Flags]:
    """Values that lie one after the other, as rows of these lengths along a new last axis."""
    mask = np.arange(lengths.max(initial=1)) < lengths[..., None]
    spread = np.full(mask.shape, fill, dtype=np.int64)
    spread[mask] = values
    return spread, mask


def _joined(parts: Sequence[Integers]) -> Integers:
    # The empty part makes a batch without texts legal.
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _check(depth: int) -> None:
    if depth not in (1, 2):
        raise InputError(f"depth of a text must be 1 (words) or 2 (sentences of words), got {depth!r}")
