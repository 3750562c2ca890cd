"""Texts -> explanations of them."""

# M parts of a vector

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from routepool.arrays import Floats, Integers
from routepool.errors import InputError
from routepool.explaining.explanation import Explanation, Span, SpanLevel
from routepool.explaining.methods import METHODS, Importance, usual_method
from routepool.explaining.removal import sentence_of
from routepool.explaining.subject import Subject, watch
from routepool.scoring.probabilities import check_finite
from routepool.settings import AGGREGATORS
from routepool.text import Encoded, words_of

Rounds = Sequence[Floats]  # (spans, M) of each round, the last one being the weights


def explain(
    subject: Subject,
    texts: Sequence[str],
    *,
    method: str | None = None,
    label: str | None = None,
    iterations: bool = False,
) -> list[Explanation]:
    """What the model says of each text, which word went where, and how much each mattered.

    Args:
        subject: the model.
        texts: raw.
        method: a name of `METHODS`; None for the usual one.
        label: the one that words speak for; None for the likeliest of each text.
        iterations: keep the weights of every round of routing.
    """
    method = method or usual_method(subject)
    importance = METHODS[method]  # an unknown name is refused before anything is computed
    encoded = subject.encode(texts)
    probabilities, rounds = read_weights(subject, encoded, iterations=iterations)
    targets = probabilities.argmax(1) if label is None else np.full(len(texts), subject.place(label))
    scores = importance(subject, encoded, targets.astype(np.int64))
    check_finite(np.array([[each.words.sum(), each.sentences.sum()] for each in scores]).reshape(-1, 2))
    parts, name = subject.levels[-1].aggregator.parts, _name(subject)
    same: dict[str, Any] = {"method": method, "aggregator": name, "part": parts.name, "share_of": parts.share_of}
    return [
        Explanation(
            text,
            predicted,
            dict(zip(subject.labels, probabilities[place].tolist(), strict=True)),
            label=subject.labels[targets[place]],
            levels=_levels(encoded[place], scores[place], rounds[place], by_word=parts.share_of == "word"),
            **same,
            **subject.tokenizer.reading(encoded[place])._asdict(),
        )
        for place, (text, predicted) in enumerate(zip(texts, subject.predicted(probabilities), strict=True))
    ]


def read_weights(
    subject: Subject, encoded: Sequence[Encoded], *, iterations: bool = False
) -> tuple[Floats, list[list[Rounds]]]:
    """Probabilities (B, K), and for each text the weights of its levels, words first, in one round or in all."""
    if iterations and subject.levels[0].aggregator.iterations == 1:
        raise InputError(f"there are no rounds to show: this model aggregates by {_name(subject)!r}, in a single one")
    logits = np.empty((len(encoded), len(subject.labels)))
    rounds: list[list[Rounds]] = [[] for _ in encoded]
    with torch.no_grad():
        for batch, ids, mask in subject.batches(encoded):
            seen = watch(subject.model, ids, mask)
            logits[batch.rows] = seen.logits.double().numpy(force=True)
            for place, level in enumerate(seen.levels):
                weights = level.aggregator.rounds(level.states, level.mask) if iterations else [level.weights]
                real = np.asarray(batch.mask if place == 0 else batch.mask.any(-1))
                arrays = [one.double().numpy(force=True).reshape(*real.shape, -1) for one in weights]
                for row, text in enumerate(batch.rows.tolist()):
                    rounds[text].append([array[row][real[row]] for array in arrays])
    return subject.probabilities(logits), rounds


def _levels(encoded: Encoded, scores: Importance, rounds: list[Rounds], *, by_word: bool) -> tuple[SpanLevel, ...]:
    """The spans of each level; the weights of pieces become their word's mean where they are shares of it, else sum."""
    words = words_of(encoded)
    pieces = np.bincount(words.of_pieces)[:, None] if by_word else 1
    of_words = [words.add_up(weights) / pieces for weights in rounds[0]]
    scores_of_words = words.add_up(scores.words)
    if len(rounds) == 1:
        return (SpanLevel("words", _spans(words.spans, scores_of_words, of_words)),)
    firsts = np.unique(words.of_pieces, return_index=True)[1]
    ends = np.cumsum(encoded.lengths)
    sentences = np.stack([encoded.spans[ends - encoded.lengths, 0], encoded.spans[ends - 1, 1]], axis=1)
    return (
        SpanLevel("sentences", _spans(sentences, scores.sentences, rounds[1])),
        SpanLevel("words", _spans(words.spans, scores_of_words, of_words, parents=sentence_of(encoded)[firsts])),
    )


def _spans(places: Integers, scores: Floats, rounds: Rounds, parents: Integers | None = None) -> tuple[Span, ...]:
    by_span = [tuple(map(tuple, span)) for span in np.stack(rounds, axis=1).tolist()]
    sentences = [None] * len(by_span) if parents is None else parents.tolist()
    return tuple(
        Span(start, end, weights=of_span[-1], score=score, parent=sentence, rounds=of_span if len(rounds) > 1 else ())
        for (start, end), score, sentence, of_span in zip(
            places.tolist(), scores.tolist(), sentences, by_span, strict=True
        )
    )


def _name(subject: Subject) -> str:
    """The registered name of the last aggregator."""
    layer = type(subject.levels[-1].aggregator)
    return next((name for name in AGGREGATORS.names() if AGGREGATORS[name] is layer), layer.__name__)
