"""Algorithm 1: in each round tokens send messages to capsules by a coupling, and agree with what they made there."""

# B batch  T tokens  D features  M capsules  C capsule size

# A round, in the paper's letters (i a token, j a capsule) and in the names of this file:
#
#   m_ij  = f(h_i, theta_j)                  messages, linear or tanh; the linear ones are never built
#   c_ij  = softmax_j(b_ij)                  coupling, eq. 15; in reverse routing softmax_i, eq. 18
#   s_j   = sum_i c_ij m_ij                  sums, eq. 12 and 13
#   v_j   = |s|^2 / (1 + |s|^2) * s / |s|    capsules, eq. 14; or a direction at a learned length
#   b_ij += m_ij . v_j                       logits of the next round, eq. 16

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from routepool.layers.contract import masked_softmax, may_branch

CAPSULES, TOKENS = 1, 2  # axes of a coupling while it is computed, (B, M, T)
SHORT = 1e-3  # of what a capsule receives: below it there is no direction to speak of
NEXT_TO_NOTHING = 1e-15  # below it the inverse of a norm, and of its square, would leave float32


class Round(NamedTuple):
    """What one round of routing computed."""

    coupling: Tensor  # (B, T, M), 0 on padding
    logits: Tensor  # (B, T, M), the b of eq. 16 that this coupling is the softmax of
    sums: Tensor  # (B, M, C), what the capsules received
    norm: Tensor  # (B, M, 1), of the sums
    capsules: Tensor  # (B, M, C)


class Messages(Protocol):
    """What a round of routing asks of the messages."""

    weight: Tensor  # (M, C, D)

    def sum(self, coupling: Tensor) -> Tensor:
        """(B, M or 1, T) -> (B, M, C): what each capsule receives."""

    def agreement(self, capsules: Tensor) -> Tensor:
        """(B, M, C) -> (B, M, T): what is added to the logits."""


class LinearMessages:
    """f(h) = W h + b, never built: W_j and b_j are moved out of the sums over tokens.

    s_j = W_j (sum_i c_ij h_i) + (sum_i c_ij) b_j, and m_ij . v_j = (W_j' v_j) . h_i + b_j . v_j
    """

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.states, self.weight, self.bias = states, weight, bias

    def sum(self, coupling: Tensor) -> Tensor:
        linear = per_capsule(self.pooled(coupling), self.weight.mT)
        return torch.addcmul(linear, coupling.sum(-1, keepdim=True), self.bias)

    def agreement(self, capsules: Tensor) -> Tensor:
        # States first: the product is read and written token by token, as they lie in memory.
        return torch.bmm(self.states, self.query(capsules).mT).mT + (capsules * self.bias).sum(-1, keepdim=True)

    def pooled(self, coupling: Tensor) -> Tensor:
        """(B, M or 1, D): what W_j is applied to in a sum."""
        return torch.bmm(coupling, self.states)

    def query(self, capsules: Tensor) -> Tensor:
        """(B, M, D): what a state is compared with in an agreement."""
        return per_capsule(capsules, self.weight)


class TanhMessages:
    """f(h) = tanh(W h + b), kept as (M, B, T, C) so that every use of them is a plain batched product."""

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.weight = weight
        tokens = states.flatten(0, 1).expand(len(weight), -1, -1)
        linear = torch.baddbmm(bias.unsqueeze(1), tokens, weight.mT)
        self.messages = linear.tanh().reshape(len(weight), *states.shape[:2], weight.shape[1])

    def sum(self, coupling: Tensor) -> Tensor:
        by_capsule = coupling.transpose(0, 1).unsqueeze(2)  # (M or 1, B, 1, T)
        return torch.matmul(by_capsule, self.messages).squeeze(2).transpose(0, 1)

    def agreement(self, capsules: Tensor) -> Tensor:
        by_capsule = capsules.transpose(0, 1).unsqueeze(3)
        return torch.matmul(self.messages, by_capsule).squeeze(3).transpose(0, 1)


def per_capsule(vectors: Tensor, matrices: Tensor) -> Tensor:
    """(B, M or 1, X), (M, X, Y) -> (B, M, Y): every capsule's vectors through its own matrix.

    The result lies in memory capsule by capsule, as the next product reads it.
    """
    return torch.matmul(vectors.transpose(0, 1), matrices).transpose(0, 1)


class Algorithm(NamedTuple):
    """How the rounds go. What a forward pass went by cannot change before its backward pass."""

    axis: int  # along which a coupling sums to 1
    iterations: int
    average: bool

    def rounds(self, messages: Messages, real: Tensor, length: Tensor | None) -> list[Round]:
        """All rounds, for a mask (B, 1, T) and the learned lengths (M, 1) of the capsules, if they have any.

        The first round is the same for every capsule: its coupling and logits are (B, T, 1).
        """
        logits = real.new_zeros(real.shape, dtype=messages.weight.dtype)
        first = real.to(torch.promote_types(logits.dtype, torch.float32))
        share = first / len(messages.weight) if self.axis == CAPSULES else first / first.sum(-1, True).clamp(min=1)
        coupling = share.to(logits.dtype)
        rounds: list[Round] = []
        for _ in range(self.iterations):
            if rounds:  # here and not at the end of a round: the last one needs no update
                logits = logits + messages.agreement(rounds[-1].capsules)
                coupling = masked_softmax(logits, real, dim=self.axis)
            sums = messages.sum(coupling)
            if self.average:
                # Not below 1: a capsule that receives next to nothing must stay small, and its gradient finite.
                sums = sums / coupling.sum(-1, keepdim=True).clamp(min=1)
            norm = norm_of(sums)
            rounds.append(Round(coupling.mT, logits.mT, sums, norm, capsules_of(sums, norm, length)))
        return rounds


def capsules_of(sums: Tensor, norm: Tensor, length: Tensor | None = None) -> Tensor:
    """(..., M, C) -> the same: squashed or, where capsules have a length (M, 1) of their own, at that length."""
    return squash(sums, norm) if length is None else length * direction(sums, norm)


def squash(sums: Tensor, norm: Tensor | None = None) -> Tensor:
    """Shorten a vector to a length below 1, keeping its direction: |s|^2 / (1 + |s|^2) * s / |s| (eq. 14).

    Value and gradient are finite from 0 on. Who has the norm already (`norm_of`) may give it.

    >>> round(squash(torch.tensor([3.0, 4.0])).norm().item(), 4)  # 25 / 26
    0.9615
    """
    return sums * squash_gain(norm_of(sums) if norm is None else norm)[0].to(sums.dtype)


def squash_gain(norm: Tensor) -> tuple[Tensor, Tensor]:
    """The g(n) = n / (1 + n^2) of a squash, also where n^2 is too large for its type, and 1 / n."""
    inverse = norm.clamp(min=NEXT_TO_NOTHING).reciprocal()
    return (norm + inverse).reciprocal(), inverse


def direction(sums: Tensor, norm: Tensor) -> Tensor:
    """A vector of length 1; what is short stays so, in proportion, and its slope finite: nothing has no direction."""
    return sums / norm.clamp(min=SHORT).to(sums.dtype)


def norm_of(sums: Tensor) -> Tensor:
    """(..., C) -> (..., 1), from float64 where a square leaves float32."""
    dtype = torch.promote_types(sums.dtype, torch.float32)
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
