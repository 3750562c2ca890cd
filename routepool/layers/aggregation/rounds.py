"""Algorithm 1: in each round tokens send messages to capsules by a coupling, and agree with what they made there."""

# B batch  T tokens  M capsules  C capsule size

from typing import NamedTuple

from torch import Tensor

from routepool.layers.aggregation.masking import masked_softmax, wide_type
from routepool.layers.aggregation.messages import Messages
from routepool.layers.aggregation.squashing import capsules_of, norm_of

CAPSULES, TOKENS = 1, 2  # axes of a coupling (B, M, T)


class Round(NamedTuple):
    """What one round of routing computed, capsules first."""

    coupling: Tensor  # (B, M, T), in the first round (B, 1, T)
    logits: Tensor  # likewise
    sums: Tensor  # (B, M, C), what the capsules received
    norm: Tensor  # (B, M, 1), of the sums
    capsules: Tensor  # (B, M, C), squashed or at their lengths


class Algorithm(NamedTuple):
    """How the rounds go. What a forward pass went by cannot change before its backward pass."""

    axis: int  # along which a coupling sums to 1
    iterations: int
    average: bool

    def rounds(self, messages: Messages, real: Tensor, length: Tensor | None) -> list[Round]:
        """All rounds, for a mask (B, 1, T) and the learned lengths (M, 1) of the capsules, if they have any."""
        capsules, dtype = len(messages.weight), messages.weight.dtype
        # Logits of 0 are the same for every capsule: the first round needs one row of them, not M.
        logits = real.new_zeros(real.shape, dtype=dtype)
        coupling = self._first_coupling(real.to(wide_type(logits)), capsules).to(dtype)
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
            rounds.append(Round(coupling, logits, sums, norm, capsules_of(sums, norm, length)))
        return rounds

    def _first_coupling(self, real: Tensor, capsules: int) -> Tensor:
        if self.axis == CAPSULES:
            return real / capsules
        return real / real.sum(-1, keepdim=True).clamp(min=1)
