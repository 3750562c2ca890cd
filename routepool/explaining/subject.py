"""The model that is explained, the question asked of it, and what it computes, watched and changed.

It is watched by hooks, so that nothing a level does is written a second time. The dense path is taken: one call of each
level, its rows in the order of the batch.
"""

# B texts  S sentences  T tokens  D features  M parts of a vector  C their size  K classes  N rows of a level (B or B S)

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from routepool.arrays import Flags, Floats, Floats32, Integers
from routepool.batching import Batch
from routepool.errors import InputError, unknown
from routepool.layers import Aggregator
from routepool.model import Classifier, Level
from routepool.persistence import SavedModel
from routepool.scoring.probabilities import check_finite, chosen, probabilities, usual_thresholds
from routepool.scoring.torch_backend import depth_of
from routepool.text import UNKNOWN, Encoded, TextReader, Tokenizer

BATCH, TOKENS = 64, 2**13  # texts and words, padding included, of a watched batch: gradients are kept for all of it
_UNKNOWN_PIECES = ("[UNK]", "<unk>", "[MASK]", "<mask>")

Change = Callable[[Batch, Tensor], AbstractContextManager[Any]]  # of a batch and its ids, while the model reads them


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """All that explaining needs of a model; the fields are those of `Predictor`."""

    model: Classifier
    tokenizer: TextReader
    labels: tuple[str, ...]
    multi_label: bool = False
    temperature: float = 1.0
    thresholds: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Thresholds that were not tuned are the usual ones."""
        usual = usual_thresholds(self.labels, multi_label=self.multi_label)
        object.__setattr__(self, "thresholds", self.thresholds or usual)

    @classmethod
    def of(cls, saved: SavedModel | None) -> Self:
        """The subject that a saved model is; an exported model has nothing that could be watched."""
        if saved is None:
            raise InputError("an exported model cannot be explained; load the folder it was exported from")
        same = ("tokenizer", "labels", "multi_label", "temperature", "thresholds")
        return cls(model=saved.classifier, **{name: getattr(saved, name) for name in same})

    @property
    def levels(self) -> list[Level]:
        """Of the model, words first."""
        return list(cast("Iterable[Level]", self.model.levels))

    @property
    def depth(self) -> int:
        """1 for words, 2 for sentences of words."""
        return depth_of(self.model)

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return next(self.model.parameters()).device

    @property
    def unknown(self) -> int:
        """The id of an unknown word; of pieces, the one their makers gave that name, else a mask's."""
        if isinstance(self.tokenizer, Tokenizer):
            return UNKNOWN
        return next((self.tokenizer.words.index(name) for name in _UNKNOWN_PIECES if name in self.tokenizer.words), 0)

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Texts as the model reads them."""
        return self.tokenizer.encode(texts, self.depth)

    def batches(
        self, encoded: Sequence[Encoded], *, batch_size: int = BATCH, tokens: int = TOKENS
    ) -> Iterator[tuple[Batch, Tensor, Tensor]]:
        """Texts of near-equal length together, with their ids and mask on the model's device."""
        for batch in Batch.by_length(encoded, self.depth, batch_size=batch_size, tokens=tokens):
            yield batch, torch.from_numpy(batch.ids).to(self.device), torch.from_numpy(batch.mask).to(self.device)

    def changed_logits(self, encoded: Sequence[Encoded], change: Change, **sizes: int) -> Floats32:
        """(N, K) logits of a model that is changed for each batch; the sizes are those of `batches`."""
        result = np.empty((len(encoded), len(self.labels)), dtype=np.float32)
        for batch, ids, mask in self.batches(encoded, **sizes):
            with reading(self.model), torch.inference_mode(), change(batch, ids):
                result[batch.rows] = self.model(ids, mask, grouped=False).float().numpy(force=True)
        return result

    def probabilities(self, logits: Floats) -> Floats:
        """Calibrated, as the predictor gives them."""
        check_finite(logits)
        return probabilities(logits, temperature=self.temperature, multi_label=self.multi_label)

    def predicted(self, probabilities: Floats) -> list[tuple[str, ...]]:
        """The labels of each text."""
        return chosen(probabilities, self.labels, self.thresholds)

    def decided(self, probabilities: Floats, targets: Integers) -> Flags | Integers:
        """What the model decides of each text, (B, K) -> (B,): its label; of several, whether it has the target's."""
        if self.thresholds is None:
            return np.asarray(probabilities.argmax(1))
        own = probabilities[np.arange(len(targets)), targets]
        return np.asarray(own >= np.asarray(self.thresholds)[targets], dtype=np.bool_)

    def place(self, label: str) -> int:
        """The logit of a label; an unknown one is an error that suggests the right one."""
        if label not in self.labels:
            raise unknown("label", label, self.labels)
        return self.labels.index(label)

    def evidence(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(B, K), (B,) -> (B,): the log-odds of each text's label, calibrated.

        Not its logit: adding a number to all logits of a softmax changes no prediction, and must change no score.
        """
        scaled = logits / self.temperature
        of_label = scaled.gather(1, targets.unsqueeze(1)).squeeze(1)
        if self.multi_label:
            return of_label
        if len(self.labels) == 1:
            return of_label * 0
        others = scaled.scatter(1, targets.unsqueeze(1), -torch.inf)
        return of_label - others.logsumexp(1)

    def evidence_of(self, logits: Floats, targets: Integers) -> Floats:
        """The same for arrays."""
        found: Floats = self.evidence(torch.from_numpy(np.float64(logits)), torch.from_numpy(targets)).numpy()
        return found


class LevelPass(NamedTuple):
    """What the aggregator of one level saw and made."""

    aggregator: Aggregator
    states: Tensor  # (N, T, D)
    mask: Tensor  # (N, T)
    vectors: Tensor  # (N, M C)
    weights: Tensor  # (N, T, M)

    @property
    def parts(self) -> Tensor:
        """(N, M, C): the vectors, cut into the parts that the weights belong to."""
        return self.vectors.reshape(len(self.vectors), self.aggregator.parts.number, -1)


class Pass(NamedTuple):
    """What a model computes from ids to logits."""

    logits: Tensor  # (B, K)
    embedded: Tensor  # (N, T, D), the word vectors; empty for a pre-trained encoder, which has them inside
    levels: tuple[LevelPass, ...]  # words first


def watch(model: Classifier, ids: Tensor, mask: Tensor, *, embedded: Callable[[Tensor], Tensor] | None = None) -> Pass:
    """Read a batch as a model that does not train, and keep what its levels saw.

    Args:
        model: the classifier.
        ids: (B, T) or (B, S, T).
        mask: of the same shape.
        embedded: makes other word vectors (N, T, D) of those looked up.
    """
    kept: list[Tensor] = []
    seen: list[LevelPass] = []

    def look_up(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        # A leaf of the graph: gradients end here and not in the table.
        kept.append((embedded(output) if embedded else output).detach().requires_grad_(torch.is_grad_enabled()))
        return kept[-1]

    def aggregate(layer: nn.Module, inputs: Any, output: Any) -> None:
        seen.append(LevelPass(cast(Aggregator, layer), *inputs, *output))

    with reading(model), ExitStack() as hooks:
        for level in cast("Iterable[Level]", model.levels):
            hooks.enter_context(level.aggregator.register_forward_hook(aggregate))
            if level.embedding is not None:
                hooks.enter_context(level.embedding.register_forward_hook(look_up))
        logits = model(ids, mask, grouped=False)
    return Pass(logits, kept[0] if kept else logits.new_empty(0), tuple(seen))


def slope_of(aggregator: Aggregator, sums: Tensor, slope: Tensor) -> Tensor:
    """The gradient for what the aggregator's parts received (N, M, C), given that for its vector (N, M C)."""
    sums = sums.detach().requires_grad_()
    with torch.enable_grad():
        vector = aggregator.vector_of(sums)
    return torch.autograd.grad(vector, sums, slope)[0]


def without_capsule(model: Classifier, seen: Pass, place: int, capsule: int, row: int | slice = slice(None)) -> Tensor:
    """Logits (B, K) with one capsule of a level set to zero: in the vector of one sentence, or in all of a text."""
    level, texts = seen.levels[place], len(seen.logits)
    capsules = level.parts.reshape(texts, -1, *level.parts.shape[1:]).clone()
    capsules[:, row, capsule] = 0
    vectors, mask = capsules.flatten(2), level.mask.any(-1).reshape(texts, -1)
    is_last = place + 1 == len(seen.levels)
    return upwards(model, place + 1, *((vectors[:, 0], mask[:, 0]) if is_last else (vectors, mask)))


def upwards(model: Classifier, place: int, states: Tensor, mask: Tensor) -> Tensor:
    """Logits of what the levels below `place` made: vectors (B, S, D) with their mask, or (B, D) for the head alone."""
    with reading(model):
        return model.upwards(place, states, mask, grouped=False).logits


@contextmanager
def reading(model: Classifier) -> Iterator[None]:
    """The model does not train meanwhile."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
