"""Scores agree with scikit-learn's, and intervals and calibration with their definitions."""

import json

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics

from routepool.errors import InputError
from routepool.runs.scores import summary
from routepool.scoring.metrics import BINS, calibration_error, difference, evaluate, wilson_interval

LABELS = ("bad", "fair", "good")


def random_shares(texts: int, classes: int) -> NDArray[np.float64]:
    shares = np.random.default_rng(0).gamma(0.5, size=(texts, classes))
    normalised: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return normalised


def random_truth(texts: int, classes: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(0, classes, texts)


def test_single_label_scores_are_those_of_scikit_learn() -> None:
    truth, shares = random_truth(200, 3), random_shares(200, 3)
    scores = evaluate([[LABELS[place]] for place in truth], shares, LABELS)
    given = shares.argmax(axis=1)
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(truth, given))
    assert scores.macro_f1 == pytest.approx(metrics.f1_score(truth, given, average="macro"))
    assert scores.micro_f1 == pytest.approx(metrics.f1_score(truth, given, average="micro"))
    assert scores.brier == pytest.approx(metrics.brier_score_loss(truth, shares))
    assert np.array_equal(np.array(scores.confusion), metrics.confusion_matrix(truth, given))
    columns = zip(*metrics.precision_recall_fscore_support(truth, given), strict=True)
    for one, expected in zip(scores.classes, columns, strict=True):
        assert (one.precision, one.recall, one.f1, one.support) == pytest.approx(expected)


def test_the_brier_score_of_two_classes_is_that_of_scikit_learn() -> None:
    truth, shares = random_truth(50, 2), random_shares(50, 2)
    scores = evaluate([[("no", "yes")[place]] for place in truth], shares, ("no", "yes"))
    assert scores.brier == pytest.approx(metrics.brier_score_loss(truth, shares[:, 1]))


def test_multi_label_scores_are_those_of_scikit_learn() -> None:
    wanted = np.random.default_rng(2).random((100, 3)) < 0.4
    shares = np.random.default_rng(3).random((100, 3))
    thresholds = (0.3, 0.5, 0.8)
    truth = [[label for label, has in zip(LABELS, row, strict=True) if has] for row in wanted]
    scores = evaluate(truth, shares, LABELS, thresholds=thresholds)
    given = shares >= np.array(thresholds)
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(wanted, given))
    assert scores.macro_f1 == pytest.approx(metrics.f1_score(wanted, given, average="macro"))
    assert scores.micro_f1 == pytest.approx(metrics.f1_score(wanted, given, average="micro"))
    assert [one.support for one in scores.classes] == wanted.sum(axis=0).tolist()
    assert (scores.confusion, scores.brier, scores.calibration_error) == (None, None, None)


def test_a_label_that_never_occurs_does_not_lower_the_macro_f1() -> None:
    scores = evaluate([["bad"], ["good"]], np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]), LABELS)
    assert scores.macro_f1 == 1.0
    assert scores.classes[1].support == 0


def test_texts_without_any_label_are_counted() -> None:
    scores = evaluate([[], []], np.array([[0.1], [0.9]]), ("tag",), thresholds=(0.5,))
    assert (scores.accuracy, scores.macro_f1, scores.micro_f1) == (0.5, 0.0, 0.0)


@pytest.mark.parametrize(("right", "low", "high"), [(0, 0.0, 0.2775), (5, 0.2366, 0.7634), (10, 0.7225, 1.0)])
def test_the_interval_is_wilsons(right: int, low: float, high: float) -> None:
    # Brown, Cai and DasGupta (2001), 10 trials.
    assert wilson_interval(right, 10) == pytest.approx((low, high), abs=1e-4)


def test_the_calibration_error_is_the_mean_gap_of_the_bins() -> None:
    truth, shares = random_truth(300, 3), random_shares(300, 3)
    wanted = np.eye(3, dtype=bool)[truth]
    confidence, right = shares.max(axis=1), shares.argmax(axis=1) == truth
    gap = 0.0
    for place in range(BINS):
        inside = (confidence >= place / BINS) & (confidence < (place + 1) / BINS)
        if inside.any():
            gap += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert calibration_error(shares, wanted) == pytest.approx(gap)


def test_no_calibration_error_is_told_of_few_texts() -> None:
    truth, shares = [[LABELS[place]] for place in random_truth(100, 3)], random_shares(100, 3)
    assert evaluate(truth, shares, LABELS).calibration_error is not None
    few = evaluate(truth[1:], shares[1:], LABELS)
    assert few.calibration_error is None
    assert few.brier is not None
    assert "no calibration error of fewer than 100 texts, Brier score" in summary(few)


def test_scores_can_be_written_as_json() -> None:
    scores = evaluate([["bad"], ["good"]], random_shares(2, 3), LABELS)
    assert json.loads(json.dumps(scores.to_dict()))["examples"] == 2


def test_no_text_is_an_error() -> None:
    with pytest.raises(InputError, match="at least one text"):
        evaluate([], np.zeros((0, 3)), LABELS)


def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says() -> None:
    """Two models right 80 % and 70 % of the time, mostly on the same texts; 400 sets of 200 texts."""
    random = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        one = random.random(200) < 0.8
        other = np.where(random.random(200) < 0.5, one & (random.random(200) < 0.875), random.random(200) < 0.7)
        _, low, high = difference(one, other)
        held += low <= 0.1 <= high
    assert 0.92 < held / 400 < 0.98


def test_models_that_agree_on_few_texts_may_still_differ() -> None:
    right = np.ones(10, dtype=bool)
    value, low, high = difference(right, right)
    assert value == 0
    assert low == -high < -0.1
