"""Independent of the library: the paper's algorithm written as loops over tokens and capsules."""

import torch
from torch import Tensor


def route_by_the_paper(
    states: Tensor, lengths: list[int], weight: Tensor, bias: Tensor, *, iterations: int, reverse: bool, tanh: bool
) -> tuple[Tensor, Tensor]:
    """Algorithm 1 for weight (M, C, D) and bias (M, C): capsules (B, M, C) and coupling (B, T, M)."""
    capsules_of_all, coupling_of_all = [], []
    for text, length in zip(states, lengths, strict=True):
        capsules, coupling = _route_one(text[:length], weight, bias, iterations, reverse, tanh)
        capsules_of_all.append(capsules)
        coupling_of_all.append(torch.cat([coupling, coupling.new_zeros(len(text) - length, len(weight))]))
    return torch.stack(capsules_of_all), torch.stack(coupling_of_all)


def _route_one(
    text: Tensor, weight: Tensor, bias: Tensor, iterations: int, reverse: bool, tanh: bool
) -> tuple[Tensor, Tensor]:
    messages = [[_message(token, weight[j], bias[j], tanh) for j in range(len(weight))] for token in text]
    logits = [[text.new_zeros(()) for _ in weight] for _ in text]
    for _ in range(iterations):
        table = torch.stack([torch.stack(row) for row in logits])
        exponentials = (table - table.max()).exp()
        coupling = exponentials / exponentials.sum(0 if reverse else 1, keepdim=True)
        capsules = []
        for j in range(len(weight)):
            total = sum((coupling[i, j] * messages[i][j] for i in range(len(text))), torch.zeros_like(bias[j]))
            square = (total * total).sum()
            capsules.append(square / (1 + square) * total / square.sqrt())
        for i in range(len(text)):
            for j in range(len(weight)):
                logits[i][j] = logits[i][j] + capsules[j] @ messages[i][j]
    return torch.stack(capsules), coupling


def _message(token: Tensor, weight: Tensor, bias: Tensor, tanh: bool) -> Tensor:
    linear = weight @ token + bias
    return linear.tanh() if tanh else linear
