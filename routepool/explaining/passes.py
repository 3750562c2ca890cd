"""A model watched and changed while it reads: what each level saw, and what if it had seen something else.

Hooks, so that whatever a level does is watched and not written a second time. The dense path is taken: one call of
each level, its rows in the order of the batch.
"""

# B texts  S sentences  T tokens  D features  M parts of a vector  N rows of a level (B, or B x S)

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from routepool.batching import Batch, evaluation_batches, length_of
from routepool.layers import Aggregator
from routepool.model import Classifier, Level
from routepool.scoring.torch_backend import depth_of
from routepool.text import Encoded

BATCH, TOKENS = 64, 2**13  # texts and words, padding included, of a watched batch: gradients are kept for all of it

Change = Callable[[Tensor], Tensor]


class LevelPass(NamedTuple):
    """What the aggregator of one level saw and made."""

    aggregator: Aggregator
    states: Tensor  # (N, T, D)
    mask: Tensor  # (N, T)
    vectors: Tensor  # (N, out_features)
    weights: Tensor  # (N, T, M)


class Pass(NamedTuple):
    """A model's way from ids to logits."""

    logits: Tensor  # (B, K)
    embedded: Tensor  # (N, T, D), the word vectors; empty for a pre-trained encoder, which has them inside
    levels: tuple[LevelPass, ...]  # words first


def parts_of(level: LevelPass) -> Tensor:
    """(N, M, C): a level's vectors cut into the parts that its weights belong to."""
    return level.vectors.reshape(len(level.vectors), level.aggregator.parts.number, -1)


def slope_of(aggregator: Aggregator, sums: Tensor, slope: Tensor) -> Tensor:
    """The gradient for what the aggregator's parts received (N, M, C), given that for its vector (N, M C)."""
    sums = sums.detach().requires_grad_()
    with torch.enable_grad():
        vector = aggregator.vector_of(sums)
    return torch.autograd.grad(vector, sums, slope)[0]


def levels_of(model: Classifier) -> list[Level]:
    """The levels of a model, words first."""
    return list(cast("Iterable[Level]", model.levels))


def batches(
    model: Classifier, encoded: Sequence[Encoded], *, batch_size: int = BATCH, tokens: int = TOKENS
) -> Iterator[tuple[Batch, Tensor, Tensor]]:
    """Batches of near-equal length with their ids and mask on the model's device."""
    depth, device = depth_of(model), next(model.parameters()).device
    for rows in evaluation_batches([length_of(one, depth) for one in encoded], batch_size=batch_size, tokens=tokens):
        batch = Batch.of(encoded, rows, depth)
        yield batch, torch.from_numpy(batch.ids).to(device), torch.from_numpy(batch.mask).to(device)


def watch(model: Classifier, ids: Tensor, mask: Tensor, *, embedded: Change | None = None) -> Pass:
    """Read a batch as a model that does not train, and keep what its levels saw.

    Args:
        model: the classifier.
        ids: (B, T) or (B, S, T).
        mask: of the same shape.
        embedded: makes other word vectors (N, T, D) of those looked up.
    """
    kept: list[Tensor] = []
    seen: list[LevelPass] = []

    def look_up(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        # A leaf of the graph: gradients end here and not in the table.
        kept.append((embedded(output) if embedded else output).detach().requires_grad_(torch.is_grad_enabled()))
        return kept[-1]

    def aggregate(layer: nn.Module, inputs: Any, output: Any) -> None:
        seen.append(LevelPass(cast(Aggregator, layer), *inputs, *output))

    with reading(model), ExitStack() as hooks:
        for level in levels_of(model):
            hooks.enter_context(_removed(level.aggregator.register_forward_hook(aggregate)))
            if level.embedding is not None:
                hooks.enter_context(_removed(level.embedding.register_forward_hook(look_up)))
        logits = model(ids, mask, grouped=False)
    return Pass(logits, kept[0] if kept else logits.new_empty(0), tuple(seen))


@contextmanager
def changed_mask(level: Level, change: Change) -> Iterator[None]:
    """The level's aggregator, and it alone, sees another mask (N, T)."""

    def hook(_: nn.Module, inputs: Any) -> tuple[Tensor, Tensor]:
        states, mask = inputs
        return states, change(mask)

    with _removed(level.aggregator.register_forward_pre_hook(hook)):
        yield


@contextmanager
def changed_output(level: Level, change: Callable[[Aggregator, Tensor, Tensor, Tensor], Tensor]) -> Iterator[None]:
    """The level's vectors are others: made of its aggregator, the states, the mask and the weights."""

    def hook(layer: nn.Module, inputs: Any, output: Any) -> tuple[Tensor, Tensor]:
        states, mask = inputs
        return change(cast(Aggregator, layer), states, mask, output[1]), output[1]

    with _removed(level.aggregator.register_forward_hook(hook)):
        yield


def upwards(model: Classifier, place: int, states: Tensor, mask: Tensor) -> Tensor:
    """Logits of what the levels below `place` made: vectors (B, S, D) with their mask, or (B, D) for the head alone."""
    with reading(model):
        return model.upwards(place, states, mask, grouped=False).logits


@contextmanager
def reading(model: Classifier) -> Iterator[None]:
    """A model that does not train, as it was afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextmanager
def _removed(handle: Any) -> Iterator[None]:
    try:
        yield
    finally:
        handle.remove()
