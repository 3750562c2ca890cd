"""Probabilities, labels, temperature and thresholds, against arithmetic."""

import math

import numpy as np
import pytest

from routepool.probabilities import chosen, fit_temperature, probabilities, tune_thresholds


def test_softmax_and_sigmoid_are_those_of_the_books() -> None:
    logits = np.array([[math.log(1), math.log(3)], [math.log(4), math.log(4)]], np.float32)
    np.testing.assert_allclose(probabilities(logits), [[1 / 4, 3 / 4], [1 / 2, 1 / 2]], rtol=1e-6)
    np.testing.assert_allclose(probabilities(logits, multi_label=True), [[1 / 2, 3 / 4], [4 / 5, 4 / 5]], rtol=1e-6)


def test_a_temperature_divides_the_logits() -> None:
    logits = np.array([[2 * math.log(3), 0.0]])
    np.testing.assert_allclose(probabilities(logits, temperature=2.0), [[3 / 4, 1 / 4]])
    np.testing.assert_allclose(probabilities(logits, temperature=2.0, multi_label=True), [[3 / 4, 1 / 2]])


@pytest.mark.parametrize("multi_label", [False, True])
def test_huge_logits_and_no_texts_give_no_warning(multi_label: bool) -> None:
    shares = probabilities(np.array([[1e30, -1e30, 0.0]]), multi_label=multi_label)
    assert shares.tolist() == ([[1.0, 0.0, 0.5]] if multi_label else [[1.0, 0.0, 0.0]])
    assert probabilities(np.empty((0, 3)), multi_label=multi_label).shape == (0, 3)


def test_a_label_at_its_threshold_is_chosen_and_none_may_be() -> None:
    shares = np.array([[0.5, 0.2], [0.49, 0.29], [0.9, 0.3]])
    assert chosen(shares, ("a", "b"), (0.5, 0.3)) == [("a",), (), ("a", "b")]
    assert chosen(shares, ("a", "b")) == [("a",)] * 3
    assert chosen(np.empty((0, 2)), ("a", "b")) == []


@pytest.mark.parametrize("true_temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("multi_label", [False, True])
def test_the_temperature_that_made_the_labels_is_found(true_temperature: float, multi_label: bool) -> None:
    random = np.random.default_rng(0)
    logits = 3 * random.standard_normal((20_000, 3))
    shares = probabilities(logits, temperature=true_temperature, multi_label=multi_label)
    if multi_label:
        targets = (random.random(shares.shape) < shares).astype(np.int64)
    else:
        targets = (random.random((len(shares), 1)) > shares.cumsum(1)).sum(1).clip(max=2)
    found = fit_temperature(logits, targets, multi_label=multi_label)
    assert found == pytest.approx(true_temperature, rel=0.05)


@pytest.mark.parametrize(("right", "expected"), [(True, 1 / 20), (False, 20)])
def test_the_temperature_stays_within_its_bounds(right: bool, expected: float) -> None:
    logits, targets = np.array([[1.0, -1.0], [1.0, -1.0]]), np.array([0, 0]) if right else np.array([1, 1])
    cost_of_bound = fit_temperature(logits, targets)
    assert 1 / 20 <= cost_of_bound <= 20
    if not right:
        assert cost_of_bound == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("multi_label", [False, True])
def test_being_right_on_few_texts_is_no_certainty(multi_label: bool) -> None:
    logits = np.array([[9.0, -9.0]] * 10 + [[-9.0, 9.0]] * 10)
    targets = np.array([0] * 10 + [1] * 10)
    temperature = fit_temperature(
        logits, np.eye(2, dtype=np.int64)[targets] if multi_label else targets, multi_label=multi_label
    )
    surest = probabilities(logits, temperature=temperature, multi_label=multi_label).max()
    assert surest == pytest.approx(21 / 22, abs=1e-3)  # 20 right of 20, by Laplace's rule


def test_without_texts_the_temperature_is_one() -> None:
    assert fit_temperature(np.empty((0, 2)), np.empty(0, np.int64)) == 1.0


def test_thresholds_have_the_best_f1_and_stay_at_a_half_where_nothing_can_be_learned() -> None:
    shares = np.array([[0.32, 0.1], [0.31, 0.2], [0.2, 0.3], [0.1, 0.4]])
    targets = np.array([[1, 0], [1, 0], [0, 0], [0, 0]])
    assert tune_thresholds(shares, targets) == (0.3, 0.5)
