"""How much each word and sentence matters: the importance methods by name, and what each of them costs.

Every method measures the evidence for one label, its log-odds, except `message`, which knows of no label. All work
for sentences and documents and for every aggregator: where the text says capsule, an attention or pooling model has
its rows of weights (one, mostly), and where it says message, the states that are summed.
"""

# B texts  S sentences  T tokens  D features  M capsules  C capsule size  N rows of a level

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from routepool.arrays import Floats, Integers
from routepool.errors import InputError
from routepool.explaining.removal import logits_without, sentence_of, without_each
from routepool.explaining.subject import BATCH, LevelPass, Pass, Subject, slope_of, watch, without_capsule
from routepool.registry import Registry
from routepool.text import Encoded, words_of

# The one that is used unless another is named.
DEFAULT_METHOD = "integrated-gradients"
DEFAULT_WITHOUT_VECTORS = "leave-one-out"  # of a model on a pre-trained encoder, whose word vectors are inside it
STEPS = 32  # between the baseline and the text


class Importance(NamedTuple):
    """The scores of one text."""

    words: Floats  # (words,), in reading order
    sentences: Floats  # (sentences,), empty for a text read as one sequence


# Scores of every text for its label, (B,) places among the subject's labels.
Method = Callable[[Subject, Sequence[Encoded], Integers], list[Importance]]
METHODS: Registry[Method] = Registry("method")


def usual_method(subject: Subject) -> str:
    """The method that is used unless another is named."""
    return DEFAULT_WITHOUT_VECTORS if subject.levels[0].embedding is None else DEFAULT_METHOD


class Asked(NamedTuple):
    """A batch of texts, and the label of each that is asked about."""

    subject: Subject
    ids: Tensor  # (B, T) or (B, S, T)
    mask: Tensor
    targets: Tensor  # (B,)

    def read(self, embedded: Callable[[Tensor], Tensor] | None = None) -> Pass:
        """What the model computes, of other word vectors if asked."""
        return watch(self.subject.model, self.ids, self.mask, embedded=embedded)

    def evidence(self, logits: Tensor) -> Tensor:
        """(B,) for the label of each text."""
        return self.subject.evidence(logits, self.targets)

    def shaped(self, scores: Tensor, place: int) -> Tensor:
        """Scores (N, T) of a level: (B, T) or (B, S, T) for words, (B, S) for sentences."""
        return scores.reshape(self.mask.shape[: self.mask.ndim - place])


def _by_batch(batch_size: int = BATCH) -> Callable[[Callable[[Asked], list[Tensor]]], Method]:
    """A method of the function that scores a batch: words (B, T) or (B, S, T), then sentences (B, S)."""

    def decorate(compute: Callable[[Asked], list[Tensor]]) -> Method:
        def method(subject: Subject, encoded: Sequence[Encoded], targets: Integers) -> list[Importance]:
            found: dict[int, Importance] = {}
            for batch, ids, mask in subject.batches(encoded, batch_size=batch_size):
                asked = Asked(subject, ids, mask, torch.from_numpy(targets[batch.rows]).to(ids.device))
                levels = [level.double().numpy(force=True) for level in compute(asked)]
                for place, row in enumerate(batch.rows.tolist()):
                    real = batch.mask[place]
                    sentences = levels[1][place][real.any(-1)] if real.ndim > 1 else np.empty(0)
                    found[row] = Importance(levels[0][place][real], sentences)
            return [found[row] for row in range(len(encoded))]

        return method

    return decorate


@METHODS.register("message")
@_by_batch()
@torch.no_grad()
def by_message(asked: Asked) -> list[Tensor]:
    """Coupling x size of the message, summed over the capsules: how much of a capsule's content a word is.

    Never below 0, and the same for every label. In a document a word has its share of the sentence's score.
    """
    sizes = [_terms(level).norm(dim=-1).sum(-1) for level in asked.read().levels]
    words, *sentences = (asked.shaped(size, place) for place, size in enumerate(sizes))
    if sentences:
        words = words / words.sum(-1, keepdim=True).clamp(min=1e-12) * sentences[0].unsqueeze(-1)
    return [words, *sentences]


@METHODS.register("capsule")
@_by_batch(batch_size=16)
@torch.no_grad()
def by_capsule(asked: Asked) -> list[Tensor]:
    """Coupling weighted by what the label's evidence loses when the capsule is set to zero.

    In a document the capsules of each sentence are removed one by one for its words.
    """
    seen = asked.read()
    evidence, by_level = asked.evidence(seen.logits), []
    for place, level in enumerate(seen.levels):
        # (B, rows of a text, M): one row for the last level, the sentences below it.
        lost = torch.zeros(len(evidence), len(level.vectors) // len(evidence), level.parts.shape[1])
        for row in range(lost.shape[1]):
            for capsule in range(lost.shape[2]):
                logits = without_capsule(asked.subject.model, seen, place, capsule, row)
                lost[:, row, capsule] = evidence - asked.evidence(logits)
        by_level.append(asked.shaped(torch.einsum("ntm,nm->nt", level.weights, lost.flatten(0, 1)), place))
    return by_level


@METHODS.register("gradient-message")
@_by_batch()
def by_gradient_message(asked: Asked) -> list[Tensor]:
    """Coupling x message x the gradient of what the capsule received, the coupling held fixed.

    In a document the gradient runs through the levels above, and a sentence's score is that of its own message.
    """
    seen, by_level = asked.read(), []
    slopes = torch.autograd.grad(asked.evidence(seen.logits).sum(), [level.vectors for level in seen.levels])
    for place, (level, slope) in enumerate(zip(seen.levels, slopes, strict=True)):
        terms = _terms(level).detach()
        of_sum = slope_of(level.aggregator, terms.sum(1), slope)
        by_level.append(asked.shaped(torch.einsum("ntmc,nmc->nt", terms, of_sum), place))
    return by_level


@METHODS.register("gradient")
@_by_batch()
def by_gradient(asked: Asked) -> list[Tensor]:
    """Gradient x input: the word vector times the gradient that reaches it. A sentence's score is its words' sum."""
    _table(asked.subject)
    seen = asked.read()
    return _summed(asked, seen.embedded.detach() * _gradient(asked, seen))


@METHODS.register("integrated-gradients")
@_by_batch()
def by_integrated_gradients(asked: Asked) -> list[Tensor]:
    """Integrated gradients; the baseline is the same text with every word replaced by the unknown word.

    The scores of a text sum to what its evidence gains from the baseline, up to the error of 32 midpoints. A sentence's
    score is its words' sum.
    """
    baseline = _table(asked.subject)[asked.subject.unknown].detach()
    total = way = torch.zeros(())
    for step in range(STEPS):
        share = (step + 0.5) / STEPS
        seen = asked.read(lambda own, share=share: baseline.lerp(own, share))  # type: ignore[misc]
        total = total + _gradient(asked, seen) / STEPS
        way = (seen.embedded.detach() - baseline) / share
    return _summed(asked, way * total)


def leave_one_out(
    subject: Subject, encoded: Sequence[Encoded], targets: Integers, *, removal: str = "drop"
) -> list[Importance]:
    """What the label's evidence loses when the word, or the sentence, is removed from the text.

    The pieces of a word, where it has several, share its loss evenly.
    """
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


METHODS.register("leave-one-out")(leave_one_out)


def _terms(level: LevelPass) -> Tensor:
    return level.aggregator.terms(level.states, level.mask, level.weights)


def _table(subject: Subject) -> Tensor:
    embedding = subject.levels[0].embedding
    if embedding is None:
        raise InputError(
            "the gradient of word vectors is not to be had from a pre-trained encoder; use gradient-message or "
            "leave-one-out"
        )
    return embedding.weight


def _gradient(asked: Asked, seen: Pass) -> Tensor:
    return torch.autograd.grad(asked.evidence(seen.logits).sum(), [seen.embedded])[0]


def _summed(asked: Asked, terms: Tensor) -> list[Tensor]:
    """Scores of words (N, T, D) summed over the features; of sentences, the sum of their words."""
    words = terms.sum(-1).reshape(asked.mask.shape).masked_fill(~asked.mask, 0)
    return [words, words.sum(-1)]


SLOPE = 3  # cost of a word that is read with the gradient that comes back, or with every message built
SENTENCE = 3  # of a sentence's vector that is read again: it is wider than a word's


class Size(NamedTuple):
    """What the cost of a text depends on."""

    words: int  # whole ones, that can be left out
    pieces: int  # that the model reads: words, or parts of them
    sentences: tuple[int, ...]  # pieces of each; none for a text read as one sequence
    capsules: int

    @classmethod
    def of(cls, subject: Subject, encoded: Encoded) -> Self:
        """The size of one text."""
        words = int(words_of(encoded).of_pieces.max(initial=-1)) + 1
        sentences = tuple(encoded.lengths.tolist()) if subject.depth > 1 else ()
        return cls(words, len(encoded.ids), sentences, subject.levels[0].aggregator.parts.number)


def _cost_of_leaving_out(size: Size) -> int:
    """Each word's whole text; of a document, each word's sentence and the vectors of all."""
    if not size.sentences:
        return size.words * size.pieces
    number = len(size.sentences)
    return sum(length**2 for length in size.sentences) + (size.words + number) * number * SENTENCE


# Names of `METHODS` -> what the method reads of a text.
COSTS: dict[str, Callable[[Size], int]] = {
    "message": lambda size: size.pieces * SLOPE,
    "capsule": lambda size: size.pieces + len(size.sentences) ** 2 * size.capsules * SENTENCE,
    "gradient-message": lambda size: size.pieces * SLOPE,
    "gradient": lambda size: size.pieces * SLOPE,
    "integrated-gradients": lambda size: size.pieces * SLOPE * STEPS,
    "leave-one-out": _cost_of_leaving_out,
}


def costs_of(subject: Subject, texts: Sequence[str], *, method: str | None = None) -> list[int]:
    """About how many words a model reads to explain each text; to predict it, it reads each of its words once.

    Args:
        subject: the model.
        texts: raw.
        method: a name of `METHODS`; None for the usual one. If its cost is not known, that of leave-one-out counts.
    """
    method = method or usual_method(subject)
    METHODS[method]  # an unknown name is refused
    cost = COSTS.get(method, _cost_of_leaving_out)
    sizes = [Size.of(subject, one) for one in subject.encode(texts)]
    # Every explanation begins with what the model says of the whole text.
    return [size.pieces + cost(size) for size in sizes]
