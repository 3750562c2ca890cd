"""Dynamic routing: tokens send messages to capsules, and the route tightens where they agree (eq. 11-18)."""

# B batch  T tokens  D features  M capsules  C capsule size

import torch
from torch import Tensor, nn

from routepool.checks import between, one_of
from routepool.layers.aggregation.algorithm import (
    CAPSULES,
    TOKENS,
    Algorithm,
    LinearMessages,
    Messages,
    Round,
    TanhMessages,
    capsules_of,
    norm_of,
)
from routepool.layers.aggregation.gradient import route_linearly
from routepool.layers.contract import Aggregator, Parts, check_states, finite_padding, register_aggregator
from routepool.settings import LARGEST

_FULL = (torch.float32, torch.float64)


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
        learned_length: in place of its squash (eq. 14) a capsule has the direction of what it received and a length
            that is learned, at first 1: better on labelled phrases (docs/reproduction.md, the recipe).
    """

    axis: int
    gradient_by_hand = True
    """Whether training with linear messages has the gradient of `gradient.py`: the numbers are autograd's, sooner.

    False, on a layer or a class, leaves it to autograd: for a subclass with rounds of its own, or to compare.
    """

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
        size = between("capsules", capsules, 1, 1000) * between("capsule_size", capsule_size, 1, LARGEST)
        super().__init__(in_features, out_features=size)
        self.capsules = capsules
        self.parts = Parts(capsules, "capsule", share_of="word" if self.axis == CAPSULES else "text")
        self.capsule_size = capsule_size
        self.iterations = between("iterations", iterations, 1, 100)
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
            wide = states.to(torch.promote_types(states.dtype, torch.float32))
            parameters = (self.weight, self.bias, self.length)
            capsules, coupling = route_linearly(wide, *parameters, mask.unsqueeze(1), self._algorithm())
        else:
            last = self.route(self._messages(states), mask.unsqueeze(1))[-1]
            capsules, coupling = last.capsules, last.coupling.expand(-1, -1, self.capsules)
        return capsules.flatten(1), coupling

    def trace(self, states: Tensor, mask: Tensor | None = None) -> list[Round]:
        """Every round, the last one being what `forward` returns; logits are 0 on padding."""
        mask = check_states(states, mask, self.in_features)
        shape, padding = (-1, -1, self.capsules), ~mask.unsqueeze(-1)
        rounds = self.route(self._messages(finite_padding(states, mask)), mask.unsqueeze(1))
        return [
            each._replace(
                coupling=each.coupling.expand(shape), logits=each.logits.expand(shape).masked_fill(padding, 0)
            )
            for each in rounds
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
        return self._algorithm().rounds(messages, real, self.length)

    def _trains_in_full_precision(self, states: Tensor) -> bool:
        """What the gradient by hand is for, in eager mode.

        On a processor also under autocast, in full precision all the same; on others autocast has the plain path.
        """
        if torch.compiler.is_compiling() or not torch.is_grad_enabled() or self.weight.dtype not in _FULL:
            return False
        device = states.device.type
        return device == "cpu" if torch.is_autocast_enabled(device) else states.dtype in _FULL

    def _messages(self, states: Tensor) -> Messages:
        form = LinearMessages if self.messages == "linear" else TanhMessages
        return form(states, self.weight, self.bias)

    def _algorithm(self) -> Algorithm:
        return Algorithm(self.axis, self.iterations, self.average)


@register_aggregator("routing")
class StandardRouting(_Routing):
    """Standard DR-AGG: each token splits one unit of itself between the capsules (eq. 15).

    >>> vector, coupling = StandardRouting(8, capsules=3, capsule_size=4)(torch.randn(2, 6, 8))
    >>> vector.shape, coupling.shape
    (torch.Size([2, 12]), torch.Size([2, 6, 3]))
    >>> bool(torch.allclose(coupling.sum(-1), torch.ones(2, 6)))
    True
    """

    axis = CAPSULES


@register_aggregator("reverse-routing")
class ReverseRouting(_Routing):
    """Reversed DR-AGG: each capsule splits one unit of attention between the tokens (eq. 18).

    >>> vector, coupling = ReverseRouting(8, capsules=3, capsule_size=4)(torch.randn(2, 6, 8))
    >>> bool(torch.allclose(coupling.sum(1), torch.ones(2, 3)))
    True
    """

    axis = TOKENS
