"""How sure is a difference? Statistics of right and wrong answers, seeds x texts. NumPy, and SciPy for Student's t.

Two things vary: the seed of a model and the texts that happen to be in the test set. The bootstrap draws both. Texts
are drawn once for all models, for all answered the same ones. Seeds are drawn for each arm by itself: seed 3 of two
arms shares the order of its batches but not its weights, and some arms have more seeds than others. What a seed does
on a text alone is counted by either drawing, so the interval is on the wide side (Owen 2007).
"""

# D draws  R runs  N texts

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

DRAWS, LEVEL = 10_000, 0.05
FEWEST_FLIPPED = 6  # seeds; with 5 the smallest p there is would be 2 / 32, above the level
_POWERFUL = 1.959964 + 0.841621  # normal quantiles of 97.5 and 80 %
_AT_ONCE = 1000  # draws, to keep the table of counts small

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Arm:
    """The runs of one setting that differ in their seeds.

    Args:
        accuracies: (R,) of each run on all texts.
        resampled: (D, R) of each run on texts drawn anew, as `resample_texts` gives them.
    """

    accuracies: Floats
    resampled: Floats

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean())


@dataclass(frozen=True)
class Estimate:
    """A difference and how sure it is.

    Args:
        difference: of the means.
        low: lower end of its 95 % interval.
        high: upper end.
        bootstrap_p: twice the smaller share of draws on either side of 0.
        flip_p: of the exact sign-flip test over the seeds that both arms have; None with fewer than 6.
        detectable: the smallest true difference that this design would have found in 80 of 100 repetitions at 5 %,
            two-sided: (1.96 + 0.84) x the standard error, which is the standard deviation of the draws.
    """

    difference: float
    low: float
    high: float
    bootstrap_p: float
    flip_p: float | None
    detectable: float

    @property
    def p(self) -> float:
        """The larger of both: the seeds alone must bear the difference out, and so must the texts."""
        return max(self.bootstrap_p, self.flip_p or 0.0)


def resample_texts(right: NDArray[np.bool_], *, draws: int = DRAWS, seed: int = 0) -> Floats:
    """(R, N) right or wrong -> (D, R) the accuracies of all runs on the same texts drawn with replacement.

    Texts that all runs answered alike are one kind; how often each kind is drawn is multinomial, which is the same as
    drawing texts one by one and far quicker.
    """
    kinds, counts = np.unique(right, axis=1, return_counts=True)
    texts, random = right.shape[1], np.random.default_rng((seed, 0))
    found = np.empty((draws, len(right)))
    for start in range(0, draws, _AT_ONCE):
        size = min(_AT_ONCE, draws - start)
        drawn = random.multinomial(texts, counts / texts, size=size)
        found[start : start + size] = drawn.astype(np.float64) @ kinds.T / texts
    return found


def estimate(arms: Sequence[Arm], coefficients: Sequence[float], *, seed: int = 0) -> Estimate:
    """The sum of coefficient x mean of each arm: a difference, a contrast or a slope."""
    random = np.random.default_rng((seed, 1))
    draws = sum(factor * _draw_seeds(arm, random) for arm, factor in zip(arms, coefficients, strict=True))
    value = sum(factor * arm.mean for arm, factor in zip(arms, coefficients, strict=True))
    return summarise(value, np.asarray(draws))


def summarise(value: float, draws: Floats, *, flip_p: float | None = None) -> Estimate:
    """An estimate from its bootstrap draws."""
    low, high = np.quantile(draws, (LEVEL / 2, 1 - LEVEL / 2))
    beyond = min((draws <= 0).sum(), (draws >= 0).sum())
    p = min(1.0, 2 * (1 + float(beyond)) / (1 + len(draws)))
    return Estimate(value, float(low), float(high), p, flip_p, _POWERFUL * float(draws.std()))


def compare(one: Arm, other: Arm) -> Estimate:
    """The first arm's mean less the other's."""
    found = estimate((one, other), (1, -1))
    paired = min(len(one.accuracies), len(other.accuracies))  # runs are in the order of their seeds
    if paired < FEWEST_FLIPPED:
        return found
    flip_p = sign_flip(one.accuracies[:paired] - other.accuracies[:paired])
    return Estimate(found.difference, found.low, found.high, found.bootstrap_p, flip_p, found.detectable)


def _draw_seeds(arm: Arm, random: np.random.Generator) -> Floats:
    """(D,): means over seeds drawn with replacement, on each draw's texts.

    A draw of n seeds varies by (n - 1) / n of what it should, which matters with 3 of them: hence the stretch.
    """
    draws, seeds = arm.resampled.shape
    means: Floats = arm.resampled.mean(axis=1)
    if seeds == 1:
        return means
    picked = random.integers(seeds, size=(draws, seeds))
    drawn: Floats = np.take_along_axis(arm.resampled, picked, axis=1).mean(axis=1)
    stretched: Floats = means + np.sqrt(seeds / (seeds - 1)) * (drawn - means)
    return stretched


def sign_flip(differences: Floats) -> float:
    """Two-sided p of differences that would be as likely with the other sign, over all 2^n signs.

    >>> sign_flip(np.array([1.0, 2.0, 3.0]))  # only +++ and --- are as far from 0
    0.25
    """
    signs = np.array(list(product((1, -1), repeat=len(differences))))
    sums = np.abs(signs @ differences)
    return float((sums >= sums[0] - 1e-12).mean())


def holm(values: Sequence[float]) -> list[float]:
    """P values adjusted for their number (Holm 1979): the smallest times n, the next times n - 1, never falling.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted, least = [0.0] * len(values), 0.0
    for place, index in enumerate(np.argsort(values, kind="stable")):
        least = max(least, min(1.0, (len(values) - place) * values[index]))
        adjusted[index] = least
    return adjusted


def verdict(found: Estimate, adjusted_p: float) -> str:
    """better, worse, or undecided: the interval includes 0, or the table has too many comparisons for its p."""
    if adjusted_p >= LEVEL or found.low <= 0 <= found.high:
        return "undecided"
    return "better" if found.difference > 0 else "worse"


def welch(one: Floats, other: Floats) -> Estimate:
    """The same for values without texts, such as dev scores: Welch's t over the seeds."""
    difference = float(one.mean() - other.mean())
    if min(len(one), len(other)) < 2:
        return _of_unknown_spread(difference)
    error = float(np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other)))
    return _by_student(difference, error, lambda: stats.ttest_ind(one, other, equal_var=False))


def paired(one: Floats, other: Floats) -> Estimate:
    """The same for values that come in pairs, such as seconds of contenders timed in turn: Student's t."""
    differences = one - other
    difference = float(differences.mean())
    if len(differences) < 2:
        return _of_unknown_spread(difference)
    error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
    return _by_student(difference, error, lambda: stats.ttest_rel(one, other))


def _of_unknown_spread(difference: float) -> Estimate:
    return Estimate(difference, -np.inf, np.inf, 1.0, None, np.inf)


def _by_student(difference: float, error: float, test: Callable[[], Any]) -> Estimate:
    if error == 0:
        return Estimate(difference, difference, difference, float(difference == 0), None, 0.0)
    result = test()
    low, high = result.confidence_interval(1 - LEVEL)
    return Estimate(difference, float(low), float(high), float(result.pvalue), None, _POWERFUL * error)
