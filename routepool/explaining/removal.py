"""Texts with words taken away, in three ways: what would the model say without them?"""

# N words of a text  V variants  K classes

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from routepool.batching import pad
from routepool.errors import unknown
from routepool.explaining.passes import batches, changed_mask, levels_of, reading
from routepool.explaining.subject import Subject
from routepool.inference import logits_of
from routepool.text import Encoded

Kept = NDArray[np.bool_]
Variant = tuple[Encoded, Kept]  # a text, and which of its words (N,) stay
Floats = NDArray[np.float32]


def logits_without(subject: Subject, variants: Sequence[Variant], removal: str) -> Floats:
    """Logits (V, K) of texts of which only some words are kept.

    Args:
        subject: the model.
        variants: texts and the words that stay.
        removal: "drop" reads the text as if the others were not written; "unknown" puts the unknown word in their
            places; "masked" lets the encoder read them and keeps them from the words' aggregator alone.
    """
    if removal not in REMOVALS:
        raise unknown("removal", removal, list(REMOVALS))
    return REMOVALS[removal](subject, variants)


def sentence_of(encoded: Encoded) -> NDArray[np.int64]:
    """(N,) the place of each word's sentence."""
    return np.repeat(np.arange(len(encoded.lengths)), encoded.lengths)


def without_each(encoded: Encoded, groups: NDArray[np.int64]) -> list[Variant]:
    """The text without each of its groups of words in turn: (N,) the group of each word, from 0 on."""
    return [(encoded, groups != group) for group in range(int(groups.max(initial=-1)) + 1)]


def _dropped(subject: Subject, variants: Sequence[Variant]) -> Floats:
    return logits_of(subject.model, [_without(encoded, kept, subject.depth) for encoded, kept in variants])


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
    result = np.empty((len(variants), model.head.output.out_features), dtype=np.float32)
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
