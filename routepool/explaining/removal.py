"""Texts without some of their words: in which order words are taken away, and in three ways how."""

# N words of a text  V variants  K classes  S sentences  D features

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from routepool.arrays import Flags, Floats, Floats32, Integers
from routepool.batching import Batch, evaluation_batches, pad
from routepool.errors import unknown
from routepool.explaining.subject import Subject, reading, upwards
from routepool.scoring.torch_backend import logits_of
from routepool.text import Encoded, Tokenizer

Variant = tuple[Encoded, Flags]  # a text, and which of its words (N,) stay
Order = Integers  # (N,) places of a text's words, the most important first
T = TypeVar("T")

# Of the variants in memory at once, before and after words are taken away: some 20 bytes a word, 4 kB a sentence.
WORDS, SENTENCES = 2**20, 2**14
WIDTH, CHOICES, STEPS = 3, 6, 20  # of the search: sets kept, extensions tried of each, steps from all words to none


def logits_without(subject: Subject, variants: Iterable[Variant], removal: str) -> Floats32:
    """Logits (V, K) of texts of which only some words are kept.

    Args:
        subject: the model.
        variants: texts and the words that stay; taken as they come, so that not all need be in memory.
        removal: "drop" reads the text as if the others were not written; "unknown" replaces them by the unknown word;
            "masked" lets the encoder read them, but not the aggregator of the words.
    """
    if removal not in REMOVALS:
        raise unknown("removal", removal, list(REMOVALS))
    chunks = _chunks(variants, lambda variant: len(variant[1]), WORDS)
    found = [REMOVALS[removal](subject, some) for some in chunks]
    return np.concatenate([np.empty((0, len(subject.labels)), dtype=np.float32), *found])


def sentence_of(encoded: Encoded) -> Integers:
    """(N,) the place of each word's sentence."""
    return np.repeat(np.arange(len(encoded.lengths)), encoded.lengths)


def variant_of(encoded: Encoded, words: Integers | Sequence[int], *, keep: bool) -> Variant:
    """The text with only some of its words, or without them."""
    kept = np.full(len(encoded.ids), not keep)
    kept[list(words)] = keep
    return encoded, kept


def without_each(encoded: Encoded, groups: Integers) -> Iterator[Variant]:
    """The text without each of its groups of words in turn: (N,) the group of each word, from 0 on."""
    return ((encoded, groups != group) for group in range(int(groups.max(initial=-1)) + 1))


def _chunks(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Items in their order, as many together as are not too large."""
    held: list[T] = []
    total = 0
    for item in items:
        if held and total + size(item) > most:
            yield held
            held, total = [], 0
        held.append(item)
        total += size(item)
    if held:
        yield held


def _dropped(subject: Subject, variants: Sequence[Variant]) -> Floats32:
    texts = [_without(encoded, kept, subject.depth) for encoded, kept in variants]
    if subject.depth == 1:
        return logits_of(subject.model, texts)
    chunks = _chunks(texts, lambda text: len(text.lengths), SENTENCES)
    return np.concatenate([_of_documents(subject, some) for some in chunks])


def _without(encoded: Encoded, kept: Flags, depth: int) -> Encoded:
    lengths = np.bincount(sentence_of(encoded)[kept], minlength=len(encoded.lengths)).astype(np.int32)
    if depth > 1:
        lengths = lengths[lengths > 0]
    words = None if encoded.words is None else encoded.words[kept]
    return encoded._replace(ids=encoded.ids[kept], spans=encoded.spans[kept], lengths=lengths, words=words)


def _of_documents(subject: Subject, documents: Sequence[Encoded]) -> Floats32:
    """Logits of documents. A sentence that several have is read once: variants of a text share all but one."""
    places: dict[bytes, int] = {}
    rows = [[places.setdefault(ids.tobytes(), len(places)) for ids in _sentences(one)] for one in documents]
    result = np.empty((len(documents), len(subject.labels)), dtype=np.float32)
    with reading(subject.model), torch.inference_mode():
        vectors = _vectors(subject, [np.frombuffer(ids, dtype=np.int32) for ids in places])
        for batch in evaluation_batches([len(one) for one in rows]):
            width = max(1, *(len(rows[row]) for row in batch.tolist()))
            table = np.array([rows[row] + [-1] * (width - len(rows[row])) for row in batch.tolist()])
            states, mask = (torch.from_numpy(each).to(subject.device) for each in (vectors[table], table >= 0))
            result[batch] = upwards(subject.model, 1, states, mask).float().numpy(force=True)
    return result


def _sentences(document: Encoded) -> list[Integers]:
    return np.split(document.ids, np.cumsum(document.lengths)[:-1]) if len(document.lengths) else []


def _vectors(subject: Subject, sentences: Sequence[Integers]) -> Floats32:
    """(S + 1, D): what the words' level makes of each sentence, and zeros for none."""
    first, nowhere = subject.levels[0], np.empty((0, 2), dtype=np.int32)
    encoded = [Encoded(ids, nowhere, np.array([len(ids)], dtype=np.int32), 0, 0) for ids in sentences]
    vectors = np.zeros((len(sentences) + 1, first.aggregator.out_features), dtype=np.float32)
    for batch in Batch.by_length(encoded, depth=1):
        ids, mask = (torch.from_numpy(each).to(subject.device) for each in (batch.ids, batch.mask))
        vectors[batch.rows] = first(ids, mask).float().numpy(force=True)
    return vectors


def _unknown(subject: Subject, variants: Sequence[Variant]) -> Floats32:
    other = np.int32(subject.unknown)
    return logits_of(subject.model, [one._replace(ids=np.where(kept, one.ids, other)) for one, kept in variants])


def _masked(subject: Subject, variants: Sequence[Variant]) -> Floats32:
    flags = [one._replace(ids=kept.astype(np.int32)) for one, kept in variants]

    def mask_out(batch: Batch, ids: Tensor) -> RemovableHandle:
        stays = torch.from_numpy(pad([flags[row] for row in batch.rows.tolist()], subject.depth)[0] == 1).to(ids.device)
        return subject.levels[0].aggregator.register_forward_pre_hook(
            lambda _, inputs: (inputs[0], inputs[1] & stays.reshape(inputs[1].shape))
        )

    return subject.changed_logits([one for one, _ in variants], mask_out, batch_size=256, tokens=2**15)


REMOVALS: dict[str, Callable[[Subject, Sequence[Variant]], Floats32]] = {
    "drop": _dropped,
    "unknown": _unknown,
    "masked": _masked,
}


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
