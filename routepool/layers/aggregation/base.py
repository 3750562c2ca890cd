"""The contract of every aggregator, checked in one place."""

# B batch  T tokens  D features  M units of weight (1, attention rows, capsules)

from typing import Literal, NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from routepool.checks import at_least
from routepool.layers.aggregation.masking import finite_padding
from routepool.layers.contract import check_states
from routepool.settings import AGGREGATORS

register = AGGREGATORS.register


class Parts(NamedTuple):
    """What an aggregator's vector is made of, and what its weights are shares of."""

    number: int = 1  # of equal size, one behind the other; there are as many weights of each token
    name: str = "vector"  # what one is called: capsule, row
    share_of: Literal["text", "word", "nothing"] = "nothing"
    """The axis over which weights sum to 1.

    text: each part's over the tokens. word: each token's over the parts. nothing: they do not.
    """


class Aggregator(nn.Module):
    """Many vectors in, one vector out, and the weight each had in it.

    A new aggregator is one class: set `out_features` and write `aggregate`. Register it by name, and the model, the
    settings and the contract tests know it:

    >>> from routepool.layers.aggregation import Aggregator, register
    >>> from routepool.settings import AGGREGATORS
    >>> @register("sum")
    ... class SumPooling(Aggregator):
    ...     def __init__(self, in_features: int) -> None:
    ...         super().__init__(in_features, out_features=in_features)
    ...
    ...     def aggregate(self, states, mask):
    ...         weights = mask.unsqueeze(-1).to(states.dtype)
    ...         return (weights * states).sum(1), weights
    >>> AGGREGATORS["sum"](8).out_features
    8
    """

    pass_cost = 64  # of a call, in tokens it could read instead: by it a level groups rows of near-equal length
    parts = Parts()
    iterations = 1  # rounds in which the weights come about; `rounds` gives those of each

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.in_features = at_least("in_features", in_features, 1)
        self.out_features = at_least("out_features", out_features, 1)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Aggregate the real tokens; padding changes nothing, whatever it holds, and an empty row gives zeros.

        Args:
            states: (B, T, D) floats.
            mask: (B, T) bool, True at real tokens; without one, every token is real.

        Returns:
            The vector (B, out_features) and the weights (B, T, M), 0 on padding.
        """
        mask = check_states(states, mask, self.in_features)
        tokens = states.shape[1]
        if tokens == 0:  # a maximum over nothing is an error in torch; over one padding token it is an empty row
            states, mask = functional.pad(states, (0, 0, 0, 1)), functional.pad(mask, (0, 1))
        vector, weights = self.aggregate(finite_padding(states, mask), mask)
        return vector, weights[:, :tokens]

    def aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The arithmetic of `forward`: padding is finite here, but not zero; give it a weight of 0."""
        raise NotImplementedError

    def rounds(self, states: Tensor, mask: Tensor) -> list[Tensor]:
        """The weights (B, T, M) of each round, the last ones being those of `forward`."""
        return [self(states, mask)[1]]

    def terms(self, states: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
        """What each token brings to each part (B, T, M, C), 0 on padding: the terms of a sum over the tokens.

        Here its weight times its state; one whose vector is another sum says so here, for explanations to be right.

        Args:
            states: (B, T, D); what padding holds is ignored.
            mask: (B, T).
            weights: (B, T, M), those of `forward` or others.
        """
        return weights.unsqueeze(-1) * states.masked_fill(~mask.unsqueeze(-1), 0).unsqueeze(2)

    def vector_of(self, sums: Tensor) -> Tensor:
        """What `forward` makes of the sums of these terms: (B, M, C) -> (B, out_features)."""
        return sums.flatten(1)
