"""Logits -> probabilities -> labels, and what is tuned on held-out texts: temperature and thresholds. NumPy only."""

# N texts  K classes

from collections.abc import Sequence

import numpy as np

from routepool.arrays import Flags, Floats, Floats64, Integers
from routepool.errors import NotFiniteError

_SMALLEST, _LARGEST = 0.25, 20.0  # temperatures: models are more often too sure than too unsure, and by more
_FAR = 0.1  # log T from which the pull towards 1 gets weaker
_CANDIDATES = np.linspace(0.05, 0.95, 19).round(2)  # for a threshold
_USUAL = 0.5


def probabilities(logits: Floats, *, temperature: float = 1.0, multi_label: bool = False) -> Floats64:
    """Softmax over the classes, or a sigmoid for each; a temperature above 1 makes them less sure.

    >>> probabilities(np.array([[0.0, 0.0]])).tolist(), probabilities(np.array([[0.0]]), multi_label=True).tolist()
    ([[0.5, 0.5]], [[0.5]])
    """
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    if multi_label:
        sigmoid: Floats64 = 0.5 * (1 + np.tanh(0.5 * scaled))  # this form does not overflow
        return sigmoid
    exponentials = np.exp(scaled - scaled.max(axis=1, keepdims=True, initial=-np.inf))
    normalised: Floats64 = exponentials / exponentials.sum(axis=1, keepdims=True)
    return normalised


def check_finite(values: Floats, places: Sequence[int] | Integers | None = None) -> None:
    """Raise `NotFiniteError` if a row of what a model computed of texts, (N, K), is not finite.

    Args:
        values: a row for each text.
        places: of the texts, if they are not those of the rows.

    >>> check_finite(np.array([[0.5], [np.nan]]))
    Traceback (most recent call last):
    routepool.errors.NotFiniteError: the model's answer to texts[1] is not a finite number, so its weights are damaged \
or far too large; copy the model folder again, or train again with a lower learning_rate
    """
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(broken):
        raise NotFiniteError(int(broken[0] if places is None else places[broken[0]]))


def chosen(
    probabilities: Floats, labels: Sequence[str], thresholds: Sequence[float] | None = None
) -> list[tuple[str, ...]]:
    """The labels at or above their thresholds; without thresholds, the likeliest one.

    >>> chosen(np.array([[0.2, 0.8], [0.6, 0.7]]), ("a", "b"), (0.5, 0.5))
    [('b',), ('a', 'b')]
    >>> chosen(np.array([[0.2, 0.8]]), ("a", "b"))
    [('b',)]
    """
    if thresholds is None:
        return [(labels[place],) for place in probabilities.argmax(axis=1).tolist()]
    above = probabilities >= np.asarray(thresholds)
    return [tuple(labels[place] for place in np.flatnonzero(row).tolist()) for row in above]


def usual_thresholds(labels: Sequence[str], *, multi_label: bool) -> tuple[float, ...] | None:
    """The thresholds of a model without tuned ones: 0.5 for each label, none where the likeliest label wins."""
    return (0.5,) * len(labels) if multi_label else None


def fit_temperature(logits: Floats, targets: Integers, *, multi_label: bool = False) -> float:
    """The temperature under which held-out targets are likeliest, between 1/4 and 20, drawn towards 1.

    The penalty for leaving 1, log(1 + (log T / 0.1)^2), is that of a prior with heavy tails: weak evidence changes the
    probabilities little, clear evidence changes them almost in full (docs/decisions has what else was tried).

    Args:
        logits: (N, K).
        targets: (N,) the classes, or (N, K) of 0 and 1 where a text may have several labels.
        multi_label: which of the two.

    >>> sure_and_half_wrong = np.array([[9.0, -9.0], [9.0, -9.0], [-9.0, 9.0], [9.0, -9.0]])
    >>> fit_temperature(sure_and_half_wrong, np.array([0, 0, 1, 1])) > 5
    True
    """
    if not len(logits):
        return 1.0
    values = np.asarray(logits, dtype=np.float64)

    def cost(log_temperature: float) -> float:
        penalty = np.log1p((log_temperature / _FAR) ** 2)
        return float(_log_loss(values / np.exp(log_temperature), targets, multi_label=multi_label) + penalty)

    low, high = np.log(_SMALLEST), np.log(_LARGEST)
    tried = np.append(np.linspace(low, high, 15), 0.0)  # the penalty has a valley of its own at 0
    step = (high - low) / 14
    best = 0.0
    for _ in range(3):
        best = float(tried[np.argmin([cost(one) for one in tried])])
        tried, step = np.linspace(best - step, best + step, 15).clip(low, high), step / 7
    return float(np.exp(best))


def _log_loss(logits: Floats, targets: Integers, *, multi_label: bool) -> float:
    """Summed over the texts."""
    if multi_label:
        return float((np.logaddexp(0, logits) - targets * logits).sum())
    largest = logits.max(axis=1)
    total = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    return float((total - logits[np.arange(len(logits)), targets]).sum())


def tune_thresholds(probabilities: Floats, targets: Integers) -> tuple[float, ...]:
    """For each class of a multi-label set, the threshold with the best F1 on held-out texts; 0.5 among equals.

    >>> tune_thresholds(np.array([[0.3], [0.2], [0.1]]), np.array([[1], [1], [0]]))
    (0.2,)
    """
    candidates = sorted(_CANDIDATES.tolist(), key=lambda threshold: abs(threshold - _USUAL))
    best = []
    for place in range(probabilities.shape[1]):
        scores = [_f1(probabilities[:, place] >= threshold, targets[:, place] == 1) for threshold in candidates]
        best.append(candidates[int(np.argmax(scores))])
    return tuple(best)


def _f1(predicted: Flags, wanted: Flags) -> float:
    total = predicted.sum() + wanted.sum()
    return float(2 * (predicted & wanted).sum() / total) if total else 0.0
