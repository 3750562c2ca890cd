"""Routing with what was tried for the preset `best` and did not help: learned prior logits, a learned temperature."""

from typing import Any

import torch
from torch import Tensor, nn

from routepool.layers import Round, StandardRouting, register_aggregator
from routepool.layers.aggregation.routing import Messages, capsules_of, norm_of
from routepool.layers.contract import masked_softmax


@register_aggregator("adapted-routing")
class AdaptedRouting(StandardRouting):
    """Standard routing with two more options.

    Args:
        prior: the logits of the first round are learned, one for each capsule, at first 0.
        temperature: the logits are multiplied by a learned factor before each softmax, at first 1.
        learned_length: as standard routing has it by now.
    """

    gradient_by_hand = False  # it knows no options

    def __init__(
        self,
        in_features: int,
        *,
        capsules: int = 5,
        capsule_size: int = 200,
        prior: bool = False,
        temperature: bool = False,
        learned_length: bool = False,
    ) -> None:
        super().__init__(in_features, capsules=capsules, capsule_size=capsule_size, learned_length=learned_length)
        self.prior = nn.Parameter(torch.zeros(capsules, 1)) if prior else None
        self.log_factor = nn.Parameter(torch.zeros(())) if temperature else None

    def route(self, messages: Messages, real: Tensor) -> list[Round]:
        """Algorithm 1 for a mask (B, 1, T), with the options."""
        prior = self.weight.new_zeros(self.capsules, 1) if self.prior is None else self.prior
        logits = prior.expand(real.shape[0], -1, real.shape[-1])
        rounds: list[Round] = []
        for _ in range(self.iterations):
            if rounds:
                logits = logits + messages.agreement(rounds[-1].capsules)
            sharpened = logits if self.log_factor is None else logits * self.log_factor.exp()
            coupling = masked_softmax(sharpened, real, dim=self.axis)
            sums = messages.sum(coupling)
            norm = norm_of(sums)
            rounds.append(Round(coupling.mT, logits.mT, sums, norm, capsules_of(sums, norm, self.length)))
        return rounds


ADAPTED: dict[str, dict[str, Any]] = {
    "prior": {"prior": True},
    "temperature": {"temperature": True},
    "length": {"learned_length": True},
    "all-three": {"prior": True, "temperature": True, "learned_length": True},
}
