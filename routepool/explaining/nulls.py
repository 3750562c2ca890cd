"""Is routing dynamic? The same model with other numbers of iterations, and with couplings that know less."""

# N rows  T tokens  M capsules

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from routepool.arrays import Floats32, Integers
from routepool.batching import Batch
from routepool.explaining.couplings import Couplings, means_by_word
from routepool.explaining.subject import Subject
from routepool.scoring.torch_backend import logits_of
from routepool.text import Encoded

ITERATIONS = range(1, 7)
Recoupling = Callable[[Tensor, Tensor, Tensor], Tensor]  # ids (N, T), mask (N, T), coupling (N, T, M) -> coupling


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
