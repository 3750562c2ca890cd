"""The model that is explained, and the question asked of it: what speaks for this label?"""

# B texts  K classes

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from routepool.errors import unknown
from routepool.model import Classifier
from routepool.persistence import SavedModel
from routepool.scoring.probabilities import check_finite, chosen, probabilities, usual_thresholds
from routepool.scoring.torch_backend import depth_of
from routepool.text import UNKNOWN, Encoded, TextReader, Tokenizer

Floats = NDArray[np.floating]
Integers = NDArray[np.int64]
_UNKNOWN_PIECES = ("[UNK]", "<unk>", "[MASK]", "<mask>")


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
    def of(cls, saved: SavedModel) -> Self:
        """The subject that a saved model is."""
        same = ("tokenizer", "labels", "multi_label", "temperature", "thresholds")
        return cls(model=saved.classifier, **{name: getattr(saved, name) for name in same})

    @property
    def depth(self) -> int:
        """1 for words, 2 for sentences of words."""
        return depth_of(self.model)

    @property
    def unknown(self) -> int:
        """The id that stands for a word not known; of pieces, the one their makers gave that name, else a mask's."""
        if isinstance(self.tokenizer, Tokenizer):
            return UNKNOWN
        return next((self.tokenizer.words.index(name) for name in _UNKNOWN_PIECES if name in self.tokenizer.words), 0)

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Texts as the model reads them."""
        return self.tokenizer.encode(texts, self.depth)

    def probabilities(self, logits: Floats) -> NDArray[np.float64]:
        """Calibrated, as the predictor gives them."""
        check_finite(logits)
        return probabilities(logits, temperature=self.temperature, multi_label=self.multi_label)

    def predicted(self, probabilities: Floats) -> list[tuple[str, ...]]:
        """The labels of each text."""
        return chosen(probabilities, self.labels, self.thresholds)

    def decided(self, probabilities: Floats, targets: Integers) -> NDArray[np.bool_] | NDArray[np.int64]:
        """What the model decides of each text, (B, K) -> (B,): its label; of several, whether it has the target's."""
        if self.thresholds is None:
            return np.asarray(probabilities.argmax(1), dtype=np.int64)
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

    def evidence_of(self, logits: Floats, targets: Integers) -> NDArray[np.float64]:
        """The same for arrays."""
        found = self.evidence(torch.from_numpy(np.asarray(logits, np.float64)), torch.from_numpy(targets))
        return np.asarray(found.numpy(), dtype=np.float64)
