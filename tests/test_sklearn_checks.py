"""scikit-learn's estimator checks, ported to text: each test has the name and the intent of the upstream check.

`sklearn.utils.estimator_checks` makes numbers; here every X is a list or an array of strings. Checks that never look at
the data run as they are (`AS_THEY_ARE`), those that cannot apply are listed with the reason (`DO_NOT_APPLY`), and the
last tests hold that no check that scikit-learn runs on such an estimator is forgotten.
"""

import pickle
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from inspect import signature
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas
import polars
import pytest
import sklearn
from numpy.typing import NDArray
from planted import FILLER
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks, shuffle
from sklearn.utils.estimator_checks import _NotAnArray
from sklearn.utils.validation import check_is_fitted
from tiny_classifier import tiny

from routepool import TextClassifier
from routepool.errors import InputError

METHODS = ("predict", "transform", "decision_function", "predict_proba")
CUES = ("merry", "gloomy", "sleepy", "hungry", "windy")

AS_THEY_ARE = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_feature_names_out_error",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]

DO_NOT_APPLY = {
    "check_array_api_input": "texts are no arrays of numbers",
    "check_class_weight_balanced_linear_classifier": "for linear classifiers: it compares coef_",
    "check_classifier_not_supporting_multiclass": "for classifiers of two classes only",
    "check_complex_data": "texts have no real part; check_dtype_object refuses numbers",
    "check_dataframe_column_names_consistency": "X has no columns",
    "check_estimator_sparse_tag": "a sparse matrix holds no strings; the two checks below refuse one",
    "check_estimators_partial_fit_n_features": "there is no partial_fit",
    "check_fit2d_1feature": "X is one-dimensional",
    "check_fit2d_predict1d": "X is one-dimensional; check_fit1d refuses two dimensions instead",
    "check_fit_non_negative": "a text is neither positive nor negative",
    "check_global_output_transform_pandas": "the same as check_set_output_transform_pandas with a global setting",
    "check_global_set_output_transform_polars": "the same as check_set_output_transform_polars with a global setting",
    "check_inplace_ensure_writeable": "strings cannot be changed; check_readonly_memmap_input covers read-only arrays",
    "check_n_features_in": "a text has no number of features, as for text vectorizers",
    "check_n_features_in_after_fitting": "the same",
    "check_non_transformer_estimators_n_iter": "for estimators with max_iter; here epochs, and n_iter_ is there too",
    "check_nonsquare_error": "for kernels",
    "check_param_validation": "for scikit-learn's own declarations; test_classifier.py has ours",
    "check_positive_only_tag_during_fit": "a text is neither positive nor negative",
    "check_sample_weight_equivalence_on_sparse_data": "a sparse matrix holds no strings",
    "check_sparsify_coefficients": "for linear classifiers",
    "check_transformer_get_feature_names_out_pandas": "X has no columns whose names could be remembered",
    "check_transformer_n_iter": "for estimators with max_iter",
    "check_transformer_preserve_dtypes": "strings in, numbers out",
    "check_transformers_unfitted_stateless": "the transformer is not stateless",
}


def words(number: int, classes: int = 2, *, seed: int = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Texts of filler words with the cue of their class; the classes take turns."""
    random = np.random.RandomState(seed)
    y = np.arange(number) % classes
    texts = []
    for label in y:
        text = list(random.choice(FILLER, random.randint(2, 7)))
        text.insert(random.randint(len(text) + 1), CUES[label])
        texts.append(" ".join(text))
    return np.array(texts, dtype=object), y


def indicator(number: int, labels: int, *, seed: int = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Texts with any number of cues, none included."""
    random = np.random.RandomState(seed)
    y = random.randint(0, 2, (number, labels))
    texts = [" ".join([*random.choice(FILLER, 3), *(CUES[i] for i in np.flatnonzero(row))]) for row in y]
    return np.array(texts, dtype=object), y


def learned(model: TextClassifier, X: Any) -> dict[str, Any]:
    return {method: getattr(model, method)(X) for method in METHODS}


def assert_same(one: dict[str, Any], other: dict[str, Any], *, rtol: float, atol: float = 0) -> None:
    for method in METHODS:
        if one[method].dtype.kind == "f":
            np.testing.assert_allclose(one[method], other[method], rtol=rtol, atol=atol, err_msg=method)
        else:
            np.testing.assert_array_equal(one[method], other[method], err_msg=method)


@contextmanager
def memmapped(folder: Path, *data: Any) -> Iterator[Any]:
    joblib.dump(data, folder / "data.joblib")
    yield joblib.load(folder / "data.joblib", mmap_mode="r")


@pytest.fixture(scope="module")
def two() -> TextClassifier:
    """A classifier of two classes, not to be changed."""
    return tiny(epochs=4).fit(*words(40))


@pytest.fixture(scope="module")
def several() -> tuple[TextClassifier, NDArray[Any], NDArray[np.int64]]:
    """A classifier of five labels, and texts it has not seen."""
    X, y = indicator(75, 5)
    return tiny(epochs=6).fit(X, y), *indicator(25, 5, seed=1)


@pytest.mark.parametrize("check", AS_THEY_ARE)
def test_check_as_it_is(check: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(estimator_checks, check)("TextClassifier", tiny())


# Any estimator


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


# None is forgotten


def ported() -> set[str]:
    return {name.removeprefix("test_") for name in globals() if name.startswith("test_check_")} | set(AS_THEY_ARE)


def test_at_least_45_checks_are_ported() -> None:
    upstream = {name for name in vars(estimator_checks) if name.startswith("check_")}
    assert len(ported() & upstream) >= 45
    assert not ported() & DO_NOT_APPLY.keys()
    assert DO_NOT_APPLY.keys() <= upstream


@pytest.mark.skipif(not sklearn.__version__.startswith("1.9."), reason="the list of checks is that of scikit-learn 1.9")
def test_every_check_that_scikit_learn_runs_on_such_an_estimator_is_ported_or_has_its_reason() -> None:
    class Numbers(TextClassifier):
        """As one that reads numbers, so that no check is left out for its input."""

        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
            return tags

    runs = {
        getattr(check, "func", check).__name__ for check in estimator_checks._yield_all_checks(Numbers(), legacy=True)
    }
    assert len(runs) > 45
    assert runs - ported() - DO_NOT_APPLY.keys() == set()
