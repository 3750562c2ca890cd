"""The model: levels of dropout, encoder and aggregator, one for words, one for sentences, as many as the text has."""

# B batch  S sentences  T tokens  D features  M parts of a vector  K classes  N rows folded together

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from routepool.arrays import Integers
from routepool.errors import InputError, unknown
from routepool.layers.blocks import Dropout, Embedding, LockedDropout
from routepool.layers.contract import Aggregator, Encoder, Head, plain_values
from routepool.layers.encoders import PretrainedEncoder
from routepool.printable import plural
from routepool.registry import Registry
from routepool.settings import AGGREGATORS, ENCODERS, HEADS, PRETRAINED, ModelConfig

Part = TypeVar("Part", bound=nn.Module)
ABOVE_PRETRAINED = "bilstm"  # sentences, unless `upper_encoder` says otherwise
HEAD = "mlp"  # of every model that settings build
# A pass through an encoder costs about as much as this many tokens, however few it reads (benchmarks/encoder.py), so a
# group of its own must save more padding than that.
PASS_COST = 96


class Trace(NamedTuple):
    """What a model computed on the way, in the order of its input."""

    logits: Tensor  # (B, K)
    vector: Tensor  # (B, size), the text's encoding
    weights: tuple[Tensor, ...]  # words first: (B, S, T, M), then (B, S, M); 0 on padding


class Reading(NamedTuple):
    """What a level computed, in the order of its input."""

    vectors: Tensor  # (..., out_features), zeros for an empty row
    weights: Tensor  # (..., T, M), of the aggregator
    states: Tensor | None  # (..., T, D), what the aggregator read, 0 on padding; None unless asked for


class Level(nn.Module):
    """The tokens of one axis into one vector: words into a sentence, sentences into a document.

    All axes before that one are folded into rows, so the same code serves any depth.

    Args:
        encoder: puts a row's tokens in context. One that is pre-trained reads ids, without an embedding.
        aggregator: makes them one vector.
        embedding: for the first level, which is given ids.
        dropout: share of values dropped in training.
        locked: before the encoder, drop the same features at every token of a row.
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
        """The vectors of `trace`."""
        return self.trace(inputs, mask, grouped=grouped).vectors

    def trace(self, inputs: Tensor, mask: Tensor, *, grouped: bool = True, keep_states: bool = False) -> Reading:
        """Read every row.

        Args:
            inputs: (..., T) ids for the first level, (..., T, D) vectors for the others.
            mask: (..., T) bool, True at real tokens.
            grouped: drop empty rows and compute rows of near-equal length together; the dense path, which a
                compiled graph and `torch.func` always take, gives the same numbers.
            keep_states: return what the aggregator read, too.
        """
        rows, real = inputs.flatten(0, mask.ndim - 2), mask.flatten(0, -2)
        if grouped and plain_values() and not real.all() and real.any():
            vectors, weights, states = self._read_grouped(rows, real, keep_states=keep_states)
        else:
            vectors, weights, states = self._aggregate(self._encode(rows, real), real, keep_states=keep_states)
        return Reading(
            vectors.reshape(*mask.shape[:-1], vectors.shape[-1]),
            weights.reshape(*mask.shape, weights.shape[-1]),
            None if states is None else states.reshape(*mask.shape, states.shape[-1]),
        )

    def _encode(self, rows: Tensor, mask: Tensor) -> Tensor:
        if isinstance(self.encoder, PretrainedEncoder):  # ids cannot be dropped; its states, which new layers read, can
            states: Tensor = self.before_encoder(self.encoder(rows, mask))
            return states
        states = rows if self.embedding is None else self.embedding(rows)
        encoded: Tensor = self.encoder(self.before_encoder(states), mask)
        return encoded

    def _aggregate(self, states: Tensor, mask: Tensor, *, keep_states: bool) -> Reading:
        vectors, weights = self.aggregator(states, mask)
        return Reading(self.after_aggregator(vectors), weights, states if keep_states else None)

    def _read_grouped(self, rows: Tensor, mask: Tensor, *, keep_states: bool) -> Reading:
        """In groups for the aggregator, each in smaller groups for the encoder, to which a token costs more."""
        groups, tokens = group_rows(mask, self.aggregator.pass_cost), mask.shape[1]
        read = [self._read_group(rows[some, :cut], mask[some, :cut], keep_states=keep_states) for some, cut in groups]
        order = torch.cat([group.rows for group in groups])
        states = [group.states for group in read if group.states is not None]
        return Reading(
            _put_back(torch.cat([group.vectors for group in read]), order, len(rows)),
            _put_back(_stacked([group.weights for group in read], tokens), order, len(rows)),
            _put_back(_stacked(states, tokens), order, len(rows)) if keep_states else None,
        )

    def _read_group(self, rows: Tensor, mask: Tensor, *, keep_states: bool) -> Reading:
        """Rows in the order of their lengths, the longest first, which the groups for the encoder leave as it is."""
        states = [self._encode(rows[some, :cut], mask[some, :cut]) for some, cut in group_rows(mask)]
        return self._aggregate(_stacked(states, mask.shape[1]), mask, keep_states=keep_states)


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
        size = vocabulary_size if pretrained else config.embedding_size
        embedding = None if pretrained else Embedding(vocabulary_size, size, sparse=sparse)
        name, options = config.encoder, config.encoder_options
        upper = config.upper_encoder or (ABOVE_PRETRAINED if pretrained else "")
        dropout, places, locked = config.dropout, config.dropout_places, config.dropout_kind == "locked"
        levels: list[Level] = []
        for depth in range(config.depth):
            if depth > 0 and upper:
                name, options = upper, {}
            table: Registry[Any] = PRETRAINED if pretrained and depth == 0 else ENCODERS
            encoder: Encoder | PretrainedEncoder = construct(table, name, options, size, config.hidden_size)
            aggregator = construct(AGGREGATORS, config.aggregator, config.aggregator_options, encoder.out_features)
            size = aggregator.out_features
            first = None if depth else embedding
            levels.append(Level(encoder, aggregator, embedding=first, dropout=dropout, locked=locked, places=places))
        of_head = {"hidden_size": config.head_size, "dropout": dropout, "places": places}
        return cls(levels, construct(HEADS, HEAD, of_head, size, classes))

    @property
    def rows(self) -> int:
        """How many words or pieces have a vector: ids are below it."""
        first = cast(Level, self.levels[0])
        return cast(PretrainedEncoder, first.encoder).rows if first.embedding is None else len(first.embedding.weight)

    def forward(self, ids: Tensor, mask: Tensor, *, grouped: bool = True) -> Tensor:
        """Logits (B, K) of texts given as ids and mask, (B, T), (B, S, T) or deeper."""
        return self.trace(ids, mask, grouped=grouped).logits

    def trace(self, ids: Tensor, mask: Tensor, *, grouped: bool = True) -> Trace:
        """Logits, the text's vector, and the weights of every level."""
        self._check(ids, mask)
        return self.upwards(0, ids, mask, grouped=grouped)

    def upwards(self, place: int, inputs: Tensor, mask: Tensor, *, grouped: bool = True) -> Trace:
        """The levels from `place` on, and the head, on what the level below made.

        Args:
            place: of the first level that reads, 0 for the words.
            inputs: (B, ..., T) ids or (B, ..., T, D) vectors; (B, D) for the head alone.
            mask: (B, ..., T); (B,) for the head alone.
            grouped: as for a level.
        """
        states, tokens, weights = None, mask, []
        for level in list(cast("Iterable[Level]", self.levels))[place:]:  # ids -> words -> sentences -> document
            keep = self.head.explained_by == "states" and level is self.levels[-1]
            inputs, of_level, states = level.trace(inputs, mask, grouped=grouped, keep_states=keep)
            weights.append(of_level)
            tokens, mask = mask, mask.any(-1)
        return Trace(self.head(states, tokens, inputs), inputs, tuple(weights))

    def _check(self, ids: Tensor, mask: Tensor) -> None:
        if ids.ndim != len(self.levels) + 1:
            raise InputError(
                f"a model of {plural(len(self.levels), 'level')} reads ids of {len(self.levels) + 1} axes, "
                f"got {tuple(ids.shape)}"
            )
        if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
            raise InputError(f"ids must be whole numbers, got {ids.dtype}")
        if mask.dtype != torch.bool or mask.shape != ids.shape:
            raise InputError(f"mask must be bool {tuple(ids.shape)} like the ids, got {mask.dtype} {tuple(mask.shape)}")


def construct(table: Registry[type[Part]], name: str, options: Mapping[str, Any], *sizes: int) -> Part:
    """Build a registered class, its options checked against its own signature."""
    cls: Callable[..., Part] = table[name]
    known = [option for option, item in signature(cls).parameters.items() if item.kind is Parameter.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
    return cls(*sizes, **options)


class Group(NamedTuple):
    """Rows to be computed in one pass, cut at the longest of them."""

    rows: Tensor  # indices into N
    longest: int


def group_rows(mask: Tensor, pass_cost: int = PASS_COST) -> list[Group]:
    """Split the non-empty rows of a mask (N, T), the longest first, so that the sum of longest x rows + cost is least.

    >>> mask = torch.arange(200) < torch.tensor([[3], [200], [0], [2]])
    >>> [(group.rows.tolist(), group.longest) for group in group_rows(mask)]
    [([1], 200), ([0, 3], 3)]
    """
    place = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    ends, order = (mask * place).amax(1).sort(descending=True, stable=True)
    lengths, counts = np.unique(ends.numpy(force=True), return_counts=True)
    lengths, counts = lengths[::-1], counts[::-1]
    if len(lengths) and lengths[-1] == 0:
        lengths, counts = lengths[:-1], counts[:-1]
    rows_before = np.concatenate([[0], counts.cumsum()])
    cuts = _best_cuts(lengths, rows_before, pass_cost)
    return [Group(order[rows_before[start] : rows_before[end]], int(lengths[start])) for start, end in pairwise(cuts)]


def _best_cuts(lengths: Integers, rows_before: Integers, pass_cost: int) -> list[int]:
    """Where to cut the falling lengths, by dynamic programming over the start of the last group."""
    cost = np.zeros(len(lengths) + 1)
    start_of_last = np.zeros(len(lengths) + 1, dtype=np.int64)
    for end in range(1, len(lengths) + 1):
        rows = rows_before[end] - rows_before[:end]
        candidates = cost[:end] + lengths[:end] * rows + pass_cost
        start_of_last[end] = candidates.argmin()
        cost[end] = candidates.min()
    cuts = [len(lengths)]
    while cuts[-1] > 0:
        cuts.append(int(start_of_last[cuts[-1]]))
    return cuts[::-1]


def _stacked(parts: Sequence[Tensor], tokens: int) -> Tensor:
    """Rows (N, up to tokens, D) of several parts behind one another, padded with zeros: (all N, tokens, D)."""
    if len(parts) == 1 and parts[0].shape[1] == tokens:
        return parts[0]
    return torch.cat([functional.pad(part, (0, 0, 0, tokens - part.shape[1])) for part in parts])


def _put_back(rows: Tensor, order: Tensor, number: int) -> Tensor:
    """Rows computed in some order, at their places among `number` rows; zeros where none was computed."""
    return rows.new_zeros(number, *rows.shape[1:]).index_copy(0, order, rows)
