"""How much each word and sentence matters: the importance methods, by name.

Every method measures the evidence for one label, its log-odds, except `message`, which knows of no label. All work
for sentences and documents and for every aggregator: where the text says capsule, an attention or pooling model has
its rows of weights (one, mostly), and where it says message, the states that are summed.
"""

# B texts  S sentences  T tokens  D features  M capsules  C capsule size  N rows of a level

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from routepool.batching import Batch
from routepool.errors import InputError
from routepool.explaining.passes import LevelPass, Pass, batches, levels_of, parts_of, slope_of, upwards, watch
from routepool.explaining.removal import logits_without, sentence_of, without_each
from routepool.explaining.subject import Subject
from routepool.registry import Registry
from routepool.text import Encoded, words_of

Scores = NDArray[np.float64]

# The one that is used unless another is named.
DEFAULT_METHOD = "integrated-gradients"
DEFAULT_WITHOUT_VECTORS = "leave-one-out"  # of a model on a pre-trained encoder, whose word vectors are inside it
STEPS = 32  # between the baseline and the text
REMOVAL = "drop"  # of leave-one-out


class Importance(NamedTuple):
    """The scores of one text."""

    words: Scores  # (words,), in reading order
    sentences: Scores  # (sentences,), empty for a text read as one sequence


# Scores of every text for its label, (B,) places among the subject's labels.
Method = Callable[[Subject, Sequence[Encoded], NDArray[np.int64]], list[Importance]]
METHODS: Registry[Method] = Registry("method")


def usual_method(subject: Subject) -> str:
    """The method that is used unless another is named."""
    return DEFAULT_WITHOUT_VECTORS if levels_of(subject.model)[0].embedding is None else DEFAULT_METHOD


@METHODS.register("message")
def by_message(subject: Subject, encoded: Sequence[Encoded], targets: NDArray[np.int64]) -> list[Importance]:
    """Coupling x size of the message, summed over the capsules: how much of a capsule's content a word is.

    Never below 0, and the same for every label. In a document a word has its share of the sentence's score.
    """
    found: dict[int, Importance] = {}
    with torch.no_grad():
        for batch, seen, _ in _passes(subject, encoded, targets):
            sizes = [_terms(level).norm(dim=-1).sum(-1) for level in seen.levels]
            by_level = [size.reshape(_shape(batch, place)) for place, size in enumerate(sizes)]
            words = by_level[0]
            if len(by_level) > 1:
                words = words / words.sum(-1, keepdim=True).clamp(min=1e-12) * by_level[1].unsqueeze(-1)
            found |= _collected(batch, [words, *by_level[1:]])
    return [found[place] for place in range(len(encoded))]


@METHODS.register("capsule")
def by_capsule(subject: Subject, encoded: Sequence[Encoded], targets: NDArray[np.int64]) -> list[Importance]:
    """Coupling weighted by what the label's evidence loses when the capsule is set to zero.

    In a document the capsules of each sentence are removed one by one for its words.
    """
    found: dict[int, Importance] = {}
    with torch.no_grad():
        for batch, seen, of_batch in _passes(subject, encoded, targets, batch_size=16):
            by_level = [_by_removed_capsule(subject, batch, seen, place, of_batch) for place in range(len(seen.levels))]
            found |= _collected(batch, by_level)
    return [found[place] for place in range(len(encoded))]


@METHODS.register("gradient-message")
def by_gradient_message(subject: Subject, encoded: Sequence[Encoded], targets: NDArray[np.int64]) -> list[Importance]:
    """Coupling x message x the gradient of what the capsule received, the coupling held fixed.

    In a document the gradient runs through the levels above, and a sentence's score is that of its own message.
    """
    found: dict[int, Importance] = {}
    for batch, seen, of_batch in _passes(subject, encoded, targets):
        evidence = subject.evidence(seen.logits, of_batch).sum()
        slopes = torch.autograd.grad(evidence, [level.vectors for level in seen.levels])
        by_level = []
        for place, (level, slope) in enumerate(zip(seen.levels, slopes, strict=True)):
            terms = _terms(level).detach()
            of_sum = slope_of(level.aggregator, terms.sum(1), slope)
            by_level.append(torch.einsum("ntmc,nmc->nt", terms, of_sum).reshape(_shape(batch, place)))
        found |= _collected(batch, by_level)
    return [found[place] for place in range(len(encoded))]


@METHODS.register("gradient")
def by_gradient(subject: Subject, encoded: Sequence[Encoded], targets: NDArray[np.int64]) -> list[Importance]:
    """Gradient x input: the word vector times the gradient that reaches it. A sentence's score is its words' sum."""
    found: dict[int, Importance] = {}
    for batch, seen, of_batch in _passes(subject, encoded, targets):
        found |= _summed(batch, seen.embedded.detach() * _gradient(subject, seen, of_batch))
    return [found[place] for place in range(len(encoded))]


@METHODS.register("integrated-gradients")
def by_integrated_gradients(
    subject: Subject, encoded: Sequence[Encoded], targets: NDArray[np.int64]
) -> list[Importance]:
    """Integrated gradients; the baseline is the same text with every word replaced by the unknown word.

    The scores of a text sum to what its evidence gains from the baseline, up to the error of 32 midpoints. A sentence's
    score is its words' sum.
    """
    found: dict[int, Importance] = {}
    baseline = _table(subject)[subject.unknown].detach()
    for batch, ids, mask in batches(subject.model, encoded):
        of_batch = torch.from_numpy(targets[batch.rows]).to(ids.device)
        total: Tensor | float = 0.0
        way: Tensor | float = 0.0
        for step in range(STEPS):
            share = (step + 0.5) / STEPS
            seen = watch(subject.model, ids, mask, embedded=lambda own, share=share: baseline.lerp(own, share))  # type: ignore[misc]
            total = total + _gradient(subject, seen, of_batch) / STEPS
            way = (seen.embedded.detach() - baseline) / share
        found |= _summed(batch, way * total)
    return [found[place] for place in range(len(encoded))]


@METHODS.register("leave-one-out")
def by_leaving_out(subject: Subject, encoded: Sequence[Encoded], targets: NDArray[np.int64]) -> list[Importance]:
    """What the label's evidence loses when the word, or the sentence, is dropped from the text."""
    return leave_one_out(subject, encoded, targets, removal=REMOVAL)


def leave_one_out(
    subject: Subject, encoded: Sequence[Encoded], targets: NDArray[np.int64], *, removal: str
) -> list[Importance]:
    """The same for any way of removing words. The pieces of a word, where it has several, share its loss evenly."""
    result = []
    for one, target in zip(encoded, targets.tolist(), strict=True):
        words = words_of(one).of_pieces.astype(np.int64)  # those of a pre-trained encoder are left out whole
        groups = [words, *([sentence_of(one)] if subject.depth > 1 else [])]
        whole = (one, np.ones(len(one.ids), dtype=bool))
        logits = logits_without(subject, chain([whole], *(without_each(one, group) for group in groups)), removal)
        evidence = subject.evidence_of(logits, np.full(len(logits), target))
        lost, number = evidence[0] - evidence[1:], int(words.max(initial=-1)) + 1
        result.append(Importance((lost[:number] / np.bincount(words, minlength=number))[words], lost[number:]))
    return result


def _passes(
    subject: Subject, encoded: Sequence[Encoded], targets: NDArray[np.int64], **sizes: int
) -> Iterator[tuple[Batch, Pass, Tensor]]:
    for batch, ids, mask in batches(subject.model, encoded, **sizes):
        yield batch, watch(subject.model, ids, mask), torch.from_numpy(targets[batch.rows]).to(ids.device)


def _terms(level: LevelPass) -> Tensor:
    return level.aggregator.terms(level.states, level.mask, level.weights)


def _shape(batch: Batch, place: int) -> tuple[int, ...]:
    """The axes of a level's spans: (B, T) or (B, S, T) for words, (B, S) for sentences."""
    return batch.mask.shape[: batch.mask.ndim - place]


def _table(subject: Subject) -> Tensor:
    embedding = levels_of(subject.model)[0].embedding
    if embedding is None:
        raise InputError(
            "the gradient of word vectors is not to be had from a pre-trained encoder; use gradient-message or "
            "leave-one-out"
        )
    return embedding.weight


def _gradient(subject: Subject, seen: Pass, targets: Tensor) -> Tensor:
    _table(subject)
    (slope,) = torch.autograd.grad(subject.evidence(seen.logits, targets).sum(), [seen.embedded])
    return slope


def _by_removed_capsule(subject: Subject, batch: Batch, seen: Pass, place: int, targets: Tensor) -> Tensor:
    """Weights of a level's words or sentences times what the evidence loses without each capsule."""
    level, shape = seen.levels[place], _shape(batch, place)
    evidence = subject.evidence(seen.logits, targets)
    # (B, rows of a text, M, C): one row for the last level, the sentences below it.
    own = parts_of(level)
    capsules = own.reshape(len(evidence), -1, *own.shape[1:])
    mask = level.mask.any(-1).reshape(shape[:-1])
    lost = torch.zeros(capsules.shape[:-1])
    for row in range(capsules.shape[1]):
        for capsule in range(capsules.shape[2]):
            without = capsules.clone()
            without[:, row, capsule] = 0
            vectors = without.flatten(2).reshape(*shape[:-1], -1)
            lost[:, row, capsule] = evidence - subject.evidence(
                upwards(subject.model, place + 1, vectors, mask), targets
            )
    return torch.einsum("ntm,nm->nt", level.weights, lost.flatten(0, 1)).reshape(shape)


def _summed(batch: Batch, terms: Tensor | float) -> dict[int, Importance]:
    """Scores of words (N, T, D) summed over the features; of sentences, the sum of their words."""
    assert isinstance(terms, Tensor)
    words = terms.sum(-1).reshape(batch.mask.shape)
    words = words.masked_fill(~torch.from_numpy(batch.mask).to(words.device), 0)
    return _collected(batch, [words, words.sum(-1)])


def _collected(batch: Batch, by_level: Sequence[Tensor]) -> dict[int, Importance]:
    """Padded scores of words (B, T) or (B, S, T), then of sentences -> those of each text, by its place."""
    levels = [level.double().numpy(force=True) for level in by_level]
    found = {}
    for place, row in enumerate(batch.rows.tolist()):
        mask = batch.mask[place]
        sentences = levels[1][place][mask.any(-1)] if mask.ndim > 1 else np.empty(0)
        found[row] = Importance(levels[0][place][mask], sentences)
    return found
