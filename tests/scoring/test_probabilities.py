"""Probabilities, labels, temperature and thresholds, against arithmetic."""

import math

import numpy as np
import pytest

from routepool.scoring.probabilities import chosen, fit_temperature, probabilities, tune_thresholds


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


@pytest.mark.parametrize(("right", "expected"), [(True, 1 / 4), (False, 20)])
def test_the_temperature_stays_within_its_bounds(right: bool, expected: float) -> None:
    logits = np.array([[0.01, -0.01]] * 100_000)
    found = fit_temperature(logits, np.full(len(logits), 0 if right else 1))
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_small_doubt_leaves_the_probabilities_alone_and_clear_evidence_has_its_way(multi_label: bool) -> None:
    odds = math.log(3)  # it says 3 in 4 and is right that often, and then 6 in 10
    for right, number, low, high in ((75, 100, 0.95, 1.05), (60, 20, 0.9, 1.1), (60, 10_000, 2.5, 2.9)):
        of_hundred = np.array([0] * right + [1] * (100 - right))
        targets = np.tile(of_hundred, 100)[np.random.default_rng(0).permutation(10_000)][:number]
        logits = np.tile([odds, 0.0] if not multi_label else [odds, -odds], (number, 1))
        wanted = np.eye(2, dtype=np.int64)[targets] if multi_label else targets
        assert low <= fit_temperature(logits, wanted, multi_label=multi_label) <= high


def test_being_right_on_few_texts_makes_nobody_surer() -> None:
    assert fit_temperature(np.array([[2.0, 0.0]] * 20), np.zeros(20, dtype=np.int64)) > 0.8


@pytest.mark.parametrize("classes", [2, 6, 77, 150, 1000])
@pytest.mark.parametrize("true_temperature", [0.6, 1.0, 2.0])
def test_any_number_of_classes_is_calibrated(classes: int, true_temperature: float) -> None:
    random = np.random.default_rng(classes)
    cleaner = random.standard_normal((1000, classes))  # their softmax is the truth
    cleaner[np.arange(1000), random.integers(0, classes, 1000)] += 2 + np.log(classes)
    targets = (cleaner + random.gumbel(size=cleaner.shape)).argmax(1)  # drawn from that softmax
    held, rest = np.arange(200), np.arange(200, 1000)
    temperature = fit_temperature(true_temperature * cleaner[held], targets[held])
    assert temperature == pytest.approx(true_temperature, rel=0.2)
    log_loss = [
        -np.log(probabilities(true_temperature * cleaner[rest], temperature=one)[np.arange(800), targets[rest]]).mean()
        for one in (temperature, 1.0)
    ]
    assert log_loss[0] <= log_loss[1] + 0.01


def test_without_texts_the_temperature_is_one() -> None:
    assert fit_temperature(np.empty((0, 2)), np.empty(0, np.int64)) == 1.0


def test_thresholds_have_the_best_f1_and_stay_at_a_half_where_nothing_can_be_learned() -> None:
    shares = np.array([[0.32, 0.1], [0.31, 0.2], [0.2, 0.3], [0.1, 0.4]])
    targets = np.array([[1, 0], [1, 0], [0, 0], [0, 0]])
    assert tune_thresholds(shares, targets) == (0.3, 0.5)
