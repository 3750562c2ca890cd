"""Vectors -> vectors in context: bilstm, bigru, cnn and none, exact on padded batches."""

# B batch  T tokens  D features  H hidden units

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from routepool.errors import InputError
from routepool.layers.contract import Encoder, backward_suffices, register_encoder
from routepool.settings import TextConfig
from routepool.settings.declarations import whole_number
from routepool.text import TextReader


class Pretrained(NamedTuple):
    """What a pre-trained encoder comes with."""

    tokenizer: TextReader
    options: Mapping[str, Any]  # of its class
    weights: Mapping[str, Tensor]  # its state


class PretrainedEncoder(nn.Module):
    """Ids -> vectors in context: an encoder with an embedding and weights of its own, for the first level.

    A setting names it `KIND:SOURCE`, such as `hf:FOLDER`; a saved model names the kind alone and holds the rest.

    Args:
        vocabulary_size: ids are below it.
        hidden_size: ignored, the architecture has its own.
    """

    out_features: int
    rows: int  # ids are below it

    @classmethod
    def read(cls, source: str, config: TextConfig) -> Pretrained:
        """The encoder of a folder or a name, as it was published; texts are cut and split by `config`."""
        raise NotImplementedError

    @classmethod
    def files(cls, source: str) -> list[Path]:
        """What `read` reads."""
        raise NotImplementedError

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(B, T) ids, (B, T) bool -> (B, T, out_features), zeros on padding; what the padding holds is not read."""
        raise NotImplementedError

    @contextmanager
    def keeping_states(self) -> Iterator[None]:
        """Meanwhile, an encoder that does not learn may keep on disk what it computes of the training texts."""
        yield

    def parameters_by_layer(self) -> list[list[nn.Parameter]]:
        """The parameters of each layer, those nearest to the input first."""
        raise NotImplementedError


@register_encoder("none")
class NoEncoder(Encoder):
    """The vectors as they are, for a bag of words or an encoder of your own.

    >>> NoEncoder(4)(torch.ones(1, 2, 4)).shape
    torch.Size([1, 2, 4])
    """

    def __init__(self, in_features: int, hidden_size: int | None = None) -> None:
        super().__init__(in_features)

    def encode(self, states: Tensor, lengths: Tensor) -> Tensor:
        return states


class _Recurrent(Encoder):
    """Two one-way networks, the second on reversed rows.

    `pack_padded_sequence` gives the same numbers, but leaves torch's fast CPU kernels: benchmarks/encoder.py has the
    figures.
    """

    network: type[nn.LSTM] | type[nn.GRU]

    def __init__(self, in_features: int, hidden_size: int) -> None:
        super().__init__(in_features, hidden_size=hidden_size)
        self.out_features = 2 * hidden_size
        self.hidden_size = hidden_size
        self.forwards = self.network(in_features, hidden_size)
        self.backwards = self.network(in_features, hidden_size)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier for the matrices of each gate, zeros for the biases."""
        for name, parameter in self.named_parameters():
            if "weight" in name:
                for gate in parameter.chunk(len(parameter) // self.hidden_size):
                    nn.init.xavier_uniform_(gate)
            else:
                nn.init.zeros_(parameter)

    def encode(self, states: Tensor, lengths: Tensor) -> Tensor:
        batch, tokens, _ = states.shape
        mirrored = _reversal(lengths, tokens)
        rows = torch.arange(batch, device=lengths.device).unsqueeze(1)
        # Places in (B, T) in the order of (T, B), mirrored, and back: torch's kernels read the first tokens of all rows
        # first, so a row is reversed and turned in one go.
        there, back = (rows * tokens + mirrored).mT.flatten(), (mirrored * batch + rows).flatten()
        ahead, _ = self.forwards(states.transpose(0, 1))
        behind, _ = self.backwards(_Rearranged.of(states, there, back).view(tokens, batch, -1))
        behind = _Rearranged.of(behind, back, there).view(batch, tokens, -1)
        return torch.cat([ahead.transpose(0, 1), behind], dim=-1)


class _Rearranged(torch.autograd.Function):
    """Vectors in another order, each once; their gradients are put back by reading, not by adding."""

    @classmethod
    def of(cls, states: Tensor, order: Tensor, back: Tensor) -> Tensor:
        """(X, Y, D) and the order of its X * Y vectors, and the order that undoes it -> (X * Y, D)."""
        vectors = states.flatten(0, 1)
        if not vectors.requires_grad or not backward_suffices(vectors):
            return vectors.index_select(0, order)
        arranged: Tensor = cls.apply(vectors, order, back)  # type: ignore[no-untyped-call]
        return arranged

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, order: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return vectors.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (back,) = ctx.saved_tensors
        return gradient.index_select(0, back), None, None


@register_encoder("bilstm")
class BiLSTM(_Recurrent):
    """A long short-term memory in both directions (eq. 2-5).

    >>> BiLSTM(4, 3)(torch.randn(2, 5, 4)).shape
    torch.Size([2, 5, 6])
    """

    network = nn.LSTM

    def reset_parameters(self) -> None:
        """As for every recurrent encoder, and a forget bias of 1 as in the released code."""
        super().reset_parameters()
        for direction in (self.forwards, self.backwards):
            _, forget, _, _ = direction.get_parameter("bias_ih_l0").chunk(4)
            nn.init.ones_(forget)


@register_encoder("bigru")
class BiGRU(_Recurrent):
    """A gated recurrent unit in both directions.

    >>> BiGRU(4, 3)(torch.randn(2, 5, 4)).shape
    torch.Size([2, 5, 6])
    """

    network = nn.GRU


@register_encoder("cnn")
class CNN(Encoder):
    """Filters over n-grams around each token (Kim 2014), hidden_size of each width, ReLU.

    Args:
        in_features: size of a token's vector.
        hidden_size: filters of each width.
        widths: lengths of the n-grams: 1 to 32 of them, each of at most 1,000 words.

    >>> CNN(4, 3, widths=(1, 2))(torch.randn(2, 5, 4)).shape
    torch.Size([2, 5, 6])
    """

    def __init__(self, in_features: int, hidden_size: int, *, widths: tuple[int, ...] = (3, 4, 5)) -> None:
        if not 0 < len(widths) <= 32:
            raise InputError(f"widths must name 1 to 32 lengths of n-grams, got {len(widths)}")
        super().__init__(in_features, hidden_size=hidden_size)
        self.out_features = len(widths) * hidden_size
        self.widths = tuple(whole_number("widths", width, 1, 1000) for width in widths)
        self.filters = nn.ParameterList(torch.empty(hidden_size, in_features, width) for width in widths)
        self.bias = nn.Parameter(torch.empty(self.out_features))
        self.reset_parameters()

    def encode(self, states: Tensor, lengths: Tensor) -> Tensor:
        maps = [
            functional.conv1d(functional.pad(states.mT, ((width - 1) // 2, width // 2)), filters)
            for width, filters in zip(self.widths, self.filters, strict=True)
        ]
        return (torch.cat(maps, dim=1).mT + self.bias).relu()


def _reversal(lengths: Tensor, tokens: int) -> Tensor:
    """(B,) -> (B, T): the order that reads each row's real tokens backwards and leaves its padding."""
    place = torch.arange(tokens, device=lengths.device)
    mirrored = lengths.unsqueeze(1) - 1 - place
    return torch.where(mirrored >= 0, mirrored, place)
