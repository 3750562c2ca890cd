"""Dynamic routing: tokens send messages to capsules, and the route tightens where they agree (eq. 11-18)."""

# B batch  T tokens  D features  M capsules  C capsule size

# A round of algorithm 1, in the paper's letters (i a token, j a capsule) and in the names of this file:
#
#   m_ij  = f(h_i, theta_j)                  messages, linear or tanh; the linear ones are never built
#   c_ij  = softmax_j(b_ij)                  coupling, eq. 15; in reverse routing softmax_i, eq. 18
#   s_j   = sum_i c_ij m_ij                  sums, eq. 12 and 13
#   v_j   = |s|^2 / (1 + |s|^2) * s / |s|    capsules, eq. 14; or a direction at a learned length
#   b_ij += m_ij . v_j                       logits of the next round, eq. 16

import math
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from routepool.layers.contract import (
    Aggregator,
    Parts,
    check_states,
    finite_padding,
    masked_softmax,
    may_branch,
    register_aggregator,
)
from routepool.settings.declarations import LARGEST, one_of

CAPSULES, TOKENS = 1, 2  # axes of a coupling while it is computed, (B, M, T)
SHORT = 1e-3  # of what a capsule receives: below it there is no direction to speak of
_FULL = (torch.float32, torch.float64)
NEXT_TO_NOTHING = 1e-15  # below it the inverse of a norm, and of its square, would leave float32


class Round(NamedTuple):
    """What one round computed."""

    coupling: Tensor  # (B, T, M), 0 on padding
    logits: Tensor  # (B, T, M), the b of eq. 16 that this coupling is the softmax of
    sums: Tensor  # (B, M, C), what the capsules received
    norm: Tensor  # (B, M, 1), of the sums
    capsules: Tensor  # (B, M, C)


class LinearMessages:
    """f(h) = W h + b, never built: W_j and b_j are moved out of the sums over tokens.

    s_j = W_j (sum_i c_ij h_i) + (sum_i c_ij) b_j, and m_ij . v_j = (W_j' v_j) . h_i + b_j . v_j
    """

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.states, self.weight, self.bias = states, weight, bias

    def sum(self, coupling: Tensor) -> Tensor:
        """(B, M or 1, T) -> (B, M, C): what each capsule receives."""
        linear = per_capsule(self.pooled(coupling), self.weight.mT)
        return torch.addcmul(linear, coupling.sum(-1, keepdim=True), self.bias)

    def agreement(self, capsules: Tensor) -> Tensor:
        """(B, M, C) -> (B, M, T): what is added to the logits."""
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


Messages = LinearMessages | TanhMessages


def per_capsule(vectors: Tensor, matrices: Tensor) -> Tensor:
    """(B, M or 1, X), (M, X, Y) -> (B, M, Y), which lies in memory capsule by capsule, as the next product reads it."""
    return torch.matmul(vectors.transpose(0, 1), matrices).transpose(0, 1)


class Algorithm(NamedTuple):
    """How the rounds go, which cannot change between a forward pass and its backward pass."""

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
    """Shorten a vector, whose norm may be given, to a length below 1: |s|^2 / (1 + |s|^2) * s / |s| (eq. 14).

    Value and gradient are finite from 0 on.

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


class _Routing(Aggregator):
    """Algorithm 1; subclasses say over which axis the coupling sums to 1.

    Args:
        in_features: size of a token's vector.
        capsules: number of capsules M.
        capsule_size: size C of a capsule; the vector is M x C long.
        iterations: rounds of routing.
        messages: "linear" for f(h) = W h + b, which is never built; "tanh" for the released code's tanh(W h + b).
        average: divide what a capsule receives by its total coupling, where that is above 1: the paper's sum grows with
            the text until squash saturates (docs/architecture.md). In reverse routing it is 1, and nothing changes.
        learned_length: in place of its squash (eq. 14) a capsule has the direction of what it received and a length
            that is learned, at first 1: better on labelled phrases (docs/reproduction.md, the recipe).
    """

    axis: int
    gradient_by_hand = True
    """Whether linear messages train by `gradient.py`: autograd's numbers, sooner. False if your rounds are others."""

    largest: ClassVar = {"capsules": 1000, "capsule_size": LARGEST, "iterations": 100}
    pass_cost = 1024  # the capsules' matrices are read in every round (benchmarks/encoder.py)

    def __init__(
        self,
        in_features: int,
        *,
        capsules: int = 5,
        capsule_size: int = 200,
        iterations: int = 3,
        messages: str = "linear",
        average: bool = False,
        learned_length: bool = False,
    ) -> None:
        super().__init__(in_features, capsules=capsules, capsule_size=capsule_size, iterations=iterations)
        self.out_features = capsules * capsule_size
        self.capsules, self.capsule_size, self.iterations = capsules, capsule_size, iterations
        self.parts = Parts(capsules, "capsule", share_of="word" if self.axis == CAPSULES else "text")
        self.messages = one_of("messages", messages, ("linear", "tanh"))
        self.average = average
        self.weight = nn.Parameter(torch.empty(capsules, capsule_size, in_features))
        self.bias = nn.Parameter(torch.empty(capsules, capsule_size))
        self.length = nn.Parameter(torch.empty(capsules, 1)) if learned_length else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier for each capsule's matrix, zeros for the biases, ones for the lengths."""
        for matrix in self.weight:
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.bias)
        if self.length is not None:
            nn.init.ones_(self.length)

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        if self.messages == "linear" and self.gradient_by_hand and self._trains_in_full_precision(states):
            from routepool.layers.aggregation.gradient import route_linearly  # noqa: PLC0415  it imports this file

            wide = states.to(torch.promote_types(states.dtype, torch.float32))
            algorithm = Algorithm(self.axis, self.iterations, self.average)
            capsules, coupling = route_linearly(wide, self.weight, self.bias, self.length, mask.unsqueeze(1), algorithm)
        else:
            last = self.route(self._messages(states), mask.unsqueeze(1))[-1]
            capsules, coupling = last.capsules, last.coupling.expand(-1, -1, self.capsules)
        return capsules.flatten(1), coupling

    def trace(self, states: Tensor, mask: Tensor | None = None) -> list[Round]:
        """Every round, the last one being what `forward` returns; logits are 0 on padding."""
        mask = check_states(states, mask, self.in_features)
        shape, padding = (*mask.shape, self.capsules), ~mask.unsqueeze(-1)
        return [
            each._replace(
                coupling=each.coupling.expand(shape), logits=each.logits.masked_fill(padding, 0).expand(shape)
            )
            for each in self.route(self._messages(finite_padding(states, mask)), mask.unsqueeze(1))
        ]

    def rounds(self, states: Tensor, mask: Tensor) -> list[Tensor]:
        return [each.coupling for each in self.trace(states, mask)]

    def terms(self, states: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
        """Its coupling times its message W h + b, or the tanh of that."""
        states = states.masked_fill(~mask.unsqueeze(-1), 0)
        messages = torch.einsum("btd,mcd->btmc", states, self.weight) + self.bias
        terms = weights.unsqueeze(-1) * (messages.tanh() if self.messages == "tanh" else messages)
        return terms / weights.sum(1).clamp(min=1)[:, None, :, None] if self.average else terms

    def vector_of(self, sums: Tensor) -> Tensor:
        return capsules_of(sums, norm_of(sums), self.length).flatten(1)

    def route(self, messages: Messages, real: Tensor) -> list[Round]:
        """Algorithm 1 for a mask (B, 1, T); coupling and logits of the first round are (B, T, 1)."""
        return Algorithm(self.axis, self.iterations, self.average).rounds(messages, real, self.length)

    def _trains_in_full_precision(self, states: Tensor) -> bool:
        """Whether the gradient by hand applies: in eager mode, on a CPU also under autocast, which it switches off."""
        if torch.compiler.is_compiling() or not torch.is_grad_enabled() or self.weight.dtype not in _FULL:
            return False
        device = states.device.type
        return device == "cpu" if torch.is_autocast_enabled(device) else states.dtype in _FULL

    def _messages(self, states: Tensor) -> Messages:
        return (LinearMessages if self.messages == "linear" else TanhMessages)(states, self.weight, self.bias)


@register_aggregator("routing")
class StandardRouting(_Routing):
    """Standard DR-AGG: each token splits a weight of 1 between the capsules (eq. 15).

    >>> _, coupling = StandardRouting(8, capsules=3, capsule_size=4)(torch.randn(2, 6, 8))
    >>> bool(torch.allclose(coupling.sum(-1), torch.ones(2, 6)))
    True
    """

    axis = CAPSULES


@register_aggregator("reverse-routing")
class ReverseRouting(_Routing):
    """Reversed DR-AGG: each capsule splits a weight of 1 between the tokens (eq. 18).

    >>> _, coupling = ReverseRouting(8, capsules=3, capsule_size=4)(torch.randn(2, 6, 8))
    >>> bool(torch.allclose(coupling.sum(1), torch.ones(2, 3)))
    True
    """

    axis = TOKENS
