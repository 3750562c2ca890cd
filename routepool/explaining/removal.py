"""Texts with words taken away, in three ways: what would the model say without them?"""

# N words of a text  V variants  K classes  S sentences  D features

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from routepool.batching import Batch, evaluation_batches, pad
from routepool.errors import unknown
from routepool.explaining.passes import batches, changed_mask, levels_of, reading, upwards
from routepool.explaining.subject import Subject
from routepool.scoring.torch_backend import logits_of
from routepool.text import Encoded

Kept = NDArray[np.bool_]
Variant = tuple[Encoded, Kept]  # a text, and which of its words (N,) stay
Floats = NDArray[np.float32]
T = TypeVar("T")

# Of the variants in memory at once, before and after words are taken away: some 20 bytes a word, 4 kB a sentence.
WORDS, SENTENCES = 2**20, 2**14
BATCH = 256


def logits_without(subject: Subject, variants: Iterable[Variant], removal: str) -> Floats:
    """Logits (V, K) of texts of which only some words are kept.

    Args:
        subject: the model.
        variants: texts and the words that stay; taken as they come, so that not all need be in memory.
        removal: "drop" reads the text as if the others were not written; "unknown" puts the unknown word in their
            places; "masked" lets the encoder read them and keeps them from the words' aggregator alone.
    """
    if removal not in REMOVALS:
        raise unknown("removal", removal, list(REMOVALS))
    chunks = _chunks(variants, lambda variant: len(variant[1]), WORDS)
    found = [REMOVALS[removal](subject, some) for some in chunks]
    return np.concatenate([np.empty((0, len(subject.labels)), dtype=np.float32), *found])


def sentence_of(encoded: Encoded) -> NDArray[np.int64]:
    """(N,) the place of each word's sentence."""
    return np.repeat(np.arange(len(encoded.lengths)), encoded.lengths)


def without_each(encoded: Encoded, groups: NDArray[np.int64]) -> Iterator[Variant]:
    """The text without each of its groups of words in turn: (N,) the group of each word, from 0 on."""
    return ((encoded, groups != group) for group in range(int(groups.max(initial=-1)) + 1))


def _chunks(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Items one after the other, as many together as are not too large."""
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


def _dropped(subject: Subject, variants: Sequence[Variant]) -> Floats:
    texts = [_without(encoded, kept, subject.depth) for encoded, kept in variants]
    if subject.depth == 1:
        return logits_of(subject.model, texts)
    chunks = _chunks(texts, lambda text: len(text.lengths), SENTENCES)
    return np.concatenate([_of_documents(subject, some) for some in chunks])


def _of_documents(subject: Subject, documents: Sequence[Encoded]) -> Floats:
    """Logits of documents, each sentence that several of them have read once: variants of a text share all but one."""
    places: dict[bytes, int] = {}
    rows = [[places.setdefault(ids.tobytes(), len(places)) for ids in _sentences(one)] for one in documents]
    model, device = subject.model, next(subject.model.parameters()).device
    result = np.empty((len(documents), model.head.out_features), dtype=np.float32)
    with reading(model), torch.inference_mode():
        vectors = _vectors(subject, [np.frombuffer(ids, dtype=np.int32) for ids in places])
        for batch in evaluation_batches([len(one) for one in rows], batch_size=BATCH):
            width = max(1, *(len(rows[row]) for row in batch.tolist()))
            table = np.array([rows[row] + [-1] * (width - len(rows[row])) for row in batch.tolist()])
            states, mask = (torch.from_numpy(each).to(device) for each in (vectors[table], table >= 0))
            result[batch] = upwards(model, 1, states, mask).float().numpy(force=True)
    return result


def _sentences(document: Encoded) -> list[NDArray[np.int32]]:
    return np.split(document.ids, np.cumsum(document.lengths)[:-1]) if len(document.lengths) else []


def _vectors(subject: Subject, sentences: Sequence[NDArray[np.int32]]) -> Floats:
    """(S + 1, D): what the words' level makes of each sentence, and zeros for none."""
    first = levels_of(subject.model)[0]
    nowhere, device = np.empty((0, 2), dtype=np.int32), next(first.parameters()).device
    encoded = [Encoded(ids, nowhere, np.array([len(ids)], dtype=np.int32), 0, 0) for ids in sentences]
    vectors = np.zeros((len(sentences) + 1, first.aggregator.out_features), dtype=np.float32)
    for rows in evaluation_batches([len(ids) for ids in sentences], batch_size=BATCH):
        batch = Batch.of(encoded, rows, 1)
        read = first(torch.from_numpy(batch.ids).to(device), torch.from_numpy(batch.mask).to(device))
        vectors[rows] = read.float().numpy(force=True)
    return vectors


def _without(encoded: Encoded, kept: Kept, depth: int) -> Encoded:
    lengths = np.bincount(sentence_of(encoded)[kept], minlength=len(encoded.lengths)).astype(np.int32)
    if depth > 1:
        lengths = lengths[lengths > 0]
    words = None if encoded.words is None else encoded.words[kept]
    return encoded._replace(ids=encoded.ids[kept], spans=encoded.spans[kept], lengths=lengths, words=words)


def _unknown(subject: Subject, variants: Sequence[Variant]) -> Floats:
    other = np.int32(subject.unknown)
    return logits_of(subject.model, [one._replace(ids=np.where(kept, one.ids, other)) for one, kept in variants])


def _masked(subject: Subject, variants: Sequence[Variant]) -> Floats:
    model, first = subject.model, levels_of(subject.model)[0]
    encoded = [one for one, _ in variants]
    flags = [one._replace(ids=kept.astype(np.int32)) for one, kept in variants]
    result = np.empty((len(variants), model.head.out_features), dtype=np.float32)
    for batch, ids, mask in batches(model, encoded, batch_size=256, tokens=2**15):
        stays = torch.from_numpy(pad([flags[row] for row in batch.rows.tolist()], subject.depth)[0] == 1).to(ids.device)
        with (
            reading(model),
            torch.inference_mode(),
            changed_mask(first, lambda rows, stays=stays: rows & stays.reshape(rows.shape)),  # type: ignore[misc]
        ):
            result[batch.rows] = model(ids, mask, grouped=False).float().numpy(force=True)
    return result


REMOVALS: dict[str, Callable[[Subject, Sequence[Variant]], Floats]] = {
    "drop": _dropped,
    "unknown": _unknown,
    "masked": _masked,
}
