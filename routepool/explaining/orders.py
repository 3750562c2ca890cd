"""The order in which words are removed: by a method, at random, by rarity, by search."""

# N words of a text

from collections.abc import Sequence

import numpy as np

from routepool.arrays import Floats, Integers
from routepool.explaining.removal import logits_without, variant_of
from routepool.explaining.subject import Subject
from routepool.text import Encoded, Tokenizer

Order = Integers  # (N,) places of a text's words, the most important first

WIDTH, CHOICES, STEPS = 3, 6, 20  # of the search: sets kept, extensions tried of each, steps from all words to none


def by_score(scores: Floats) -> Order:
    """Largest first, equals in reading order."""
    return np.argsort(-scores, kind="stable")


def at_random(encoded: Sequence[Encoded], seed: int) -> list[Order]:
    """A shuffle of each text's words."""
    generator = np.random.default_rng(seed)
    return [generator.permutation(len(one.ids)) for one in encoded]


def by_rarity(encoded: Sequence[Encoded], tokenizer: Tokenizer) -> list[Order]:
    """The words seen least often in training first, equals in reading order; unknown words are the rarest."""
    counts = np.array(tokenizer.counts)
    return [np.argsort(counts[one.ids], kind="stable") for one in encoded]


def by_search(
    subject: Subject,
    encoded: Encoded,
    target: int,
    *,
    start: Order,
    removal: str,
    keep: bool,
    sizes: Sequence[int],
    rivals: Sequence[Order] = (),
) -> list[Order]:
    """A small beam search for the words whose removal costs the label most, or which alone keep it best.

    Each of the best sets so far is extended by a few alternatives, the next words of `start` that it lacks, and the
    best are kept. The first words of `start` and of its rivals always compete, so that none of them is better. A long
    text is searched in groups of words, in about `STEPS` steps from all words to none.

    Args:
        subject: the model.
        encoded: the text.
        target: the label's place.
        start: an order to take candidates from, such as that of leave-one-out.
        removal: how words are removed.
        keep: search words to keep, not to remove.
        sizes: how many words to find, rising; for each an order that begins with these words.
        rivals: orders of other methods.
    """
    together = max(1, -(-len(start) // STEPS))
    found: list[Order] = []
    beam: list[tuple[int, ...]] = [()]
    for size in sizes:
        while len(beam[0]) < size:
            step = min(together, size - len(beam[0]))
            beam = _best(subject, encoded, target, _extended(beam, start, step, rivals), removal, keep=keep)
        chosen = set(beam[0])
        found.append(np.array([*beam[0], *(word for word in start.tolist() if word not in chosen)], dtype=np.int64))
    return found


def _extended(
    beam: list[tuple[int, ...]], start: Order, together: int, rivals: Sequence[Order]
) -> list[tuple[int, ...]]:
    """Every set of the beam with some more words, and the first so many of every order; each set once."""
    larger = [tuple(order[: len(beam[0]) + together].tolist()) for order in (start, *rivals)]
    for words in beam:
        left = [word for word in start.tolist() if word not in set(words)]
        groups = [left[place : place + together] for place in range(0, len(left) - together + 1, together)]
        larger += [(*words, *group) for group in groups[:CHOICES]]
    return list({frozenset(words): words for words in larger}.values())


def _best(
    subject: Subject, encoded: Encoded, target: int, sets: list[tuple[int, ...]], removal: str, *, keep: bool
) -> list[tuple[int, ...]]:
    variants = [variant_of(encoded, words, keep=keep) for words in sets]
    evidence = subject.evidence_of(logits_without(subject, variants, removal), np.full(len(variants), target))
    return [sets[place] for place in np.argsort(-evidence if keep else evidence, kind="stable")[:WIDTH]]
