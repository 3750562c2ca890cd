"""scikit-learn's checks of any estimator, ported to text: each test has the name and the intent of the upstream check.

`sklearn.utils.estimator_checks` makes numbers; here every X is a list or an array of strings.
"""

import pickle
import re
from copy import deepcopy
from inspect import signature
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import shuffle
from sklearn.utils.estimator_checks import _NotAnArray
from sklearn.utils.validation import check_is_fitted
from support.sklearn_texts import METHODS, assert_same, learned, memmapped, words
from support.tiny_classifier import tiny

from routepool import TextClassifier
from routepool.errors import InputError


@pytest.fixture(scope="module")
def two() -> TextClassifier:
    """A classifier of two classes, not to be changed."""
    return tiny(epochs=4).fit(*words(40))


def test_check_fit_score_takes_y() -> None:
    X, y = words(30, 3)
    model = tiny(epochs=1)
    for name in ("fit", "score", "fit_transform"):
        method = getattr(model, name)
        method(X, y)
        assert list(signature(method).parameters)[1] == "y"


def test_check_estimators_overwrite_params() -> None:
    model = tiny(class_weight={0: 1.0, 1: 2.0})
    before = deepcopy(model.get_params())
    model.fit(*words(20))
    assert {name: joblib.hash(value) for name, value in model.get_params().items()} == {
        name: joblib.hash(value) for name, value in before.items()
    }


def test_check_dont_overwrite_parameters() -> None:
    model = tiny()
    before = dict(vars(model))
    model.fit(*words(20))
    public = {name: value for name, value in vars(model).items() if not (name.startswith("_") or name.endswith("_"))}
    assert public.keys() == before.keys()
    assert all(public[name] is before[name] for name in before)


def test_check_estimators_fit_returns_self() -> None:
    model = tiny(epochs=1)
    assert model.fit(*words(20)) is model


def test_check_readonly_memmap_input(tmp_path: Path) -> None:
    X, y = words(20)
    with memmapped(tmp_path, X.astype(str), y) as (texts, labels):
        assert isinstance(texts, np.memmap)
        model = tiny(epochs=1)
        assert model.fit(texts, labels) is model


def test_check_estimators_unfitted() -> None:
    for method in ("decision_function", "predict", "predict_proba", "predict_log_proba", "transform"):
        with pytest.raises(NotFittedError):
            getattr(tiny(), method)(["a text"])


def test_check_estimators_dtypes() -> None:
    """Every type in which NumPy holds strings."""
    X, y = words(20)
    for dtype in (object, str, "U80", np.dtypes.StringDType()):
        texts = X.astype(dtype)
        results = learned(tiny(epochs=1).fit(texts, y), texts)
        assert_same(results, learned(tiny(epochs=1).fit(list(X), y), list(X)), rtol=0)


def test_check_dtype_object() -> None:
    X, y = words(20)
    tiny(epochs=1).fit(X.astype(object), y).predict(X.astype(object))
    X[0] = {"foo": "bar"}
    with pytest.raises(InputError, match=re.escape("X[0] must be a string, got {'foo': 'bar'}")):
        tiny().fit(X, y)


def test_check_estimators_empty_data_messages() -> None:
    with pytest.raises(ValueError, match="wanted at least one text to learn from, got 0 samples"):
        tiny().fit([], [])
    with pytest.raises(ValueError, match=re.escape("got shape (0, 3)")):
        tiny().fit(np.empty((0, 3)), [])


def test_check_pipeline_consistency() -> None:
    X, y = words(30)
    model, pipeline = tiny().fit(X, y), make_pipeline(tiny()).fit(X, y)
    assert model.score(X, y) == pipeline.score(X, y)
    np.testing.assert_array_equal(model.fit_transform(X, y), pipeline.fit_transform(X, y))


@pytest.mark.parametrize("missing", [None, np.nan, pandas.NA, np.inf])
def test_check_estimators_nan_inf(missing: object, two: TextClassifier) -> None:
    X, y = words(6)
    X[3] = missing
    told = re.escape(f"X[3] must be a string, got {missing!r}; drop missing texts")
    with pytest.raises(ValueError, match=told):
        tiny().fit(X, y)
    for method in METHODS:
        with pytest.raises(ValueError, match=told):
            getattr(two, method)(X)


@pytest.mark.parametrize("container", [sparse.csr_array])
def test_check_estimator_sparse_array(container: Any) -> None:
    with pytest.raises(ValueError, match="X must have one entry for each text, got shape"):
        tiny().fit(container(np.eye(4)), [0, 1, 0, 1])


def test_check_estimator_sparse_matrix() -> None:
    with pytest.raises(ValueError, match="X must have one entry for each text, got shape"):
        tiny().fit(sparse.csr_matrix(np.eye(4)), [0, 1, 0, 1])


def test_check_estimators_pickle(two: TextClassifier) -> None:
    X, _ = words(30, seed=1)
    assert_same(learned(pickle.loads(pickle.dumps(two)), X), learned(two, X), rtol=0)


def test_check_estimators_pickle_readonly_memmap(two: TextClassifier, tmp_path: Path) -> None:
    X, _ = words(30, seed=1)
    with memmapped(tmp_path, two) as (loaded,):
        assert_same(learned(loaded, X), learned(two, X), rtol=0)


def test_check_f_contiguous_array_estimator() -> None:
    """Texts that do not lie side by side in memory, such as a column of a table."""
    X, y = words(20)
    table = np.asfortranarray(np.stack([X, X], axis=1).astype(str))
    tiny(epochs=1).fit(table.T[0][::-1], y[::-1]).predict(np.ascontiguousarray(table)[:, 1])


def test_check_methods_subset_invariance(two: TextClassifier) -> None:
    X, _ = words(20, seed=1)
    alone = {method: np.concatenate([getattr(two, method)([text]) for text in X]) for method in METHODS}
    assert_same(learned(two, X), alone, rtol=1e-5, atol=1e-6)  # float32: another batch rounds otherwise


def test_check_methods_sample_order_invariance(two: TextClassifier) -> None:
    X, _ = words(20, seed=1)
    order = np.random.RandomState(0).permutation(len(X))
    expected = {method: result[order] for method, result in learned(two, X).items()}
    assert_same(expected, learned(two, X[order]), rtol=1e-5, atol=1e-6)


def test_check_fit2d_1sample() -> None:
    with pytest.raises(ValueError, match="got one class"):
        tiny().fit(["a text"], ["a label"])


def test_check_fit1d() -> None:
    """The other way round: one dimension is right, two are not."""
    X, y = words(20)
    tiny(epochs=1).fit(X, y)
    with pytest.raises(ValueError, match=re.escape("X must have one entry for each text, got shape (20, 1)")):
        tiny().fit(X[:, np.newaxis], y)


def test_check_dict_unchanged(two: TextClassifier) -> None:
    X, _ = words(20)
    for method in METHODS:
        before = dict(vars(two))
        getattr(two, method)(X)
        assert vars(two) == before


def test_check_fit_idempotent() -> None:
    X, y = words(40)
    model = tiny(aggregator="routing", encoder="bilstm", capsules=2, capsule_size=4, dropout=0.3)
    first = learned(model.fit(X, y), X)
    assert_same(first, learned(model.fit(X, y), X), rtol=0)


def test_check_fit_check_is_fitted() -> None:
    model = tiny(epochs=1)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    check_is_fitted(model.fit(*words(20)))


def test_check_requires_y_none() -> None:
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        tiny().fit(words(20)[0], None)


# Sample weights


def test_check_sample_weights_pandas_series() -> None:
    X, y = words(12)
    tiny(epochs=1).fit(pandas.Series(X), pandas.Series(y), sample_weight=pandas.Series([1] * 12))


def test_check_sample_weights_not_an_array() -> None:
    X, y = words(12)
    tiny(epochs=1).fit(_NotAnArray(X), _NotAnArray(y), sample_weight=_NotAnArray([1] * 12))


def test_check_sample_weights_list() -> None:
    X, y = words(30, 3)
    weighted = tiny(epochs=1).fit(X, y, sample_weight=[3] * 30)
    assert_same(learned(weighted, X), learned(tiny(epochs=1).fit(X, y), X), rtol=0)


def test_check_all_zero_sample_weights_error() -> None:
    X, y = words(12)
    with pytest.raises(ValueError, match="sample_weight must not be zero for every text"):
        tiny().fit(X, y, sample_weight=np.zeros(12))


def test_check_sample_weights_shape() -> None:
    X, y = words(16)
    for shape in ((32,), (16, 2), (1,), ()):
        with pytest.raises(ValueError, match="sample_weight must be a number for each of the 16 texts, got shape"):
            tiny().fit(X, y, sample_weight=np.ones(shape))


def test_check_sample_weights_not_overwritten() -> None:
    X, y = words(16)
    weights = np.ones(16)
    weights[0] = 10
    before = weights.copy()
    tiny(epochs=1).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(weights, before)


def test_check_sample_weight_equivalence_on_dense_data() -> None:
    """Weight 0 is leaving a text out, another whole weight is repeating it.

    Every text is a word of its own, the heaviest first, so that both sets give the same vocabulary and with it the same
    initial weights; and every set is one batch, so that both take the same steps.
    """
    X = np.array([f"word{place:02}" for place in range(15)], dtype=object)
    y = np.arange(15) % 3
    weights = np.arange(15)[::-1] // 3  # 4 to 0
    model = tiny(epochs=6, batch_size=100)
    repeated = learned(clone(model).fit(X.repeat(weights), y.repeat(weights)), X)
    assert_same(learned(clone(model).fit(*shuffle(X, y, weights, random_state=0)), X), repeated, rtol=1e-3, atol=1e-4)
    alike = learned(clone(model).fit(X[weights > 0], y[weights > 0]), X)
    assert np.abs(alike["predict_proba"] - repeated["predict_proba"]).max() > 0.01
