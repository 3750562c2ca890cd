"""The couplings of all words of a set: what each capsule takes, and whether routing is dynamic.

It is not where the word and its place alone predict the coupling, or where a model with other numbers of iterations, or
with couplings that know less, says the same.
"""

# W words of all texts  N rows  T tokens  M capsules

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from routepool.arrays import Floats, Floats32, Integers
from routepool.batching import Batch
from routepool.explaining.subject import Subject
from routepool.explaining.texts import read_weights
from routepool.scoring.torch_backend import logits_of
from routepool.text import Encoded

LEAST_COUNT = 5  # occurrences of a word or phrase that is listed
LAST_POSITION = 50  # places in a sentence from here on are one
_ROUNDS = 10  # of fitting word and place together
ITERATIONS = range(1, 7)
Recoupling = Callable[[Tensor, Tensor, Tensor], Tensor]  # ids (N, T), mask (N, T), coupling (N, T, M) -> coupling


@dataclass(frozen=True, eq=False)
class Couplings:
    """The couplings of every word occurrence of some texts, in the order of the texts."""

    coupling: Floats  # (W, M)
    ids: Integers  # (W,) of the words in the vocabulary
    places: Integers  # (W,) in its sentence, from 0
    texts: Integers  # (W,) the text of each
    sentences: Integers  # (W,) a number for each sentence of all texts

    @classmethod
    def of(cls, subject: Subject, encoded: Sequence[Encoded]) -> "Couplings":
        """Read the texts and keep the weights of the words' level."""
        _, weights = read_weights(subject, encoded)
        lengths = [length for one in encoded for length in one.lengths.tolist()]
        return cls(
            coupling=np.concatenate([levels[0][-1] for levels in weights]),
            ids=np.concatenate([one.ids for one in encoded]).astype(np.int64),
            places=np.concatenate([np.arange(length) for length in lengths]),
            texts=np.repeat(np.arange(len(encoded)), [len(one.ids) for one in encoded]),
            sentences=np.repeat(np.arange(len(lengths)), lengths),
        )


@dataclass(frozen=True)
class Taken:
    """A word or phrase that a capsule takes more of than of others."""

    words: str
    coupling: float  # mean over its occurrences
    times_share: float  # against the capsule's share of all words
    count: int


def favourites(
    couplings: Couplings, names: Sequence[str], *, number: int = 12
) -> list[tuple[list[Taken], list[Taken]]]:
    """For each capsule the words, and the phrases of two words, whose mean coupling stands out most from its share."""
    share = couplings.coupling.mean(0)
    single: dict[str, list[int]] = defaultdict(list)
    for place, word in enumerate(couplings.ids.tolist()):
        single[names[word]].append(place)
    double: dict[str, list[int]] = defaultdict(list)
    for place in np.flatnonzero(couplings.sentences[1:] == couplings.sentences[:-1]).tolist():
        double[f"{names[couplings.ids[place]]} {names[couplings.ids[place + 1]]}"].append(place)
    pairs = (couplings.coupling[1:] + couplings.coupling[:-1]) / 2
    return [
        (
            _most(single, couplings.coupling[:, capsule], share[capsule], number),
            _most(double, pairs[:, capsule], share[capsule], number),
        )
        for capsule in range(len(share))
    ]


def _most(places: dict[str, list[int]], coupling: Floats, share: float, number: int) -> list[Taken]:
    found = [
        Taken(name, mean := float(coupling[where].mean()), mean / share if share > 0 else 0.0, len(where))
        for name, where in places.items()
        if len(where) >= LEAST_COUNT
    ]
    return sorted(found, key=lambda one: (-one.coupling, one.words))[:number]


@dataclass(frozen=True)
class Variance:
    """Shares of the coupling's variance that are predicted on texts not used to learn them; the rest is context."""

    by_word: float
    by_position: float
    by_both: float
    context: float


def variance_of(couplings: Couplings) -> Variance:
    """How much of a coupling the word and its place explain: means of one half of the texts predict the other half.

    Each mean counts one more occurrence, with the capsule's own mean, so that a word seen once is not trusted fully.
    """
    residual: dict[str, float] = dict.fromkeys(("none", "word", "position", "both"), 0.0)
    places = np.minimum(couplings.places, LAST_POSITION)
    for here in (couplings.texts % 2 == 0, couplings.texts % 2 == 1):
        if not here.any() or here.all():
            continue
        learn = ~here
        middle = couplings.coupling[learn].mean(0)
        known, wanted = couplings.coupling[learn] - middle, couplings.coupling[here] - middle
        residual["none"] += float((wanted**2).sum())
        predicted = {
            "word": _predicted(known, [couplings.ids[learn]], [couplings.ids[here]]),
            "position": _predicted(known, [places[learn]], [places[here]]),
            "both": _predicted(known, [couplings.ids[learn], places[learn]], [couplings.ids[here], places[here]]),
        }
        for name, values in predicted.items():
            residual[name] += float(((wanted - values) ** 2).sum())
    total = residual["none"] or 1.0
    word, position, both = (max(0.0, 1 - residual[name] / total) for name in ("word", "position", "both"))
    return Variance(word, position, both, 1 - max(word, position, both))


def means_by_word(couplings: Couplings, vocabulary: int, half: int) -> Floats:
    """(V, M): each word's mean coupling in the texts of the other half; words not in there have the capsules' share."""
    learn = couplings.texts % 2 != half
    learn = learn if learn.any() else np.ones(len(couplings.texts), dtype=bool)
    middle = couplings.coupling[learn].mean(0)
    means: Floats = middle + _group_means(couplings.coupling[learn] - middle, couplings.ids[learn], vocabulary)
    return means


def _predicted(known: Floats, keys: list[Integers], wanted: list[Integers]) -> Floats:
    """Additive means over the groups of each key, fitted in turn."""
    sizes = [int(max(one.max(), other.max())) + 1 for one, other in zip(keys, wanted, strict=True)]
    effects: list[Floats] = [np.zeros((size, known.shape[1])) for size in sizes]
    for _ in range(_ROUNDS if len(keys) > 1 else 1):
        for place, key in enumerate(keys):
            others = sum(
                (effects[other][keys[other]] for other in range(len(keys)) if other != place), np.zeros_like(known)
            )
            effects[place] = _group_means(known - others, key, sizes[place])
    total: Floats = sum(
        (effect[key] for effect, key in zip(effects, wanted, strict=True)), np.zeros((len(wanted[0]), known.shape[1]))
    )
    return total


def _group_means(values: Floats, groups: Integers, size: int) -> Floats:
    sums = np.zeros((size, values.shape[1]))
    np.add.at(sums, groups, values)
    means: Floats = sums / (np.bincount(groups, minlength=size) + 1)[:, None]
    return means


@dataclass(frozen=True)
class Changed:
    """A model that was changed after training: its accuracy, and the share of its predictions that changed."""

    name: str
    accuracy: float
    changed: float


def by_iterations(subject: Subject, encoded: Sequence[Encoded], truth: Integers) -> list[Changed]:
    """The model with 1 to 6 iterations of routing, on every level, without training it again."""
    own = logits_of(subject.model, encoded)
    found = []
    for number in ITERATIONS:
        with _iterations(subject, number):
            found.append(_compared(f"{number}", logits_of(subject.model, encoded), own, truth))
    return found


def by_coupling(subject: Subject, encoded: Sequence[Encoded], truth: Integers, couplings: Couplings) -> list[Changed]:
    """The model with the couplings of its words, and with others that know less.

    These are, for each word, the mean of that word in the other half of the texts; those of another word of the same
    sentence; the same for all.
    """
    own = logits_of(subject.model, encoded)
    vocabulary = len(subject.tokenizer.words)
    found = [_compared("its own", own, own, truth)]
    means = [torch.from_numpy(means_by_word(couplings, vocabulary, half)).float() for half in (0, 1)]
    kinds: dict[str, Callable[[int], Recoupling]] = {
        "mean of the word": lambda half: lambda ids, mask, coupling: means[half].to(coupling)[ids],
        "of another word": shuffled,
        "the same for all": lambda half: lambda ids, mask, coupling: torch.ones_like(coupling),
    }
    for name, kind in kinds.items():
        logits = np.empty_like(own)
        for half in (0, 1):
            rows = np.arange(half, len(encoded), 2)
            logits[rows] = recoupled(subject, encoded[half::2], kind(half))
        found.append(_compared(name, logits, own, truth))
    return found


def recoupled(subject: Subject, encoded: Sequence[Encoded], change: Recoupling) -> Floats32:
    """Logits of the model with other couplings on its first level."""
    layer = subject.levels[0].aggregator
    axis = 2 if layer.parts.share_of == "word" else 1  # couplings sum to 1 over the capsules, or over the words

    def recouple(_: Batch, ids: Tensor) -> RemovableHandle:
        def hook(_: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            (states, mask), (_, coupling) = inputs, output
            other = change(ids.reshape(mask.shape), mask, coupling) * mask.unsqueeze(-1)
            other = other / other.sum(axis, keepdim=True).clamp(min=1e-12)
            return layer.vector_of(layer.terms(states, mask, other).sum(1)), coupling

        return layer.register_forward_hook(hook)

    return subject.changed_logits(encoded, recouple)


def shuffled(seed: int) -> Recoupling:
    """Each real word has the coupling of another one of its row."""
    generator = torch.Generator().manual_seed(seed)

    def change(ids: Tensor, mask: Tensor, coupling: Tensor) -> Tensor:
        # Sorted by a random key, real words among themselves, padding behind them.
        keys = torch.rand(mask.shape, generator=generator).to(mask.device)
        order = keys.masked_fill(~mask, 2).argsort(1)
        places = mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        source = torch.empty_like(order).scatter_(1, places, order)
        return coupling.gather(1, source.unsqueeze(-1).expand_as(coupling))

    return change


def _compared(name: str, logits: Floats32, own: Floats32, truth: Integers) -> Changed:
    predicted = logits.argmax(1)
    return Changed(name, float((predicted == truth).mean()), float((predicted != own.argmax(1)).mean()))


@contextmanager
def _iterations(subject: Subject, number: int) -> Iterator[None]:
    layers = [level.aggregator for level in subject.levels]
    before = [layer.iterations for layer in layers]
    try:
        for layer in layers:
            layer.iterations = number
        yield
    finally:
        for layer, own in zip(layers, before, strict=True):
            layer.iterations = own
