"""Values dropped in training: each by itself, or the same features at every token of a row."""

# N rows  T tokens  D features

import torch
from torch import Tensor, nn
from torch.nn import functional

from routepool.layers.contract import may_branch

_LEVELS = 2**16  # a share is met to one part of this


class Dropout(nn.Dropout):
    """Dropout that draws 16 bits for a value where torch draws a number: cheaper on a processor, where it shows.

    The share is rounded to a multiple of 1/65536, and what stays is scaled by what that leaves.

    >>> dropped = Dropout(0.5)(torch.ones(1000))
    >>> sorted(set(dropped.tolist()))
    [0.0, 2.0]
    """

    def forward(self, values: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not (self.training and 0 < self.p < 1 and may_branch(values)):
            return super().forward(values)
        return values * kept(values, self.p)


def kept(values: Tensor, share: float) -> Tensor:
    """Like the values: 0 for that share of them, for the others what keeps the mean."""
    dropped = min(round(share * _LEVELS), _LEVELS - 1)  # never all
    drawn = torch.empty(-(-values.numel() // 4), dtype=torch.int64).random_(-(2**63), None)  # all 64 bits
    levels = drawn.view(torch.int16)[: values.numel()].reshape(values.shape)
    return (levels >= dropped - _LEVELS // 2).to(values.dtype).mul_(_LEVELS / (_LEVELS - dropped))


class LockedDropout(nn.Module):
    """Dropout that drops the same features at every token of a row: variational dropout (Gal and Ghahramani, 2016).

    What is dropped is drawn once for each row, however long it is: padding changes nothing.

    Args:
        dropout: share of the features dropped in training.

    >>> dropped = LockedDropout(0.5)(torch.ones(2, 3, 100))
    >>> bool((dropped == dropped[:, :1]).all())
    True
    """

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(self, states: Tensor) -> Tensor:
        """(N, T, D) -> (N, T, D)."""
        if not self.training or self.dropout == 0:
            return states
        of_rows = states.new_ones(len(states), 1, states.shape[-1])
        return states * functional.dropout(of_rows, self.dropout)
