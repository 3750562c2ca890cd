"""The model: levels of dropout, encoder and aggregator, one for words, one for sentences, as many as the text has."""

# B batch  S sentences  T tokens  D features  M units of weight  K classes  N rows folded together

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, NamedTuple, Self, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from routepool.errors import InputError, unknown
from routepool.layers.aggregation import Aggregator
from routepool.layers.dropout import Dropout, LockedDropout
from routepool.layers.embedding import Embedding
from routepool.layers.encoders import Encoder, PretrainedEncoder
from routepool.layers.grouping import group_rows
from routepool.layers.head import Head
from routepool.layers.transforms import plain_values
from routepool.registry import Registry
from routepool.settings import AGGREGATORS, ENCODERS, PRETRAINED, ModelConfig

Part = TypeVar("Part", Encoder, PretrainedEncoder, Aggregator)
ABOVE_PRETRAINED = "bilstm"  # sentences, unless `upper_encoder` says otherwise


class Trace(NamedTuple):
    """What a model computed on the way, in the order of its input."""

    logits: Tensor  # (B, K)
    vector: Tensor  # (B, size), the text's encoding
    weights: tuple[Tensor, ...]  # words first: (B, S, T, M), then (B, S, M); 0 on padding


class Level(nn.Module):
    """The units of one axis into one vector: words into a sentence, sentences into a document.

    All axes before that one are folded into rows, so the same code serves any depth.

    Args:
        encoder: puts a row's units in context. One that is pre-trained reads ids, without an embedding.
        aggregator: makes them one vector.
        embedding: for the first level, which is given ids.
        dropout: share of values dropped in training.
        locked: before the encoder, drop the same features at every unit of a row.
        places: where: "embedding", "encoder" (before it), "aggregator" (after it).
    """

    def __init__(
        self,
        encoder: Encoder | PretrainedEncoder,
        aggregator: Aggregator,
        *,
        embedding: Embedding | None = None,
        dropout: float = 0.0,
        locked: bool = False,
        places: Collection[str] = ("encoder",),
    ) -> None:
        super().__init__()
        self.embedding = embedding
        before = "encoder" in places or (embedding is not None and "embedding" in places)
        self.before_encoder = (LockedDropout if locked else Dropout)(dropout if before else 0)
        self.encoder = encoder
        self.aggregator = aggregator
        self.after_aggregator = Dropout(dropout if "aggregator" in places else 0)

    def forward(self, inputs: Tensor, mask: Tensor, *, grouped: bool = True) -> Tensor:
        """Read every row.

        Args:
            inputs: (..., T) ids for the first level, (..., T, D) vectors for the others.
            mask: (..., T) bool, True at real units.
            grouped: drop empty rows and compute rows of near-equal length together; the dense path, which a
                compiled graph and `torch.func` always take, gives the same numbers.

        Returns:
            (..., out_features), zeros for an empty row.
        """
        return self.trace(inputs, mask, grouped=grouped)[0]

    def trace(self, inputs: Tensor, mask: Tensor, *, grouped: bool = True) -> tuple[Tensor, Tensor]:
        """The vectors of `forward` and the weights (..., T, M) of the aggregator."""
        read = self._read_grouped if grouped and plain_values() else self._read
        vectors, weights = read(inputs.flatten(0, mask.ndim - 2), mask.flatten(0, -2))
        return vectors.reshape(*mask.shape[:-1], -1), weights.reshape(*mask.shape, -1)

    def _read(self, rows: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return self._aggregate(self._encode(rows, mask), mask)

    def _aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        vectors, weights = self.aggregator(states, mask)
        return self.after_aggregator(vectors), weights

    def _encode(self, rows: Tensor, mask: Tensor) -> Tensor:
        if isinstance(self.encoder, PretrainedEncoder):  # ids cannot be dropped out: what the new layers read is
            states: Tensor = self.before_encoder(self.encoder(rows, mask))
            return states
        states = rows if self.embedding is None else self.embedding(rows)
        encoded: Tensor = self.encoder(self.before_encoder(states), mask)
        return encoded

    def _read_grouped(self, rows: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """In groups for the aggregator, each in smaller groups for the encoder, which asks more of a token."""
        groups = group_rows(mask, self.aggregator.pass_cost)
        if not groups or mask.all():
            return self._read(rows, mask)
        read = [self._read_group(rows[some, :cut], mask[some, :cut]) for some, cut in groups]
        order = torch.cat([group.rows for group in groups])
        vectors = torch.cat([of_group for of_group, _ in read])
        weights = _stacked([of_group for _, of_group in read], mask.shape[1])
        return _put_back(vectors, order, len(rows)), _put_back(weights, order, len(rows))

    def _read_group(self, rows: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Rows in the order of their lengths, the longest first, which the groups for the encoder leave as it is."""
        states = [self._encode(rows[some, :cut], mask[some, :cut]) for some, cut in group_rows(mask)]
        return self._aggregate(_stacked(states, mask.shape[1]), mask)


class Classifier(nn.Module):
    """Text -> logits, by the flow of the paper: embedding, encoding, aggregation, prediction.

    One class for sentences (B, T), documents (B, S, T) and deeper texts: as many levels as the ids have axes after the
    first, each with its own encoder, aggregator and dropout.

    >>> model = Classifier.build(ModelConfig(depth=2, hidden_size=8), vocabulary_size=100, classes=3)
    >>> ids = torch.tensor([[[5, 6, 7], [8, 0, 0]]])
    >>> model(ids, ids != 0).shape
    torch.Size([1, 3])
    >>> [tuple(weights.shape) for weights in model.trace(ids, ids != 0).weights]
    [(1, 2, 3, 5), (1, 2, 5)]
    """

    def __init__(self, levels: Sequence[Level], head: Head) -> None:
        super().__init__()
        self.levels = nn.ModuleList(levels)
        self.head = head

    @classmethod
    def build(cls, config: ModelConfig, *, vocabulary_size: int, classes: int, sparse: bool = True) -> Self:
        """A new model of these settings, its weights drawn from torch's generator."""
        pretrained = config.encoder in PRETRAINED.names()
        embedding = None if pretrained else Embedding(vocabulary_size, config.embedding_size, sparse=sparse)
        dropout, places = config.dropout, config.dropout_places
        levels: list[Level] = []
        size = vocabulary_size if pretrained else config.embedding_size
        for depth in range(config.depth):
            encoder = _encoder(config, depth, size)
            aggregator = construct(AGGREGATORS, config.aggregator, config.aggregator_options, encoder.out_features)
            size = aggregator.out_features
            first = embedding if depth == 0 else None
            locked = config.dropout_kind == "locked"
            levels.append(Level(encoder, aggregator, embedding=first, dropout=dropout, locked=locked, places=places))
        return cls(levels, Head(size, classes, hidden_size=config.head_size, dropout=dropout, places=places))

    @property
    def rows(self) -> int:
        """How many words or pieces have a vector: ids are below it."""
        first = cast(Level, self.levels[0])
        return cast(PretrainedEncoder, first.encoder).rows if first.embedding is None else len(first.embedding.weight)

    def forward(self, ids: Tensor, mask: Tensor, *, grouped: bool = True) -> Tensor:
        """Logits (B, K) of texts given as ids and mask, (B, T), (B, S, T) or deeper."""
        self._check(ids, mask)
        states = ids
        for level in self.levels:  # ids -> words -> sentences -> document
            states, mask = level(states, mask, grouped=grouped), mask.any(-1)
        logits: Tensor = self.head(states)
        return logits

    def trace(self, ids: Tensor, mask: Tensor, *, grouped: bool = True) -> Trace:
        """Logits, the text's vector, and the weights of every level."""
        self._check(ids, mask)
        states = ids
        weights: list[Tensor] = []
        for level in cast("Iterable[Level]", self.levels):
            states, of_level = level.trace(states, mask, grouped=grouped)
            weights.append(of_level)
            mask = mask.any(-1)
        return Trace(self.head(states), states, tuple(weights))

    def _check(self, ids: Tensor, mask: Tensor) -> None:
        if ids.ndim != len(self.levels) + 1:
            raise InputError(
                f"a model of {len(self.levels)} levels reads ids of {len(self.levels) + 1} axes, got {tuple(ids.shape)}"
            )
        if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
            raise InputError(f"ids must be whole numbers, got {ids.dtype}")
        if mask.dtype != torch.bool or mask.shape != ids.shape:
            raise InputError(f"mask must be bool {tuple(ids.shape)} like the ids, got {mask.dtype} {tuple(mask.shape)}")


def _encoder(config: ModelConfig, depth: int, size: int) -> Encoder | PretrainedEncoder:
    """The encoder of a level: a pre-trained one reads ids, so those above it are of another kind."""
    name, options, hidden_size = config.encoder, config.encoder_options, config.hidden_size
    if name in PRETRAINED.names():
        if depth == 0:
            return construct(PRETRAINED, name, options, size, hidden_size)
        name, options = ABOVE_PRETRAINED, {}
    if depth > 0 and config.upper_encoder:
        name, options = config.upper_encoder, {}
    return construct(ENCODERS, name, options, size, hidden_size)


def construct(table: Registry[type[Part]], name: str, options: Mapping[str, Any], *sizes: int) -> Part:
    """Build a registered class, its options checked against its own signature."""
    cls: Callable[..., Part] = table[name]
    known = [option for option, item in signature(cls).parameters.items() if item.kind is Parameter.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
    return cls(*sizes, **options)


def _stacked(parts: Sequence[Tensor], tokens: int) -> Tensor:
    """Rows (N, up to tokens, D) of several parts behind one another, padded with zeros: (all N, tokens, D)."""
    if len(parts) == 1 and parts[0].shape[1] == tokens:
        return parts[0]
    return torch.cat([functional.pad(part, (0, 0, 0, tokens - part.shape[1])) for part in parts])


def _put_back(rows: Tensor, order: Tensor, number: int) -> Tensor:
    """Rows computed in some order, at their places among `number` rows; zeros where none was computed."""
    return rows.new_zeros(number, *rows.shape[1:]).index_copy(0, order, rows)
