"""Adam for a table of which a step touches a few rows."""

# V rows  D features  R touched rows

import math

import torch
from torch import Tensor, nn

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8  # as in torch.optim.Adam


class LazyAdam:
    """Adam that moves only the rows a sparse gradient names; the others keep still, their moments included.

    Where every row is touched, a step is that of `torch.optim.Adam`. (`torch.optim.SparseAdam` is not: it adds epsilon
    before the correction of the first steps, which makes small gradients move less.)

    Args:
        table: (V, D).
    """

    def __init__(self, table: nn.Parameter) -> None:
        self.table = table
        self.steps = 0
        self.mean, self.square = (torch.zeros_like(table.detach()) for _ in range(2))

    @torch.no_grad()
    def step(self, rate: float, *, clip: float) -> None:
        """Apply the gradient, each value of it cut at `clip`, and forget it."""
        if self.table.grad is None:
            return
        gradient = self.table.grad.coalesce()  # one row for a word at several places
        rows, values = gradient.indices()[0], gradient.values().clamp_(-clip, clip)
        self.table.grad = None
        self.steps += 1
        mean = self.mean.index_select(0, rows).lerp_(values, 1 - MEAN_DECAY)
        square = self.square.index_select(0, rows).mul_(SQUARE_DECAY).addcmul_(values, values, value=1 - SQUARE_DECAY)
        self.mean.index_copy_(0, rows, mean)
        self.square.index_copy_(0, rows, square)
        spread = square.sqrt_().div_(math.sqrt(1 - SQUARE_DECAY**self.steps)).add_(EPSILON)
        self.table.index_add_(0, rows, mean.div_(spread), alpha=-rate / (1 - MEAN_DECAY**self.steps))

    def tensors(self) -> dict[str, Tensor]:
        """The moments, by name."""
        return {"mean": self.mean, "square": self.square, "steps": torch.tensor(self.steps)}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take up what `tensors` gave."""
        self.steps = int(tensors["steps"])
        self.mean.copy_(tensors["mean"])
        self.square.copy_(tensors["square"])
