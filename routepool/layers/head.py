"""A text's vector -> logits: the two-layer perceptron of the paper."""

# B batch  D features  K classes

from collections.abc import Collection

from torch import Tensor, nn

from routepool.checks import at_least
from routepool.layers.contract import Head, register_head
from routepool.layers.dropout import Dropout


@register_head("mlp")
class Perceptron(Head):
    """A hidden layer of tanh units, then one logit for each class.

    Args:
        in_features: size of the text's vector.
        classes: number of logits.
        hidden_size: hidden units; the paper is silent, the released code has 300.
        dropout: share of values dropped in training.
        places: where: "hidden" after the tanh (the paper), "tanh" before it (the released code).

    >>> import torch
    >>> mask = torch.ones(2, 5, dtype=torch.bool)
    >>> Perceptron(8, 3)(None, mask, torch.randn(2, 8)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        in_features: int,
        classes: int,
        *,
        hidden_size: int = 300,
        dropout: float = 0.0,
        places: Collection[str] = ("hidden",),
    ) -> None:
        super().__init__(in_features, classes)
        self.hidden = nn.Linear(in_features, at_least("hidden_size", hidden_size, 1))
        self.before_tanh = Dropout(dropout if "tanh" in places else 0)
        self.after_tanh = Dropout(dropout if "hidden" in places else 0)
        self.output = nn.Linear(hidden_size, classes)
        self.reset_parameters()

    def forward(self, states: Tensor | None, mask: Tensor, vector: Tensor) -> Tensor:
        hidden = self.before_tanh(self.hidden(vector)).tanh()
        logits: Tensor = self.output(self.after_tanh(hidden))
        return logits
