"""scikit-learn's checks of classifiers and transformers, ported to text as those of any estimator are."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score, f1_score
from sklearn.utils.estimator_checks import _NotAnArray
from support.sklearn_texts import METHODS, assert_same, indicator, learned, memmapped, words
from support.tiny_classifier import tiny

from routepool import TextClassifier


@pytest.fixture(scope="module")
def two() -> TextClassifier:
    """A classifier of two classes, not to be changed."""
    return tiny(epochs=4).fit(*words(40))


@pytest.fixture(scope="module")
def several() -> tuple[TextClassifier, NDArray[Any], NDArray[np.int64]]:
    """A classifier of five labels, and texts it has not seen."""
    X, y = indicator(75, 5)
    return tiny(epochs=6).fit(X, y), *indicator(25, 5, seed=1)


# Classifiers


def test_check_classifier_data_not_an_array() -> None:
    X, y = words(20)
    expected = learned(tiny(epochs=1).fit(X, y), X)
    for texts, labels in ((_NotAnArray(X), _NotAnArray(y)), (X.tolist(), y.tolist()), (iter(X), iter(y.tolist()))):
        assert_same(learned(tiny(epochs=1).fit(texts, labels), X), expected, rtol=0)


def test_check_classifiers_one_label() -> None:
    with pytest.raises(ValueError, match="class"):
        tiny().fit(words(10)[0], np.ones(10))


def test_check_classifiers_one_label_sample_weights() -> None:
    X, y = words(10)
    with pytest.raises(ValueError, match=r"\bclass(es)?\b"):
        tiny().fit(X, y, sample_weight=y)


@pytest.mark.parametrize("names", [["one", "two"], ["one", "two", "three"], [-1, 1], [False, True], [10, 9, 2]])
@pytest.mark.parametrize("dtype", [None, object])
def test_check_classifiers_classes(names: list[Any], dtype: Any) -> None:
    X, y = words(30, len(names))
    labels = np.take(np.array(names), y)
    model = tiny(epochs=3).fit(X, labels if dtype is None else labels.astype(dtype))
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    predicted, decision = model.predict(X), model.decision_function(X)
    places = (decision > 0).astype(int) if len(names) == 2 else decision.argmax(1)
    np.testing.assert_array_equal(model.classes_[places], predicted)
    assert {type(label) for label in predicted.tolist()} == {type(names[0])}


@pytest.mark.parametrize("classes", [2, 3])
def test_check_classifiers_train(classes: int) -> None:
    X, y = words(120, classes)
    with pytest.raises(ValueError, match="wanted a label for each of the 120 texts, got 119"):
        tiny().fit(X, y[:-1])
    model = tiny(epochs=5).fit(X.tolist(), y.tolist())
    predicted, decision, shares = model.predict(X), model.decision_function(X), model.predict_proba(X)
    assert predicted.shape == (120,)
    assert accuracy_score(y, predicted) > 0.83
    assert decision.shape == ((120,) if classes == 2 else (120, 3))
    np.testing.assert_array_equal((decision > 0).astype(int) if classes == 2 else decision.argmax(1), predicted)
    assert shares.shape == (120, classes)
    np.testing.assert_array_equal(shares.argmax(1), predicted)
    np.testing.assert_allclose(shares.sum(1), 1)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(shares))
    for method in METHODS:
        with pytest.raises(ValueError, match="X must have one entry for each text"):
            getattr(model, method)(X.reshape(-1, 2))


def test_check_classifiers_train_readonly_memmap(tmp_path: Path) -> None:
    X, y = words(120, 3)
    with memmapped(tmp_path, X.astype(str), y) as (texts, labels):
        assert tiny(epochs=5).fit(texts, labels).score(texts, labels) > 0.83


def test_check_classifiers_regression_target() -> None:
    X, _ = words(20)
    with pytest.raises(ValueError, match="continuous"):
        tiny().fit(X, np.random.RandomState(0).normal(size=20))


def test_check_supervised_y_no_nan() -> None:
    X, _ = words(10)
    for wrong in (np.inf, np.nan):
        with pytest.raises(ValueError, match=re.escape("y[0] must be a label, got")):
            tiny().fit(X, np.full(10, wrong))


def test_check_supervised_y_2d() -> None:
    X, y = words(30, 3)
    flat = tiny().fit(X, y).predict(X)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        column = tiny().fit(X, y[:, np.newaxis])
    np.testing.assert_array_equal(column.predict(X), flat)


@pytest.mark.parametrize("classes", [2, 3])
def test_check_class_weight_classifiers(classes: int) -> None:
    """Texts that say nothing of their class get the class of the large weight."""
    X, _ = words(100)
    y = np.random.RandomState(0).randint(0, classes, 100)
    model = tiny(epochs=5, class_weight={0: 1000, 1: 0.0001, **({2: 0.0001} if classes == 3 else {})})
    assert np.mean(model.fit(X[:50], y[:50]).predict(X[50:]) == 0) > 0.87


def test_check_class_weight_balanced_classifiers() -> None:
    """One class of two in eight texts of a hundred: balanced weights find it earlier."""
    X, y = words(200)
    few = np.sort(np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:8]]))
    test, truth = words(60, seed=1)
    settings: dict[str, Any] = {"epochs": 3, "learning_rate": 0.01}
    plain = tiny(**settings).fit(X[few], y[few]).predict(test)
    balanced = tiny(**settings, class_weight="balanced").fit(X[few], y[few]).predict(test)
    assert f1_score(truth, balanced, average="weighted") > f1_score(truth, plain, average="weighted")


def test_check_decision_proba_consistency(two: TextClassifier) -> None:
    X, _ = words(60, seed=1)
    shares, decision = two.predict_proba(X)[:, 1], two.decision_function(X)
    order = np.argsort(decision)
    assert (np.diff(shares[order]) >= -1e-7).all()
    assert len(np.unique(decision)) > 10


# Several labels


def test_check_classifier_multioutput() -> None:
    X, y = indicator(42, 3)
    model = tiny(epochs=4).fit(X, y)
    predicted, decision, shares = model.predict(X), model.decision_function(X), model.predict_proba(X)
    assert predicted.shape == decision.shape == shares.shape == (42, 3)
    assert predicted.dtype.kind == "i"
    np.testing.assert_array_equal(model.classes_[(decision > 0).astype(int)], predicted)
    np.testing.assert_array_equal(shares.round().astype(int), predicted)
    for label in range(3):
        np.testing.assert_array_equal(rankdata(shares[:, label]), rankdata(decision[:, label]))


def test_check_classifiers_multilabel_representation_invariance() -> None:
    X, y = indicator(60, 3)
    expected = tiny().fit(X, y).predict(X)
    for form in (y.tolist(), list(y), sparse.csr_array(y), pandas.DataFrame(y), y.astype(bool), y.astype(float)):
        predicted = tiny().fit(X, form).predict(X)
        np.testing.assert_array_equal(predicted, expected)
        assert (type(predicted), predicted.dtype) == (type(expected), expected.dtype)


def test_check_classifiers_multilabel_output_format_predict(several: Any) -> None:
    model, X, y = several
    predicted = model.predict(X)
    assert isinstance(predicted, np.ndarray)
    assert (predicted.shape, predicted.dtype) == (y.shape, y.dtype)


def test_check_classifiers_multilabel_output_format_predict_proba(several: Any) -> None:
    model, X, y = several
    shares = model.predict_proba(X)
    assert (shares.shape, shares.dtype.kind) == (y.shape, "f")
    assert ((shares > 0) & (shares < 1)).all()


def test_check_classifiers_multilabel_output_format_decision_function(several: Any) -> None:
    model, X, y = several
    decision = model.decision_function(X)
    assert isinstance(decision, np.ndarray)
    assert (decision.shape, decision.dtype.kind) == (y.shape, "f")


# Transformers


@pytest.mark.parametrize("container", [np.asarray, list, _NotAnArray])
def test_check_transformer_general(container: Any) -> None:
    X, y = words(30)
    texts, labels = container(X), container(y)
    model = tiny().fit(texts, labels)
    vectors = clone(model).fit_transform(texts, labels)
    assert vectors.shape == (30, 8)
    np.testing.assert_array_equal(vectors, model.transform(texts))
    np.testing.assert_array_equal(vectors, model.fit_transform(texts, labels))


def test_check_transformer_data_not_an_array() -> None:
    test_check_transformer_general(_NotAnArray)
    test_check_transformer_general(list)


def test_check_transformers_unfitted() -> None:
    with pytest.raises((AttributeError, ValueError)):
        tiny().transform(["a text"])


def test_check_transformer_get_feature_names_out(two: TextClassifier) -> None:
    names = two.get_feature_names_out()
    assert isinstance(names, np.ndarray)
    assert names.dtype == object
    assert names.tolist() == [f"textclassifier{place}" for place in range(two.transform(["a text"]).shape[1])]


def test_check_set_output_transform(two: TextClassifier) -> None:
    X, _ = words(20)
    told = deepcopy(two).set_output(transform="default")
    np.testing.assert_array_equal(told.transform(X), two.transform(X))


def test_check_set_output_transform_pandas(two: TextClassifier) -> None:
    X, _ = words(5)
    frame = deepcopy(two).set_output(transform="pandas").transform(pandas.Series(X, index=list("abcde")))
    assert (list(frame.index), list(frame.columns)) == (list("abcde"), two.get_feature_names_out().tolist())
    np.testing.assert_array_equal(frame.to_numpy(), two.transform(X))


def test_check_set_output_transform_polars(two: TextClassifier) -> None:
    X, _ = words(5)
    frame = deepcopy(two).set_output(transform="polars").transform(polars.Series(list(X)))
    assert isinstance(frame, polars.DataFrame)
    assert frame.columns == two.get_feature_names_out().tolist()
    np.testing.assert_array_equal(frame.to_numpy(), two.transform(X))
