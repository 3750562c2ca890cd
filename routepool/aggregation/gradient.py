"""The gradient of linear routing by hand: added up over the rounds where autograd builds one for each."""

# B batch  T tokens  D features  M capsules  C capsule size

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from routepool.aggregation.messages import LinearMessages, Messages
from routepool.aggregation.squashing import squash_backward


class Round(NamedTuple):
    """What one round of routing computed, capsules first."""

    coupling: Tensor  # (B, M, T), in the first round (B, 1, T)
    logits: Tensor  # likewise
    sums: Tensor  # (B, M, C), what the capsules received
    capsules: Tensor  # (B, M, C), squashed


class Routing(Protocol):
    """What runs the rounds."""

    axis: int
    average: bool

    def rounds(self, messages: Messages, real: Tensor) -> list[Round]:
        """Algorithm 1 for a mask (B, 1, T)."""


class LinearRoutingGradient(torch.autograd.Function):
    """Routing with linear messages, and its gradient through all iterations.

    The numbers are autograd's (tests/test_routing.py). States (B, T, D) and weights (M, C, D) are used 2 x iterations
    - 1 times: the gradient of the states is one product, that of the weights is added up in place.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, real: Tensor, routing: Routing
    ) -> tuple[Tensor, Tensor]:
        """Capsules (B, M, C) and coupling (B, M, T)."""
        ctx.messages = LinearMessages(states.detach(), weight.detach(), bias.detach())
        ctx.rounds = routing.rounds(ctx.messages, real)
        ctx.routing = routing
        ctx.save_for_backward(states, weight, bias, real)
        last: Round = ctx.rounds[-1]
        return last.capsules.clone(), last.coupling.expand(-1, len(weight), -1).clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_capsules: Tensor, of_coupling: Tensor) -> tuple[Tensor | None, ...]:
        """From the last round to the first; the product for the states at the end."""
        states, weight, bias, real = ctx.saved_tensors
        of_states, of_weight = _SumOfProducts(), torch.zeros_like(weight)
        of_bias, of_logits = torch.zeros_like(bias), torch.zeros_like(of_coupling)
        for number in reversed(range(len(ctx.rounds))):
            this: Round = ctx.rounds[number]
            # What came in is pooled x weight + total x bias.
            total = this.coupling.sum(-1, keepdim=True)
            incoming, of_total = _through_average(this.sums, total, of_capsules, average=ctx.routing.average)
            of_pooled = torch.einsum("bmc,mcd->bmd", incoming, weight)
            of_weight.baddbmm_(*_by_capsule(incoming, ctx.messages.pooled[number].expand_as(of_pooled)))
            of_states.add(this.coupling, of_pooled if number else of_pooled.sum(1, keepdim=True))
            of_bias += (incoming * total).sum(0)
            if number == 0:  # its coupling is a constant
                break
            of_total = of_total + (incoming * bias).sum(-1, keepdim=True)
            of_coupling = (of_coupling + torch.bmm(states, of_pooled.mT).mT + of_total).masked_fill(~real, 0)
            of_logits = of_logits + _through_softmax(this.coupling, of_coupling, ctx.routing.axis)
            # The logits grew by query . state + capsule . bias, with query = capsule x weight of the round before.
            before: Round = ctx.rounds[number - 1]
            of_query, of_constant = torch.bmm(of_logits, states), of_logits.sum(-1, keepdim=True)
            of_states.add(of_logits, ctx.messages.queries[number - 1])
            of_weight.baddbmm_(*_by_capsule(before.capsules, of_query))
            of_bias += (before.capsules * of_constant).sum(0)
            of_capsules = torch.einsum("bmd,mcd->bmc", of_query, weight) + of_constant * bias
            of_coupling = torch.zeros_like(of_coupling)
        wanted = ctx.needs_input_grad[0]
        return of_states.value() if wanted else None, of_weight, of_bias, None, None


class _SumOfProducts:
    """Held as its factors until all are known, so that (B, T, D) is written once."""

    def __init__(self) -> None:
        self.left: list[Tensor] = []
        self.right: list[Tensor] = []

    def add(self, left: Tensor, right: Tensor) -> None:
        """(B, M, T) and (B, M, D)."""
        self.left.append(left)
        self.right.append(right)

    def value(self) -> Tensor:
        """(B, T, D)."""
        return torch.bmm(torch.cat(self.left, dim=1).mT, torch.cat(self.right, dim=1))


def _by_capsule(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """(B, M, C) and (B, M, D) -> (M, C, B) and (M, B, D): factors of the weights' gradient, not copied."""
    return left.permute(1, 2, 0), right.transpose(0, 1)


def _through_average(sums: Tensor, total: Tensor, of_capsules: Tensor, *, average: bool) -> tuple[Tensor, Tensor]:
    """Gradients for what a capsule received before it was divided, and for its total coupling."""
    of_sums = squash_backward(sums, of_capsules)
    if not average:
        return of_sums, torch.zeros_like(total)
    divisor = total.clamp(min=1)
    of_divisor = -(of_sums * sums).sum(-1, keepdim=True) / divisor
    return of_sums / divisor, of_divisor * (total >= 1)


def _through_softmax(coupling: Tensor, of_coupling: Tensor, axis: int) -> Tensor:
    weighted = coupling * of_coupling
    return weighted - coupling * weighted.sum(axis, keepdim=True)
