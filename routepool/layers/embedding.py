"""Ids -> vectors: pre-trained rows, rows frozen at first, sparse gradients."""

# B batch  T tokens  V vocabulary  D features

import torch
from torch import Tensor, nn
from torch.nn import functional

from routepool.checks import at_least
from routepool.errors import InputError
from routepool.layers.contract import may_branch, transformed
from routepool.text import PAD


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
        self.out_features = at_least("size", size, 1)
        self.sparse = sparse
        self.weight = nn.Parameter(torch.empty(at_least("vocabulary_size", vocabulary_size, 2), size))
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
