"""What a capsule makes of what it received: the squash, or a direction at a learned length; and their slopes."""

import math

import torch
from torch import Tensor

from routepool.layers.aggregation.masking import may_branch, wide_type

SHORT = 1e-3  # of what a capsule receives: below it there is no direction to speak of
NEXT_TO_NOTHING = 1e-15  # below it the inverse of a norm, and of its square, would leave float32


def squash(sums: Tensor, norm: Tensor | None = None) -> Tensor:
    """Shorten a vector to a length below 1, keeping its direction: |s|^2 / (1 + |s|^2) * s / |s| (eq. 14).

    Value and gradient are finite from 0 on. Who has the norm already (`norm_of`) may give it.

    >>> round(squash(torch.tensor([3.0, 4.0])).norm().item(), 4)  # 25 / 26
    0.9615
    """
    norm = norm_of(sums) if norm is None else norm
    return sums * _gain(norm, _inverse(norm)).to(sums.dtype)


def squash_backward(sums: Tensor, slope: Tensor, norm: Tensor | None = None) -> Tensor:
    """The gradient for `sums`, given that for their squash.

    With v = g(n) s: dv = g ds + g'(n) / n (s . ds) s, which is symmetric in ds, and g'(n) n = g (1/n - n) g.
    """
    norm = norm_of(sums) if norm is None else norm
    inverse = _inverse(norm)
    gain = _gain(norm, inverse)
    along = (sums * slope).sum(-1, keepdim=True) * inverse  # one factor after the other: each product stays in range
    bend = along * (gain * (inverse - norm) * gain) * inverse
    return (slope * gain).addcmul_(bend, sums)


def capsules_of(sums: Tensor, norm: Tensor | None = None, length: Tensor | None = None) -> Tensor:
    """(..., M, C) -> the same: squashed or, where capsules have a length (M, 1) of their own, at that length."""
    if length is None:
        return squash(sums, norm)
    return length * direction(sums, norm_of(sums) if norm is None else norm)


def capsules_backward(sums: Tensor, slope: Tensor, norm: Tensor | None = None, length: Tensor | None = None) -> Tensor:
    """The gradient for `sums`, given that for the capsules: of a direction, only what is across it is left."""
    if length is None:
        return squash_backward(sums, slope, norm)
    norm = norm_of(sums) if norm is None else norm
    along = direction(sums, norm)
    lost = (slope * along).sum(-1, keepdim=True) * along
    return (slope - lost.masked_fill(norm < SHORT, 0)) * (length / norm.clamp(min=SHORT))


def direction(sums: Tensor, norm: Tensor) -> Tensor:
    """A vector of length 1; what is short stays so, in proportion, and its slope finite: nothing has no direction."""
    return sums / norm.clamp(min=SHORT).to(sums.dtype)


def norm_of(sums: Tensor) -> Tensor:
    """(..., C) -> (..., 1), from float64 where a square leaves float32."""
    dtype = wide_type(sums)
    norm = _norm(sums, dtype)
    if may_branch(norm) and math.isfinite(norm.detach().sum().item()):
        return norm
    return _norm(sums, torch.float64).to(dtype)


def _norm(sums: Tensor, dtype: torch.dtype) -> Tensor:
    """With derivatives of 0 at 0: torch's second one is NaN there, and stays so behind a mask."""
    norm: Tensor = torch.linalg.vector_norm(sums, dim=-1, keepdim=True, dtype=dtype)
    if not torch.is_grad_enabled():
        return norm
    nothing = norm.detach() == 0
    norm = torch.linalg.vector_norm(sums.masked_fill(nothing, 1), dim=-1, keepdim=True, dtype=dtype)
    return norm.masked_fill(nothing, 0)


def _inverse(norm: Tensor) -> Tensor:
    return norm.clamp(min=NEXT_TO_NOTHING).reciprocal()


def _gain(norm: Tensor, inverse: Tensor) -> Tensor:
    """The g(n) = n / (1 + n^2) of a squash, also where n^2 is too large for its type."""
    return (norm + inverse).reciprocal()
