"""The messages f(h, theta) of all tokens to all capsules, as routing uses them: built, or never built."""

# B batch  T tokens  D features  M capsules  C capsule size

from typing import Protocol

import torch
from torch import Tensor


class Messages(Protocol):
    """What a round of routing asks of the messages."""

    weight: Tensor  # (M, C, D)

    def sum(self, coupling: Tensor) -> Tensor:
        """(B, M or 1, T) -> (B, M, C): what each capsule receives, eq. 12 and 13."""

    def agreement(self, capsules: Tensor) -> Tensor:
        """(B, M, C) -> (B, M, T): the second term of eq. 16."""


class LinearMessages:
    """f(h) = W h + b, never built: W_j and b_j are moved out of the sums over tokens."""

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
