"""Differences are judged rightly: known answers, brute force, and intervals that cover what they should."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from reproduce.comparing import (
    Arm,
    Estimate,
    compare,
    estimate,
    holm,
    paired,
    resample_texts,
    sign_flip,
    verdict,
    welch,
)

values = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=8)
probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def arms(*right: NDArray[np.bool_], draws: int = 2000, seed: int = 0) -> list[Arm]:
    resampled = resample_texts(np.vstack(right), draws=draws, seed=seed)
    ends = np.cumsum([len(one) for one in right])
    return [Arm(one.mean(1), resampled[:, end - len(one) : end]) for one, end in zip(right, ends, strict=True)]


def answers(random: np.random.Generator, seeds: int, easy: NDArray[np.float64], spread: float) -> NDArray[np.bool_]:
    """Runs whose chance on a text is the text's own, moved a little by the seed."""
    return random.random((seeds, len(easy))) < easy + random.normal(0, spread, size=(seeds, 1))


@given(values)
def test_the_sign_flip_test_is_that_of_brute_force(differences: list[float]) -> None:
    def size(signs: tuple[int, ...]) -> float:
        return abs(sum(sign * one for sign, one in zip(signs, differences, strict=True)))

    sizes = [size(signs) for signs in product((-1, 1), repeat=len(differences))]
    assert sign_flip(np.array(differences)) == sum(one >= abs(sum(differences)) for one in sizes) / len(sizes)


def test_holm_gives_the_numbers_of_a_calculation_by_hand() -> None:
    assert holm([0.01, 0.02, 0.03, 0.005]) == pytest.approx([3 * 0.01, 2 * 0.02, 0.04, 4 * 0.005])
    assert holm([0.5, 0.9, 0.001]) == pytest.approx([2 * 0.5, 1.0, 3 * 0.001])


@given(probabilities)
def test_holm_never_lowers_a_p_nor_changes_their_order(given_: list[float]) -> None:
    adjusted = holm(given_)
    assert all(before <= after <= 1 for before, after in zip(given_, adjusted, strict=True))
    assert [adjusted[i] for i in np.argsort(given_, kind="stable")] == sorted(adjusted)


def test_texts_are_drawn_as_a_bootstrap_draws_them() -> None:
    right = np.random.default_rng(0).random((3, 200)) < 0.8
    drawn = resample_texts(right, draws=20_000)
    accuracies = right.mean(1)
    assert drawn.mean(0) == pytest.approx(accuracies, abs=1e-3)
    assert drawn.std(0) == pytest.approx(np.sqrt(accuracies * (1 - accuracies) / 200), rel=0.03)
    together = np.cov(drawn.T)[0, 1]  # the same texts for all runs: what runs share, their draws share
    assert together == pytest.approx(np.cov(right.astype(float), ddof=0)[0, 1] / 200, abs=1e-4)


def test_an_arm_against_itself_is_undecided() -> None:
    random = np.random.default_rng(1)
    (arm,) = arms(answers(random, 10, random.uniform(0.6, 1, size=500), 0.01))
    found = compare(arm, arm)
    assert found.difference == 0
    assert found.flip_p == 1
    assert verdict(found, found.p) == "undecided"


def test_a_clear_difference_is_found_in_its_direction() -> None:
    random = np.random.default_rng(2)
    easy = random.uniform(0.6, 0.9, size=800)
    better, worse = arms(answers(random, 8, easy + 0.08, 0.01), answers(random, 8, easy, 0.01))
    for one, other, expected in ((better, worse, "better"), (worse, better, "worse")):
        found = compare(one, other)
        assert found.low < found.difference < found.high
        assert found.flip_p == 2 / 2**8
        assert verdict(found, found.p) == expected
    assert verdict(found, 0.06) == "undecided"  # Holm's word counts too


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    covered, differences, errors = 0, [], []
    for repetition in range(150):
        easy = random.uniform(0.6, 1, size=150)
        found = compare(*arms(*(answers(random, 5, easy, 0.02) for _ in range(2)), draws=400, seed=repetition))
        covered += found.low <= 0 <= found.high
        differences.append(found.difference)
        errors.append(found.detectable / (1.96 + 0.84))
    assert 0.93 <= covered / 150 <= 1  # on the wide side: see the module
    assert 1 <= np.mean(errors) / np.std(differences) < 1.7


def test_few_seeds_are_not_taken_for_a_small_spread() -> None:
    """Two seeds drawn with replacement vary by half of what their means do."""
    accuracies = np.array([0.7, 0.8])
    known = Arm(accuracies, np.tile(accuracies, (20_000, 1)))
    found = estimate([known], [1.0])
    assert found.detectable / (1.959964 + 0.841621) == pytest.approx(accuracies.std(ddof=1) / np.sqrt(2), rel=0.02)


def test_a_contrast_is_the_weighted_sum_of_its_arms() -> None:
    random = np.random.default_rng(4)
    three = arms(*(answers(random, 3, random.uniform(0.5, 0.9, size=100), 0.01) for _ in range(3)))
    found = estimate(three, [0.5, 0.5, -1])
    assert found.difference == pytest.approx(0.5 * three[0].mean + 0.5 * three[1].mean - three[2].mean)


def test_fewer_than_six_seeds_have_no_sign_flip_test() -> None:
    random = np.random.default_rng(5)
    easy = random.uniform(0.6, 0.9, size=50)
    ten, five, six = arms(*(answers(random, seeds, easy, 0.01) for seeds in (10, 5, 6)))
    assert compare(ten, five).flip_p is None
    assert compare(ten, six).flip_p == sign_flip(ten.accuracies[:6] - six.accuracies)


def test_welch_gives_the_interval_of_a_calculation_by_hand() -> None:
    found = welch(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))
    reach = 2.776445 * np.sqrt(1 / 3 + 1 / 3)  # Student's t of 4 degrees of freedom at 97.5 %
    assert (found.low, found.high) == pytest.approx((-1 - reach, -1 + reach), abs=1e-5)


def test_values_without_a_spread_say_nothing_or_all() -> None:
    one, same = np.array([1.0]), np.array([1.0, 1.0])
    assert welch(one, one) == Estimate(0.0, -np.inf, np.inf, 1.0, None, np.inf)
    assert welch(same, same).bootstrap_p == 1
    assert welch(same, same + 1).high == -1


def test_pairs_give_the_interval_of_a_calculation_by_hand() -> None:
    found = paired(np.array([11.0, 102.0, 1003.0]), np.array([10.0, 100.0, 1000.0]))
    assert found.difference == pytest.approx(2.0)
    half = 4.30265 * 1.0 / np.sqrt(3)  # Student's t of 2 degrees; differences of 1, 2 and 3 spread by 1
    assert (found.low, found.high) == pytest.approx((2.0 - half, 2.0 + half), abs=1e-4)


def test_one_pair_tells_no_interval_and_equal_pairs_no_spread() -> None:
    one = np.array([1.0])
    assert paired(one, one + 1) == Estimate(-1.0, -np.inf, np.inf, 1.0, None, np.inf)
    assert paired(np.array([1.0, 2.0]), np.array([1.0, 2.0])).bootstrap_p == 1
