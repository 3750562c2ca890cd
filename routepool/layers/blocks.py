"""What stands around encoders and aggregators: word vectors below, dropout between, the paper's perceptron on top."""

# B batch  T tokens  V vocabulary  D features  K classes  N rows

from collections.abc import Collection

import torch
from torch import Tensor, nn
from torch.nn import functional

from routepool.errors import InputError
from routepool.layers.contract import Head, may_branch, register_head, transformed
from routepool.settings.declarations import whole_number
from routepool.text import PAD

_LEVELS = 2**16  # a share is met to one part of this


class Embedding(nn.Module):
    """A table of word vectors.

    Args:
        vocabulary_size: rows, padding included.
        size: length of a vector.
        sparse: gradients only for the rows a batch touches; use with an optimiser that takes sparse gradients.

    >>> words = Embedding(5, 3)
    >>> words(torch.tensor([[1, 4, 0]])).shape
    torch.Size([1, 3, 3])
    """

    frozen: Tensor | None

    def __init__(self, vocabulary_size: int, size: int, *, sparse: bool = True) -> None:
        super().__init__()
        self.out_features = whole_number("size", size)
        self.sparse = sparse
        self.weight = nn.Parameter(torch.empty(whole_number("vocabulary_size", vocabulary_size, 2), size))
        self.register_buffer("frozen", None, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in [0, 0.05) as the released code does for words without a vector; padding zeros."""
        nn.init.uniform_(self.weight, 0, 0.05)
        with torch.no_grad():
            self.weight[PAD] = 0

    def load_vectors(self, vectors: Tensor, known: Tensor) -> None:
        """Copy pre-trained rows into the table.

        Args:
            vectors: (V, D).
            known: (V,) bool, True where a row is to be taken; the other rows stay random.
        """
        if vectors.shape != self.weight.shape or known.shape != self.weight.shape[:1]:
            raise InputError(
                f"vectors must be {tuple(self.weight.shape)} and known ({len(self.weight)},) like the table, "
                f"got {tuple(vectors.shape)} and {tuple(known.shape)}"
            )
        keep = known.clone()
        keep[PAD] = False
        with torch.no_grad():
            self.weight[keep] = vectors[keep].to(self.weight)

    def freeze(self, rows: Tensor | None) -> None:
        """Stop the gradient of some rows, (V,) bool; None lets all of them learn."""
        if rows is not None and (rows.shape != self.weight.shape[:1] or rows.dtype != torch.bool):
            raise InputError(f"rows must be bool ({len(self.weight)},), got {rows.dtype} {tuple(rows.shape)}")
        self.frozen = None if rows is None else rows.to(self.weight.device)

    def forward(self, ids: Tensor) -> Tensor:
        """(..., T) whole numbers -> (..., T, D)."""
        sparse = self.sparse and not transformed()  # torch makes no batch of sparse gradients
        try:
            vectors = functional.embedding(ids, self.weight, padding_idx=PAD, sparse=sparse)
        except IndexError as error:
            if not may_branch(ids):
                raise
            raise InputError(self._outside(ids)) from error
        if self.frozen is None or not vectors.requires_grad:
            return vectors
        return torch.where(self.frozen[ids].unsqueeze(-1), vectors.detach(), vectors)

    def _outside(self, ids: Tensor) -> str:
        low, high = (int(bound) for bound in ids.aminmax())
        wrong = low if low < 0 else high
        return f"ids must lie between 0 and {len(self.weight) - 1}, the vocabulary's last, got {wrong}"


class Dropout(nn.Dropout):
    """Dropout that draws 16 bits for a value where torch draws a number, which costs less on a CPU.

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


@register_head("mlp")
class Perceptron(Head):
    """A hidden layer of tanh units, then one logit for each class.

    Args:
        in_features: size of the text's vector.
        classes: number of logits.
        hidden_size: hidden units; the paper is silent, the released code has 300.
        dropout: share of values dropped in training.
        places: where: "hidden" after the tanh (the paper), "tanh" before it (the released code).

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
        super().__init__(in_features, classes, hidden_size=hidden_size)
        self.hidden = nn.Linear(in_features, hidden_size)
        self.before_tanh = Dropout(dropout if "tanh" in places else 0)
        self.after_tanh = Dropout(dropout if "hidden" in places else 0)
        self.output = nn.Linear(hidden_size, classes)
        self.reset_parameters()

    def forward(self, states: Tensor | None, mask: Tensor, vector: Tensor) -> Tensor:
        hidden = self.before_tanh(self.hidden(vector)).tanh()
        logits: Tensor = self.output(self.after_tanh(hidden))
        return logits
