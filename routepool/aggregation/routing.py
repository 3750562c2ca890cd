"""Dynamic routing: tokens send messages to capsules, and the route tightens where they agree (eq. 11-18)."""

# B batch  T tokens  D features  M capsules  C capsule size

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from routepool.aggregation.base import Aggregator, register
from routepool.aggregation.masking import finite_padding, masked_softmax, wide_type
from routepool.checks import at_least, check_states, one_of

CAPSULES, TOKENS = 1, 2  # axes of a coupling (B, M, T)


class Iteration(NamedTuple):
    """What one round of routing computed."""

    coupling: Tensor  # (B, T, M), 0 on padding
    logits: Tensor  # (B, T, M), the b of eq. 16 that this coupling is the softmax of, 0 on padding
    capsules: Tensor  # (B, M, C)


class _Routing(Aggregator):
    """Algorithm 1; subclasses say over which axis the coupling sums to 1.

    Args:
        in_features: size of a token's vector.
        capsules: number of capsules M.
        capsule_size: size C of a capsule; the vector is M x C long.
        iterations: rounds of routing.
        messages: "linear" for f(h) = W h + b, which is never built; "tanh" for the released code's tanh(W h + b).
        average: divide what a capsule receives by its total coupling, where that is above 1. The paper's sum grows
            with the text until squash saturates; docs/architecture.md has what that costs documents. In reverse
            routing the total is 1 already, and nothing changes.
    """

    axis: int

    def __init__(
        self,
        in_features: int,
        *,
        capsules: int = 5,
        capsule_size: int = 200,
        iterations: int = 3,
        messages: str = "linear",
        average: bool = False,
    ) -> None:
        size = at_least("capsules", capsules, 1) * at_least("capsule_size", capsule_size, 1)
        super().__init__(in_features, out_features=size)
        self.capsules = capsules
        self.capsule_size = capsule_size
        self.iterations = at_least("iterations", iterations, 1)
        self.messages = one_of("messages", messages, ("linear", "tanh"))
        self.average = average
        self.weight = nn.Parameter(torch.empty(capsules, capsule_size, in_features))
        self.bias = nn.Parameter(torch.empty(capsules, capsule_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier for each capsule's matrix, zeros for the biases."""
        for matrix in self.weight:
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.bias)

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        last = self._route(states, mask)[-1]
        return last.capsules.flatten(1), last.coupling

    def trace(self, states: Tensor, mask: Tensor | None = None) -> list[Iteration]:
        """Coupling, logits and capsules of every iteration, the last one being what `forward` returns."""
        mask = check_states(states, mask, self.in_features)
        return self._route(finite_padding(states, mask), mask)

    def _route(self, states: Tensor, mask: Tensor) -> list[Iteration]:
        form = _LinearMessages if self.messages == "linear" else _TanhMessages
        messages = form(states, self.weight, self.bias)
        real = mask.unsqueeze(1)
        # Logits of 0 are the same for every capsule: the first round needs one row of them, not M.
        logits = states.new_zeros(real.shape)
        coupling = self._first_coupling(real.to(wide_type(states))).to(states.dtype)
        rounds: list[Iteration] = []
        for _ in range(self.iterations):
            if rounds:  # here and not at the end of a round: the last one needs no update
                logits = logits + messages.agreement(rounds[-1].capsules)
                coupling = masked_softmax(logits, real, dim=self.axis)
            sums = messages.sum(coupling)
            if self.average:
                # Not below 1: a capsule that receives next to nothing must stay small, and its gradient finite.
                sums = sums / coupling.sum(-1, keepdim=True).clamp(min=1)
            capsules = squash(sums)
            rounds.append(Iteration(self._per_token(coupling), self._per_token(logits), capsules))
        return rounds

    def _first_coupling(self, real: Tensor) -> Tensor:
        if self.axis == CAPSULES:
            return real / self.capsules
        return real / real.sum(-1, keepdim=True).clamp(min=1)

    def _per_token(self, by_capsule: Tensor) -> Tensor:
        return by_capsule.mT.expand(-1, -1, self.capsules)


@register("routing")
class StandardRouting(_Routing):
    """Standard DR-AGG: each token splits one unit of itself between the capsules (eq. 15).

    >>> vector, coupling = StandardRouting(8, capsules=3, capsule_size=4)(torch.randn(2, 6, 8))
    >>> vector.shape, coupling.shape
    (torch.Size([2, 12]), torch.Size([2, 6, 3]))
    >>> bool(torch.allclose(coupling.sum(-1), torch.ones(2, 6)))
    True
    """

    axis = CAPSULES


@register("reverse-routing")
class ReverseRouting(_Routing):
    """Reversed DR-AGG: each capsule splits one unit of attention between the tokens (eq. 18).

    >>> vector, coupling = ReverseRouting(8, capsules=3, capsule_size=4)(torch.randn(2, 6, 8))
    >>> bool(torch.allclose(coupling.sum(1), torch.ones(2, 3)))
    True
    """

    axis = TOKENS


def squash(sums: Tensor) -> Tensor:
    """Shorten a vector to a length below 1, keeping its direction: |s|^2 / (1 + |s|^2) * s / |s| (eq. 14).

    The norm is taken in float64, where the square of 1e20 is still a number: value and gradient are finite from 0 on.

    >>> round(squash(torch.tensor([3.0, 4.0])).norm().item(), 4)  # 25 / 26
    0.9615
    """
    norm: Tensor = torch.linalg.vector_norm(sums, dim=-1, keepdim=True, dtype=torch.float64)
    return sums * (norm / (1 + norm * norm)).to(sums.dtype)


class _Messages(Protocol):
    """The messages f(h, theta) of all tokens to all capsules, as routing uses them."""

    def sum(self, coupling: Tensor) -> Tensor:
        """(B, M or 1, T) -> (B, M, C): eq. 12 and 13."""

    def agreement(self, capsules: Tensor) -> Tensor:
        """(B, M, C) -> (B, M, T): the second term of eq. 16."""


class _LinearMessages:
    """f(h) = W h + b, never built: W_j and b_j are moved out of the sums over tokens."""

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.states, self.weight, self.bias = states, weight, bias

    def sum(self, coupling: Tensor) -> Tensor:
        pooled = torch.bmm(coupling, self.states)  # (B, M, D)
        linear = torch.einsum("bmd,mcd->bmc", pooled, self.weight)
        return linear + coupling.sum(-1, keepdim=True) * self.bias

    def agreement(self, capsules: Tensor) -> Tensor:
        query = torch.einsum("bmc,mcd->bmd", capsules, self.weight)
        return torch.bmm(query, self.states.mT) + (capsules * self.bias).sum(-1, keepdim=True)


class _TanhMessages:
    """f(h) = tanh(W h + b), kept as (M, B, T, C) so that every use of them is a plain batched product."""

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor) -> None:
        tokens = states.flatten(0, 1).expand(len(weight), -1, -1)
        linear = torch.baddbmm(bias.unsqueeze(1), tokens, weight.mT)
        self.messages = linear.tanh().reshape(len(weight), *states.shape[:2], weight.shape[1])

    def sum(self, coupling: Tensor) -> Tensor:
        by_capsule = coupling.transpose(0, 1).unsqueeze(2)  # (M or 1, B, 1, T)
        return torch.matmul(by_capsule, self.messages).squeeze(2).transpose(0, 1)

    def agreement(self, capsules: Tensor) -> Tensor:
        by_capsule = capsules.transpose(0, 1).unsqueeze(3)
        return torch.matmul(self.messages, by_capsule).squeeze(3).transpose(0, 1)
