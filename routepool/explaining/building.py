"""Texts -> explanations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from routepool.batching import Batch
from routepool.errors import InputError
from routepool.explaining.explanation import Explanation, Row, Unit, UnitLevel
from routepool.explaining.methods import METHODS, Importance, importance, usual_method
from routepool.explaining.passes import batches, levels_of, watch
from routepool.explaining.removal import sentence_of
from routepool.explaining.subject import Subject
from routepool.scoring.probabilities import check_finite
from routepool.settings import AGGREGATORS
from routepool.text import Encoded, Words, words_of

Floats = NDArray[np.floating[Any]]
Rounds = list[Floats]  # (units, M) of each round, the last one being the weights


def explain(
    subject: Subject,
    texts: Sequence[str],
    *,
    method: str | None = None,
    label: str | None = None,
    iterations: bool = False,
) -> list[Explanation]:
    """What the model says of each text, which unit went where, and how much each mattered.

    Args:
        subject: the model.
        texts: raw.
        method: a name of `METHODS`; None for the usual one.
        label: whose evidence is scored; None for the one the model finds likeliest in each text.
        iterations: keep the weights of every round of routing.

    >>> from routepool.settings import ModelConfig
    >>> from routepool.model import Classifier
    >>> from routepool.text import Tokenizer
    >>> tokenizer, small = Tokenizer.build(["a good film"]), ModelConfig(embedding_size=4, hidden_size=4)
    >>> model = Classifier.build(small, vocabulary_size=len(tokenizer.words), classes=2)
    >>> (shown,) = explain(Subject(model=model, tokenizer=tokenizer, labels=("neg", "pos")), ["A good film"])
    >>> [shown.of(word) for word in shown.words], shown.capsules, shown.method
    (['A', 'good', 'film'], 5, 'integrated-gradients')
    """
    method = method or usual_method(subject)
    METHODS[method]  # an unknown name is refused before anything is computed
    layers = [level.aggregator for level in levels_of(subject.model)]
    if iterations and layers[0].iterations == 1:
        raise InputError(f"there are no rounds to show: this model aggregates by {_name(subject)!r}, in a single one")
    encoded = subject.encode(texts)
    logits, rounds = _read(subject, encoded, iterations=iterations)
    shares = subject.probabilities(logits)
    asked = None if label is None else subject.place(label)
    targets = shares.argmax(1) if asked is None else np.full(len(texts), asked)
    scores = importance(subject, encoded, targets.astype(np.int64), method=method)
    check_finite(np.array([[each.words.sum(), each.sentences.sum()] for each in scores]).reshape(-1, 2))
    return [
        Explanation(
            text=text,
            predicted=labels,
            probabilities=dict(zip(subject.labels, of_text.tolist(), strict=True)),
            label=subject.labels[target],
            method=method,
            aggregator=_name(subject),
            levels=_levels(one, found, of_levels, iterations=iterations),
            unread=one.cut_words,
            known=subject.tokenizer.reading(one).known,
        )
        for text, one, labels, of_text, target, found, of_levels in zip(
            texts, encoded, subject.predicted(shares), shares, targets.tolist(), scores, rounds, strict=True
        )
    ]


def _read(
    subject: Subject, encoded: Sequence[Encoded], *, iterations: bool
) -> tuple[NDArray[np.float64], list[list[Rounds]]]:
    """Logits (B, K), and for each text the weights of its levels, words first."""
    logits = np.empty((len(encoded), len(subject.labels)))
    rounds: list[list[Rounds]] = [[] for _ in encoded]
    with torch.no_grad():
        for batch, ids, mask in batches(subject.model, encoded):
            seen = watch(subject.model, ids, mask)
            logits[batch.rows] = seen.logits.double().numpy(force=True)
            for place, level in enumerate(seen.levels):
                of_level = level.aggregator.rounds(level.states, level.mask) if iterations else [level.weights]
                _keep(batch, place, of_level, rounds)
    return logits, rounds


def _keep(batch: Batch, place: int, weights: list[Tensor], rounds: list[list[Rounds]]) -> None:
    mask = np.asarray(batch.mask if place == 0 else batch.mask.any(-1))
    arrays = [one.double().numpy(force=True).reshape(*mask.shape, -1) for one in weights]
    for row, text in enumerate(batch.rows.tolist()):
        rounds[text].append([array[row][mask[row]] for array in arrays])


def _levels(encoded: Encoded, scores: Importance, rounds: list[Rounds], *, iterations: bool) -> tuple[UnitLevel, ...]:
    words = words_of(encoded)
    of_words = [_by_word(words, weights) for weights in rounds[0]]
    scores_of_words = words.add_up(scores.words)
    if len(rounds) == 1:
        return (UnitLevel("words", _units(words.spans, scores_of_words, of_words, iterations=iterations)),)
    firsts = np.unique(words.of_pieces, return_index=True)[1]
    sentence = sentence_of(encoded)[firsts]
    ends = np.cumsum(encoded.lengths)
    spans = np.stack([encoded.spans[ends - encoded.lengths, 0], encoded.spans[ends - 1, 1]], axis=1)
    return (
        UnitLevel("sentences", _units(spans, scores.sentences, rounds[1], iterations=iterations)),
        UnitLevel("words", _units(words.spans, scores_of_words, of_words, parents=sentence, iterations=iterations)),
    )


def _by_word(words: Words, weights: Floats) -> Floats:
    """Weights of pieces -> of words: their mean where a piece's sum to 1 over the capsules, else their sum."""
    total = words.add_up(weights)
    if weights.shape[1] == 1 or not np.allclose(weights.sum(1), 1):
        return total
    return total / np.bincount(words.of_pieces)[:, None]


def _units(
    spans: NDArray[np.integer[Any]],
    scores: Floats,
    rounds: Rounds,
    *,
    iterations: bool,
    parents: NDArray[np.int64] | None = None,
) -> tuple[Unit, ...]:
    by_unit: list[tuple[Row, ...]] = [tuple(map(tuple, unit)) for unit in np.stack(rounds, axis=1).tolist()]
    return tuple(
        Unit(
            start,
            end,
            weights=of_unit[-1],
            score=score,
            parent=None if parents is None else int(parents[place]),
            rounds=of_unit if iterations else (),
        )
        for place, ((start, end), score, of_unit) in enumerate(
            zip(spans.tolist(), scores.tolist(), by_unit, strict=True)
        )
    )


def _name(subject: Subject) -> str:
    """The registered name of the last aggregator."""
    layer = type(levels_of(subject.model)[-1].aggregator)
    return next((name for name in AGGREGATORS.names() if AGGREGATORS[name] is layer), layer.__name__)
