"""The squash of capsules, and its slope."""

import torch
from torch import Tensor


def squash(sums: Tensor) -> Tensor:
    """Shorten a vector to a length below 1, keeping its direction: |s|^2 / (1 + |s|^2) * s / |s| (eq. 14).

    The norm is taken in float64, where the square of 1e20 is still a number: value and gradient are finite from 0 on.

    >>> round(squash(torch.tensor([3.0, 4.0])).norm().item(), 4)  # 25 / 26
    0.9615
    """
    norm = _norm(sums)
    return sums * (norm / (1 + norm * norm)).to(sums.dtype)


def squash_backward(sums: Tensor, slope: Tensor) -> Tensor:
    """The gradient for `sums`, given that for their squash.

    With g(n) = n / (1 + n^2), v = g s and dv = g ds + g'(n) / n (s . ds) s, which is symmetric in ds.
    """
    norm = _norm(sums)
    gain = norm / (1 + norm * norm)
    bend = (1 - norm * norm) / (1 + norm * norm) ** 2 / norm.masked_fill(norm == 0, 1)
    # Two halves of the bend, so that neither factor leaves the range of float32 where norm^2 would.
    bent = sums * bend.abs().sqrt().to(sums.dtype)
    along = (bent * slope).sum(-1, keepdim=True) * bend.sign().to(sums.dtype)
    return torch.addcmul(slope * gain.to(sums.dtype), along, bent)


def _norm(sums: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(sums, dim=-1, keepdim=True, dtype=torch.float64)
    return norm
