"""The contract of every aggregator, checked in one place."""

# B batch  T tokens  D features  M units of weight (1, attention rows, capsules)

from torch import Tensor, nn
from torch.nn import functional

from routepool.checks import at_least
from routepool.layers.aggregation.masking import finite_padding
from routepool.layers.contract import check_states
from routepool.settings import AGGREGATORS

register = AGGREGATORS.register


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
    units = 1  # parts of equal size that the vector is made of: capsules, rows of attention

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
