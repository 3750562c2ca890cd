"""Texts of near-equal length computed together, results in the order of the input."""

# N texts  K kinds of length

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import TypeVar

from routepool.batching.bucket import sort_by_length
from routepool.batching.padding import Integers, Lengths, table

T = TypeVar("T")
R = TypeVar("R")

# Words of a batch, padding included: a BiLSTM of the paper's size holds about 8 kB for each while it reads them.
TOKENS = 2**15
BUFFER = 4096
# Of a buffer, so that long documents fill it before their number does: 12 bytes a word.
BUFFER_TOKENS = 2**24


def evaluation_batches(lengths: Lengths, *, batch_size: int, tokens: int = TOKENS) -> list[Integers]:
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


def in_input_order(batches: Iterable[Integers], results: Iterable[Sequence[R]]) -> list[R]:
    """Results of each batch's texts, back at the places of the texts.

    >>> batches = evaluation_batches([2, 9, 3], batch_size=2)
    >>> in_input_order(batches, [["nine", "three"], ["two"]])
    ['two', 'nine', 'three']
    """
    placed: dict[int, R] = {}
    for rows, values in zip(batches, results, strict=True):
        placed.update(zip(rows.tolist(), values, strict=True))
    return [placed[row] for row in range(len(placed))]


def stream(
    items: Iterable[T],
    compute: Callable[[list[T]], Sequence[R]],
    *,
    length: Callable[[T], tuple[int, ...]],
    batch_size: int,
    buffer: int = BUFFER,
    buffer_tokens: int = BUFFER_TOKENS,
) -> Iterator[R]:
    """One result for each item, in their order, from batches of near-equal length, in bounded memory.

    Args:
        items: read a buffer at a time.
        compute: gives a batch's results.
        length: of an item, as `length_of`.
        batch_size: most items of a batch.
        buffer: most items held at once.
        buffer_tokens: most words held at once, as padded on their own, but for the last item.

    >>> list(stream(["ccc", "a", "bb"], lambda batch: [text.upper() for text in batch],
    ...             length=lambda text: (len(text),), batch_size=2))
    ['CCC', 'A', 'BB']
    """
    for held, lengths in _buffers(items, length, buffer, buffer_tokens):
        batches = evaluation_batches(lengths, batch_size=batch_size)
        yield from in_input_order(batches, (compute([held[row] for row in rows.tolist()]) for rows in batches))


def _buffers(
    items: Iterable[T], length: Callable[[T], tuple[int, ...]], most: int, most_tokens: int
) -> Iterator[tuple[list[T], list[tuple[int, ...]]]]:
    held: list[T] = []
    lengths: list[tuple[int, ...]] = []
    tokens = 0
    for item in items:
        held.append(item)
        lengths.append(length(item))
        tokens += prod(lengths[-1])
        if len(held) >= most or tokens >= most_tokens:
            yield held, lengths
            held, lengths, tokens = [], [], 0
    if held:
        yield held, lengths
