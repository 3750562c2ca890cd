"""The gradient of linear routing, by hand: added up over the rounds, where autograd builds one for each round."""

# B batch  T tokens  D features  M capsules  C capsule size

# What a round computes from the capsules of the one before, and its gradients: `of_x` is that of x, W' is W turned.
#
#   query     = W' capsules                         of_sums      = squash'(sums) of_capsules
#   logits   += query states + bias capsules        of_pooled    = W' of_sums
#   coupling  = softmax(logits)                     of_coupling  = of_pooled states + bias of_sums
#   total     = sum_t coupling                      of_logits   += softmax'(coupling) of_coupling
#   pooled    = sum_t coupling states               of_constant  = sum_t of_logits
#   sums      = W pooled + bias total               of_query     = sum_t of_logits states
#   capsules  = squash(sums)                        of_capsules  = W of_query + bias of_constant
#
#   of_weight += of_sums pooled' + capsules of_query'
#   of_bias   += of_sums total + capsules of_constant
#   of_states += of_pooled coupling + query of_logits
#
# `average` divides the sums by the total, and learned lengths take the place of squash.

from typing import Any

import torch
from torch import Tensor

from routepool.layers.aggregation.routing import (
    SHORT,
    Algorithm,
    LinearMessages,
    Round,
    direction,
    per_capsule,
    squash_gain,
)
from routepool.layers.contract import backward_suffices, transformed


def route_linearly(
    states: Tensor, weight: Tensor, bias: Tensor, length: Tensor | None, real: Tensor, algorithm: Algorithm
) -> tuple[Tensor, Tensor]:
    """Compute capsules (B, M, C) and coupling (B, T, M), with the gradient by hand wherever possible.

    Args:
        states: (B, T, D), in full precision; so is what is computed, whether or not autocast is on around it.
        weight: (M, C, D).
        bias: (M, C).
        length: (M, 1), of the capsules, or None for the squash.
        real: (B, 1, T), the mask.
        algorithm: how the rounds go.
    """
    if not backward_suffices(states, weight, bias, length):
        return _plain(states, weight, bias, length, real, algorithm)
    routed = LinearRoutingGradient.apply(states, weight, bias, length, real, algorithm)  # type: ignore[no-untyped-call]
    capsules, coupling = routed
    return capsules, coupling


def _plain(
    states: Tensor, weight: Tensor, bias: Tensor, length: Tensor | None, real: Tensor, algorithm: Algorithm
) -> tuple[Tensor, Tensor]:
    """Compute the same, with the gradient left to autograd."""
    with _full_precision():
        last = algorithm.rounds(LinearMessages(states, weight, bias), real, length)[-1]
    return last.capsules, last.coupling.expand(-1, -1, len(weight))


def _full_precision() -> torch.autocast:
    """Run in full precision, also where autocast is on."""
    return torch.autocast("cpu", enabled=False)


class LinearRoutingGradient(torch.autograd.Function):
    """Routing with linear messages, and its gradient through all iterations.

    The numbers are autograd's, as tests show. States (B, T, D) and weights (M, C, D) are used 2 x iterations - 1 times:
    the gradient of the states is one product, that of the weights is added up in place. Such a gradient has no gradient
    of its own: where one is asked for, autograd computes the first one again.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor,
        length: Tensor | None,
        real: Tensor,
        algorithm: Algorithm,
    ) -> tuple[Tensor, Tensor]:
        """Capsules (B, M, C) and coupling (B, T, M)."""
        ctx.messages = _KeptMessages(states.detach(), weight.detach(), bias.detach(), algorithm.iterations)
        with _full_precision():
            ctx.rounds = algorithm.rounds(ctx.messages, real, length)
        ctx.algorithm = algorithm
        ctx.save_for_backward(states, weight, bias, length, real)
        ctx.set_materialize_grads(False)  # training has no gradient for the coupling
        last: Round = ctx.rounds[-1]
        return last.capsules.clone(), last.coupling.expand(-1, -1, len(weight)).clone()

    @staticmethod
    def backward(ctx: Any, of_capsules: Tensor | None, of_coupling: Tensor | None) -> tuple[Tensor | None, ...]:
        """Of states, weights, bias and lengths, given those of capsules and coupling."""
        by_hand = not torch.is_grad_enabled() and not transformed(of_capsules, of_coupling)
        gradients = _gradients_by_hand if by_hand else _gradients_of_plain
        with _full_precision():
            return *gradients(ctx, of_capsules, of_coupling), None, None


def _gradients_of_plain(ctx: Any, of_capsules: Tensor | None, of_coupling: Tensor | None) -> tuple[Tensor | None, ...]:
    """Compute the gradients with autograd from the saved tensors, so that they can be differentiated again."""
    differentiable = torch.is_grad_enabled()
    *saved, real = ctx.saved_tensors
    with torch.enable_grad():
        # Views, lest a gradient also go the way by which one input came from another.
        inputs: list[Any] = [each if each is None else each.view_as(each) for each in saved]
        states, weight, bias, length = inputs
        capsules, coupling = _plain(states, weight, bias, length, real, ctx.algorithm)
    outputs, given = [capsules], [torch.zeros_like(capsules) if of_capsules is None else of_capsules]
    if of_coupling is not None and coupling.requires_grad:  # after a single round it is a constant
        outputs, given = [capsules, coupling], [*given, of_coupling]
    needed = [each for each, needs in zip(inputs, ctx.needs_input_grad, strict=False) if needs]
    gradients = iter(torch.autograd.grad(outputs, needed, given, create_graph=differentiable))
    return tuple(next(gradients) if needs else None for needs in ctx.needs_input_grad[:4])


def _gradients_by_hand(ctx: Any, of_capsules: Tensor | None, of_coupling: Tensor | None) -> tuple[Tensor | None, ...]:
    """Compute the gradients by hand, from the last round to the first; those of the states in one product."""
    states, weight, bias, length, real = ctx.saved_tensors
    messages: _KeptMessages = ctx.messages
    left, of_weight, of_bias = [], torch.zeros_like(weight), torch.zeros_like(bias)
    of_length = None if length is None else torch.zeros_like(length)
    of_logits = torch.zeros_like(ctx.rounds[-1].coupling.mT)
    if of_capsules is None:
        of_capsules = torch.zeros_like(ctx.rounds[-1].capsules)
    for number in reversed(range(len(ctx.rounds))):
        this: Round = ctx.rounds[number]
        coupling = this.coupling.mT
        total = coupling.sum(-1, keepdim=True)
        if of_length is not None:
            of_length += (of_capsules * direction(this.sums, this.norm)).sum((0, 2)).unsqueeze(1)
        of_sums = _through_capsules(this, of_capsules, length)
        incoming, of_total = _through_average(this, total, of_sums, average=ctx.algorithm.average)
        of_pooled = messages.through_weight(incoming, 2 * number)
        left.append(coupling)
        of_weight.baddbmm_(*_by_capsule(incoming, messages.pools[number].expand(-1, len(weight), -1)))
        of_bias += (incoming * total).sum(0)
        if number == 0:  # its coupling is a constant
            break
        of_routed = torch.bmm(states, of_pooled.mT).mT + (of_total + (incoming * bias).sum(-1, keepdim=True))
        if of_coupling is not None:
            of_routed, of_coupling = of_routed + of_coupling.mT, None
        of_logits = of_logits + _through_softmax(coupling, of_routed.masked_fill_(~real, 0), ctx.algorithm.axis)
        before: Round = ctx.rounds[number - 1]
        of_query, of_constant = torch.bmm(of_logits, states), of_logits.sum(-1, keepdim=True)
        left.append(of_logits)
        of_weight.baddbmm_(*_by_capsule(before.capsules, of_query))
        of_bias += (before.capsules * of_constant).sum(0)
        of_capsules = torch.addcmul(per_capsule(of_query, weight.mT), of_constant, bias)
    of_states = None
    if ctx.needs_input_grad[0]:
        of_states = torch.bmm(torch.cat(left[::-1], dim=1).mT, messages.right.transpose(0, 1))
    return of_states, of_weight, of_bias, of_length


class _KeptMessages(LinearMessages):
    """Linear messages that keep both factors of every product with W_j.

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


def _through_capsules(of: Round, of_capsules: Tensor, length: Tensor | None) -> Tensor:
    """The gradient for the sums. Of a direction at a learned length, only what is across it is left."""
    if length is None:
        return _through_squash(of.sums, of.norm, of_capsules)
    along = direction(of.sums, of.norm)
    lost = (of_capsules * along).sum(-1, keepdim=True) * along
    return (of_capsules - lost.masked_fill(of.norm < SHORT, 0)) * (length / of.norm.clamp(min=SHORT))


def _through_squash(sums: Tensor, norm: Tensor, of_capsules: Tensor) -> Tensor:
    """With v = g(n) s: dv = g ds + g'(n) / n (s . ds) s, which is symmetric in ds, and g'(n) n = g (1/n - n) g."""
    gain, inverse = squash_gain(norm)
    along = (sums * of_capsules).sum(-1, keepdim=True) * inverse  # factor after factor: each product stays in range
    bend = along * (gain * (inverse - norm) * gain) * inverse
    return (of_capsules * gain).addcmul_(bend, sums)


def _through_softmax(coupling: Tensor, of_coupling: Tensor, axis: int) -> Tensor:
    weighted = coupling * of_coupling
    return weighted.addcmul(coupling, weighted.sum(axis, keepdim=True), value=-1)
