"""What is learned and how well: targets, loss and score, for one label or several."""

# N texts  K classes

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from routepool.arrays import Floats32
from routepool.errors import InputError
from routepool.text import Encoded

logger = logging.getLogger(__name__)

MOST_WEIGHT = 10.0  # of a class against one of average size: beyond it a few rare texts would rule the gradient
UNLABELLED = -1  # the target of a text whose labels nobody knows


@dataclass(frozen=True, eq=False)
class Examples:
    """Encoded texts and what is to be learned of them.

    Args:
        encoded: N texts.
        targets: (N,) or (N, K), see `Objective.targets`.
        weights: (N,) of the texts in the loss, None for all alike.
        teacher_logits: (N, K) what teachers answer; None to learn from labels.
    """

    encoded: Sequence[Encoded]
    targets: NDArray[np.int64]
    weights: Floats32 | None = None
    teacher_logits: Floats32 | None = None


@dataclass(frozen=True)
class Objective:
    """Cross-entropy and accuracy for one label a text, binary cross-entropy and micro F1 for several.

    A student learns the logits of its teachers by squared error, and its labels with a share of `label_weight`.

    Args:
        labels: names of the classes, in the order of the logits.
        multi_label: a text may have any number of labels.
        weights: (K,) of the classes in the loss, None for all alike.
        label_weight: share of the labels in a student's loss; the squared error has the rest of 1.
    """

    labels: tuple[str, ...]
    multi_label: bool = False
    weights: Tensor | None = None
    label_weight: float = 0.0

    def targets(self, labels: Sequence[Sequence[str] | None]) -> NDArray[np.int64]:
        """(N,) numbers of the classes, or (N, K) zeros and ones; UNLABELLED for a text whose labels are None.

        >>> Objective(("bad", "good")).targets([["good"], ["bad"]]).tolist()
        [1, 0]
        >>> Objective(("a", "b"), multi_label=True).targets([["a", "b"], []]).tolist()
        [[1, 1], [0, 0]]
        >>> Objective(("bad", "good")).targets([["good"], None]).tolist()
        [1, -1]
        """
        places = {label: place for place, label in enumerate(self.labels)}
        for number, of_text in enumerate(labels, 1):
            for label in of_text or ():
                if label not in places:
                    raise InputError(f"unknown label {label!r}; the model knows {', '.join(self.labels[:20])}")
            if not self.multi_label and of_text is not None and len(of_text) != 1:
                raise InputError(f"text {number} must have one label, got {len(of_text)}; or use multi_label")
        if not self.multi_label:
            return np.array([places[one[0]] if one else UNLABELLED for one in labels], dtype=np.int64)
        table = np.zeros((len(labels), len(self.labels)), dtype=np.int64)
        for row, of_text in enumerate(labels):
            if of_text is None:
                table[row] = UNLABELLED
            else:
                table[row, [places[label] for label in of_text]] = 1
        return table

    def loss(
        self,
        logits: Tensor,
        targets: Tensor,
        text_weights: Tensor | None = None,
        teacher_logits: Tensor | None = None,
    ) -> Tensor:
        """Mean over the texts of their losses, each times its weight.

        Args:
            logits: (B, K).
            targets: (B,) or (B, K), as of `targets`.
            text_weights: (B,), None for all alike. They are not divided by their sum: a batch of heavy texts counts
                for more.
            teacher_logits: (B, K), what a student is to answer; None for a model that learns from labels.
        """
        if teacher_logits is None:
            each = self._losses(logits, targets)
        else:
            each = self._student_losses(logits, targets, teacher_logits)
        return each.mean() if text_weights is None else (each * text_weights).mean()

    def _losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        weights = None if self.weights is None else self.weights.to(logits.device)
        if self.multi_label:
            wanted = targets.to(logits.dtype)
            bits = functional.binary_cross_entropy_with_logits(logits, wanted, pos_weight=weights, reduction="none")
            return bits.mean(1)
        each = functional.cross_entropy(logits, targets, reduction="none")
        return each if weights is None else each * weights[targets]

    def _student_losses(self, logits: Tensor, targets: Tensor, teacher_logits: Tensor) -> Tensor:
        of_teacher = functional.mse_loss(logits, teacher_logits, reduction="none").mean(1)
        if self.label_weight == 0:
            return of_teacher
        known: Tensor = is_labelled(targets)
        of_labels = self._losses(logits, targets.clamp(min=0)) * known
        return (1 - self.label_weight) * of_teacher + self.label_weight * of_labels

    def score(self, logits: Floats32, targets: NDArray[np.int64]) -> float:
        """The score of dev, from 0 to 1, which decides when to stop.

        >>> Objective(("bad", "good")).score(np.array([[0.1, 0.9], [0.3, 0.2]], np.float32), np.array([1, 1]))
        0.5
        """
        if not self.multi_label:
            return float((logits.argmax(1) == targets).mean())
        predicted = logits > 0
        hits = (predicted & (targets == 1)).sum()
        return float(2 * hits / max(predicted.sum() + targets.sum(), 1))


def is_labelled(targets: Any) -> Any:
    """(N,) which texts have labels; targets are an array or a tensor."""
    return (targets if targets.ndim == 1 else targets[:, 0]) != UNLABELLED


def balanced_weights(targets: NDArray[np.int64], classes: int, text_weights: Floats32 | None = None) -> Tensor:
    """(K,) weights inverse to the frequency of the classes, capped, with a mean of 1 over the texts before the cap.

    Args:
        targets: (N,) or (N, K).
        classes: their number K.
        text_weights: (N,) with a mean of 1: a text of weight 2 counts twice.

    >>> balanced_weights(np.array([0, 0, 0, 1]), 2).tolist()
    [0.6666666865348816, 2.0]
    """
    multi_label = targets.ndim == 2
    counted = np.ones(len(targets)) if text_weights is None else text_weights
    present = counted @ targets if multi_label else np.bincount(targets, counted, minlength=classes)
    # For several labels the weight is that of a positive against the negatives of its own class.
    wanted = (len(targets) - present if multi_label else len(targets) / classes) / np.maximum(present, 1)
    if wanted.max(initial=0) > MOST_WEIGHT:
        logger.warning(
            "the rarest class has %d of %d texts: its weight of %.0f is capped at %.0f; more texts of it would help",
            present.min(), len(targets), wanted.max(), MOST_WEIGHT,
        )  # fmt: skip
    return torch.from_numpy(np.minimum(wanted, MOST_WEIGHT).astype(np.float32))
