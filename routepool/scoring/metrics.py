"""How good predictions are: scores with an interval, a table of the classes, confusion and calibration. NumPy only."""

# N texts  K classes

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from routepool.arrays import Flags, Floats
from routepool.errors import InputError
from routepool.scoring.probabilities import chosen

BINS = 15
FEWEST = 100  # texts for a calibration error: of fewer, a bin holds one or two
_Z = 1.959963984540054  # of a 95 % interval


@dataclass(frozen=True)
class ClassScore:
    """How well one label is found; 0 where a quotient has no denominator."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int  # texts that have the label


@dataclass(frozen=True)
class Evaluation:
    """The scores of one set, as fractions.

    Args:
        examples: texts.
        accuracy: share of texts with the right label, or with exactly the right set of labels.
        accuracy_low: lower end of its 95 % interval (Wilson).
        accuracy_high: upper end.
        macro_f1: mean F1 of the labels that occur, in truth or in predictions.
        micro_f1: F1 of all label decisions together.
        calibration_error: mean gap between confidence and accuracy in 15 bins of confidence; for one label a text and
            at least 100 texts, since that of fewer is chance.
        brier: mean squared error of the probabilities, summed over the classes, halved for two of them as
            scikit-learn does; one label a text only.
        classes: one for each label.
        confusion: a row of counts for each true label, a column for each predicted one; one label a text only.
    """

    examples: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    macro_f1: float
    micro_f1: float
    calibration_error: float | None
    brier: float | None
    classes: tuple[ClassScore, ...]
    confusion: tuple[tuple[int, ...], ...] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def evaluate(
    truth: Sequence[Sequence[str]],
    probabilities: Floats,
    labels: Sequence[str],
    *,
    thresholds: Sequence[float] | None = None,
) -> Evaluation:
    """Score probabilities against the truth.

    Args:
        truth: the labels of each text; one each, unless there are thresholds.
        probabilities: (N, K), in the order of `labels`.
        labels: every label the model knows.
        thresholds: of a multi-label model, one for each label.

    >>> scores = evaluate([["bad"], ["good"]], np.array([[0.9, 0.1], [0.6, 0.4]]), ("bad", "good"))
    >>> scores.accuracy, scores.confusion
    (0.5, ((1, 0), (1, 0)))
    """
    shape = (len(truth), len(labels))
    if not len(truth) or probabilities.shape != shape:
        raise InputError(f"wanted probabilities {shape} of at least one text, got {probabilities.shape}")
    wanted, given = _table(truth, labels), _table(chosen(probabilities, labels, thresholds), labels)
    right = int((wanted == given).all(axis=1).sum())
    low, high = wilson_interval(right, len(truth))
    classes = tuple(_class_score(label, *columns) for label, *columns in zip(labels, wanted.T, given.T, strict=True))
    occurring = (wanted | given).any(axis=0)
    single = thresholds is None
    return Evaluation(
        examples=len(truth),
        accuracy=right / len(truth),
        accuracy_low=low,
        accuracy_high=high,
        macro_f1=float(np.mean([score.f1 for score in classes], where=occurring)) if occurring.any() else 0.0,
        micro_f1=_class_score("", wanted.ravel(), given.ravel()).f1,
        calibration_error=calibration_error(probabilities, wanted) if single and len(truth) >= FEWEST else None,
        brier=_brier(probabilities, wanted) if single else None,
        classes=classes,
        confusion=tuple(map(tuple, (wanted.T.astype(int) @ given.astype(int)).tolist())) if single else None,
    )


def wilson_interval(right: int, examples: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, which stays between 0 and 1.

    >>> tuple(round(end, 3) for end in wilson_interval(84, 100))
    (0.756, 0.899)
    """
    share, square = right / examples, _Z * _Z / examples
    middle = share + square / 2
    reach = sqrt(square * (share * (1 - share) + square / 4))
    return max(0.0, (middle - reach) / (1 + square)), min(1.0, (middle + reach) / (1 + square))


class Difference(NamedTuple):
    """How much more often one model is right than another on the same texts, and the 95 % interval of that."""

    value: float
    low: float
    high: float


def difference(right: Flags, other: Flags) -> Difference:
    """Compare two models on the same texts (N,); only texts that one alone gets right count.

    The interval is that of a mean of paired differences. One half is added to the squares: that two models agree on a
    few texts does not prove that they always do.

    >>> (value, low, high) = difference(np.array([True] * 80 + [False] * 20), np.array([True] * 70 + [False] * 30))
    >>> round(value, 3), round(low, 3), round(high, 3)
    (0.1, 0.04, 0.16)
    """
    each = right.astype(np.float64) - other
    value = float(each.mean())
    spread = sqrt(((each - value) ** 2).sum() + 0.5) / len(each)
    return Difference(value, value - _Z * spread, value + _Z * spread)


def calibration_error(probabilities: Floats, wanted: Flags) -> float:
    """Mean gap between the confidence in the likeliest class and its accuracy, over bins of equal width.

    >>> calibration_error(np.array([[0.75, 0.25]] * 4), np.array([[True, False]] * 3 + [[False, True]]))
    0.0
    """
    confidence = probabilities.max(axis=1)
    right = wanted[np.arange(len(wanted)), probabilities.argmax(axis=1)]
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(wanted))


def _table(labels: Sequence[Sequence[str]], known: Sequence[str]) -> Flags:
    places = {label: place for place, label in enumerate(known)}
    table = np.zeros((len(labels), len(known)), dtype=bool)
    for row, of_text in enumerate(labels):
        table[row, [places[label] for label in of_text]] = True
    return table


def _class_score(label: str, wanted: Flags, given: Flags) -> ClassScore:
    hits, in_truth, predicted = int((wanted & given).sum()), int(wanted.sum()), int(given.sum())
    return ClassScore(
        label,
        precision=hits / predicted if predicted else 0.0,
        recall=hits / in_truth if in_truth else 0.0,
        f1=2 * hits / (in_truth + predicted) if in_truth + predicted else 0.0,
        support=in_truth,
    )


def _brier(probabilities: Floats, wanted: Flags) -> float:
    squares = ((probabilities - wanted) ** 2).sum(axis=1)
    return float(squares.mean() / (2 if wanted.shape[1] == 2 else 1))
