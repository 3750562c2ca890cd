"""The gradient of linear routing by hand: added up over the rounds where autograd builds one for each."""

# B batch  T tokens  D features  M capsules  C capsule size

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from routepool.aggregation.messages import LinearMessages, Messages, per_capsule
from routepool.aggregation.squashing import capsules_backward, direction


class Round(NamedTuple):
    """What one round of routing computed, capsules first."""

    coupling: Tensor  # (B, M, T), in the first round (B, 1, T)
    logits: Tensor  # likewise
    sums: Tensor  # (B, M, C), what the capsules received
    norm: Tensor  # (B, M, 1), of the sums
    capsules: Tensor  # (B, M, C), squashed or at their lengths


class Routing(Protocol):
    """What runs the rounds."""

    axis: int
    iterations: int
    average: bool

    def rounds(self, messages: Messages, real: Tensor) -> list[Round]:
        """Algorithm 1 for a mask (B, 1, T)."""


def _full_precision() -> torch.autocast:
    """Neither pass is for half precision, whether or not autocast is on around it."""
    return torch.autocast("cpu", enabled=False)


class LinearRoutingGradient(torch.autograd.Function):
    """Routing with linear messages, and its gradient through all iterations.

    The numbers are autograd's (tests/test_routing.py). States (B, T, D) and weights (M, C, D) are used 2 x iterations
    - 1 times: the gradient of the states is one product, that of the weights is added up in place.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, length: Tensor | None, real: Tensor, routing: Routing
    ) -> tuple[Tensor, Tensor]:
        """Capsules (B, M, C) and coupling (B, M, T)."""
        ctx.messages = _KeptMessages(states.detach(), weight.detach(), bias.detach(), routing.iterations)
        with _full_precision():
            ctx.rounds = routing.rounds(ctx.messages, real)
        ctx.routing = routing
        ctx.save_for_backward(states, weight, bias, length, real)
        ctx.set_materialize_grads(False)  # training has no gradient for the coupling
        last: Round = ctx.rounds[-1]
        return last.capsules.clone(), last.coupling.expand(-1, len(weight), -1).clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_capsules: Tensor | None, of_coupling: Tensor | None) -> tuple[Tensor | None, ...]:
        """Of states, weights, bias and lengths, given those of capsules and coupling."""
        with _full_precision():
            return _gradients(ctx, of_capsules, of_coupling)


def _gradients(ctx: Any, of_capsules: Tensor | None, of_coupling: Tensor | None) -> tuple[Tensor | None, ...]:
    """From the last round to the first; the product for the states at the end."""
    states, weight, bias, length, real = ctx.saved_tensors
    messages: _KeptMessages = ctx.messages
    left, of_weight, of_bias = [], torch.zeros_like(weight), torch.zeros_like(bias)
    of_length = None if length is None else torch.zeros_like(length)
    of_logits = torch.zeros_like(ctx.rounds[-1].coupling)
    if of_capsules is None:
        of_capsules = torch.zeros_like(ctx.rounds[-1].capsules)
    for number in reversed(range(len(ctx.rounds))):
        this: Round = ctx.rounds[number]
        # What came in is pooled x weight + total x bias.
        total = this.coupling.sum(-1, keepdim=True)
        if of_length is not None:
            of_length += (of_capsules * direction(this.sums, this.norm)).sum((0, 2)).unsqueeze(1)
        of_sums = capsules_backward(this.sums, of_capsules, this.norm, length)
        incoming, of_total = _through_average(this, total, of_sums, average=ctx.routing.average)
        of_pooled = messages.through_weight(incoming, 2 * number)
        left.append(this.coupling)
        of_weight.baddbmm_(*_by_capsule(incoming, messages.pools[number].expand(-1, len(weight), -1)))
        of_bias += (incoming * total).sum(0)
        if number == 0:  # its coupling is a constant
            break
        of_routed = torch.bmm(states, of_pooled.mT).mT + (of_total + (incoming * bias).sum(-1, keepdim=True))
        if of_coupling is not None:
            of_routed, of_coupling = of_routed + of_coupling, None
        of_logits = of_logits + _through_softmax(this.coupling, of_routed.masked_fill_(~real, 0), ctx.routing.axis)
        # The logits grew by query . state + capsule . bias, with query = capsule x weight of the round before.
        before: Round = ctx.rounds[number - 1]
        of_query, of_constant = torch.bmm(of_logits, states), of_logits.sum(-1, keepdim=True)
        left.append(of_logits)
        of_weight.baddbmm_(*_by_capsule(before.capsules, of_query))
        of_bias += (before.capsules * of_constant).sum(0)
        of_capsules = torch.addcmul(per_capsule(of_query, weight.mT), of_constant, bias)
    of_states = None
    if ctx.needs_input_grad[0]:
        of_states = torch.bmm(torch.cat(left[::-1], dim=1).mT, messages.right.transpose(0, 1))
    return of_states, of_weight, of_bias, of_length, None, None


class _KeptMessages(LinearMessages):
    """Keeps what stood on both sides of W_j.

    The gradient of the states is a sum of products (B, T, M) x (B, M, D), made in one. Its right sides, in the order of
    the forward pass, lie in one place from the start: the queries, and the gradients of what was pooled.
    """

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor, iterations: int) -> None:
        super().__init__(states, weight, bias)
        self.pools: list[Tensor] = []  # (B, M or 1, D), for each sum
        self.right = states.new_empty(1 + 2 * (iterations - 1) * len(weight), len(states), states.shape[-1])
        self.queries = 0

    def pooled(self, coupling: Tensor) -> Tensor:
        self.pools.append(super().pooled(coupling))
        return self.pools[-1]

    def query(self, capsules: Tensor) -> Tensor:
        self.queries += 1
        return self.through_weight(capsules, 2 * self.queries - 1)

    def through_weight(self, vectors: Tensor, use: int) -> Tensor:
        """(B, M, C) -> (B, M, D), in the first use (B, 1, D)."""
        capsules = len(self.weight)
        if use == 0:  # the same tokens for every capsule
            torch.mm(vectors.flatten(1), self.weight.flatten(0, 1), out=self.right[0])
            return self.right[:1].transpose(0, 1)
        room = self.right[1 + (use - 1) * capsules : 1 + use * capsules]
        return torch.bmm(vectors.transpose(0, 1), self.weight, out=room).transpose(0, 1)


def _by_capsule(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """(B, M, C) and (B, M, D) -> (M, C, B) and (M, B, D): factors of the weights' gradient, not copied."""
    return left.permute(1, 2, 0), right.transpose(0, 1)


def _through_average(of: Round, total: Tensor, of_sums: Tensor, *, average: bool) -> tuple[Tensor, Tensor | float]:
    """Gradients for what a capsule received before it was divided, and for its total coupling."""
    if not average:
        return of_sums, 0.0
    divisor = total.clamp(min=1)
    of_divisor = -(of_sums * of.sums).sum(-1, keepdim=True) / divisor
    return of_sums / divisor, of_divisor * (total >= 1)


def _through_softmax(coupling: Tensor, of_coupling: Tensor, axis: int) -> Tensor:
    weighted = coupling * of_coupling
    return weighted.addcmul(coupling, weighted.sum(axis, keepdim=True), value=-1)
