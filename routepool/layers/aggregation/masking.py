"""Softmax, mean and max over real tokens only, written once and safe on empty rows."""

# B batch  T tokens  D features

import torch
from torch import Tensor

from routepool.layers.transforms import plain_values


def finite_padding(states: Tensor, mask: Tensor) -> Tensor:
    """States whose padding is finite, so that a weight of 0 silences it: 0 x NaN is NaN, 0 x 1e30 is 0.

    The states themselves come back, uncopied, where their padding is finite already. The sum of the padding tells: it
    reads that alone, where a copy would read and write everything.

    Args:
        states: (B, T, D), anything at all where the mask is False.
        mask: (B, T), True at real tokens.
    """
    if may_branch(states) and states.detach()[~mask].sum().isfinite():
        return states
    return states.masked_fill(~mask.unsqueeze(-1), 0)


def may_branch(on: Tensor) -> bool:
    """A compiled graph cannot branch on values, and on an accelerator the question would cost a synchronisation."""
    return on.device.type == "cpu" and plain_values()


def masked_softmax(logits: Tensor, mask: Tensor, dim: int) -> Tensor:
    """Softmax over the entries where mask is True; all zeros, with a zero gradient, where there are none.

    Args:
        logits: any shape; half precisions are normalised in float32.
        mask: bool, broadcastable to logits.
        dim: the axis along which the result sums to 1.
    """
    # A row of -inf only has a NaN softmax and, even behind a `where`, a NaN gradient: an empty row is made level first.
    padding = ~mask
    if mask.shape[dim] == 1:  # all of a row or nothing
        shut = logits.masked_fill(padding, 0)
    else:
        shut = logits.masked_fill(padding, -torch.inf).masked_fill(padding.all(dim, keepdim=True), 0)
    return shut.softmax(dim, dtype=wide_type(logits)).to(logits.dtype).masked_fill(padding, 0)


def mean_weights(states: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D), (B, T) -> (B, T): 1 / the number of real tokens, and 0 on padding."""
    number = mask.sum(-1, keepdim=True).clamp(min=1)
    return (mask.to(wide_type(states)) / number).to(states.dtype)


def masked_max(states: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D) -> (B, D): the largest value of each feature over the real tokens, 0 for an empty row."""
    largest = states.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(1)
    return largest.masked_fill(~mask.any(-1, keepdim=True), 0)


def wide_type(tensor: Tensor) -> torch.dtype:
    """The type to normalise in: float32 for half precisions, else the tensor's own."""
    return torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else tensor.dtype
