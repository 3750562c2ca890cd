"""The estimator among others: pipelines, searches, cross-validation, calibration, copies and files."""

import copy
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas
import pytest
from scipy.stats import loguniform, randint
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from support import planted

from routepool import TextClassifier

EXAMPLES = planted.planted(96)
TEXTS = [example.text for example in EXAMPLES]
LABELS = np.array([(example.labels or ("",))[0] for example in EXAMPLES])


def tiny(**values: Any) -> TextClassifier:
    usual: dict[str, Any] = {
        "aggregator": "mean", "encoder": "none", "vectors": "none", "embedding_size": 8, "epochs": 5, "batch_size": 8,
        "learning_rate": 0.05, "dropout": 0.0, "validation_fraction": None, "random_state": 0,
        "settings": {"head_size": 8},
    }  # fmt: skip
    return TextClassifier(**{**usual, **values})


def upper(texts: list[str]) -> list[str]:
    return [text.upper() for text in texts]


class Shorten(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Keeps the first words of a text."""

    def __init__(self, words: int = 20) -> None:
        self.words = words

    def fit(self, X: Any, y: Any = None) -> "Shorten":
        return self

    def transform(self, X: Any) -> list[str]:
        return [" ".join(text.split()[: self.words]) for text in X]


def test_it_is_a_classifier() -> None:
    assert is_classifier(tiny())


def test_it_ends_a_pipeline() -> None:
    pipeline = make_pipeline(FunctionTransformer(upper), Shorten(), tiny()).fit(TEXTS, LABELS)
    assert pipeline.score(TEXTS, LABELS) > 0.9
    assert pipeline.predict_proba(TEXTS).shape == (96, 2)
    assert pipeline.classes_.tolist() == ["glad", "sad"]


def test_a_weight_reaches_it_through_a_pipeline() -> None:
    weights = np.where(LABELS == "glad", 50.0, 0.01)
    pipeline = make_pipeline(Shorten(1), tiny(epochs=2))
    told = pipeline.fit(TEXTS, LABELS, textclassifier__sample_weight=weights)
    assert set(told.predict(TEXTS)) == {"glad"}


def test_its_vectors_feed_another_classifier() -> None:
    pipeline = make_pipeline(tiny(), LogisticRegression()).fit(TEXTS, LABELS)
    assert pipeline.score(TEXTS, LABELS) > 0.9
    assert pipeline[:-1].get_feature_names_out().tolist() == [f"textclassifier{place}" for place in range(8)]


def test_its_vectors_stand_beside_others() -> None:
    union = FeatureUnion([("routed", tiny(epochs=1)), ("counted", TfidfVectorizer())])
    both = make_pipeline(union, LogisticRegression()).fit(TEXTS, LABELS)
    assert both.score(TEXTS, LABELS) > 0.9
    table = pandas.DataFrame({"review": TEXTS, "stars": range(96)})
    columns = ColumnTransformer([("text", tiny(epochs=1), "review"), ("number", "passthrough", ["stars"])])
    assert columns.fit_transform(table, LABELS).shape == (96, 9)
    assert columns.get_feature_names_out()[0] == "text__textclassifier0"


def test_a_grid_search_finds_the_better_setting() -> None:
    grid = {"learning_rate": [1e-6, 0.05], "aggregator": ["max", "mean"]}
    search = GridSearchCV(tiny(), grid, cv=2, error_score="raise").fit(TEXTS, LABELS)
    assert search.best_params_["learning_rate"] == 0.05
    assert search.best_score_ > 0.9
    assert search.predict(["a merry cup", "a bitter cup"]).tolist() == ["glad", "sad"]


def test_a_grid_search_runs_in_processes() -> None:
    search = GridSearchCV(tiny(), {"epochs": [1, 3]}, cv=2, n_jobs=2, error_score="raise").fit(TEXTS, LABELS)
    alone = GridSearchCV(tiny(), {"epochs": [1, 3]}, cv=2, error_score="raise").fit(TEXTS, LABELS)
    assert search.cv_results_["mean_test_score"].tolist() == alone.cv_results_["mean_test_score"].tolist()


def test_a_random_search_may_draw_numbers_of_numpy() -> None:
    drawn = {"learning_rate": loguniform(0.01, 0.1), "epochs": randint(1, 3), "dropout": [np.float32(0.0)]}
    search = RandomizedSearchCV(tiny(), drawn, n_iter=2, cv=2, random_state=0, error_score="raise")
    assert search.fit(TEXTS, LABELS).best_params_["epochs"] in (1, 2)


def test_a_search_reaches_settings_inside_a_pipeline_and_scores_a_wrong_one_as_failed() -> None:
    pipeline = make_pipeline(Shorten(), tiny(epochs=1))
    with pytest.warns() as told:
        search = GridSearchCV(pipeline, {"textclassifier__epochs": [0, 2]}, cv=2).fit(TEXTS, LABELS)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False]
    failures = [str(warning.message) for warning in told if warning.category is FitFailedWarning]
    assert "epochs must be at least 1, got 0" in failures[0]


@pytest.mark.parametrize(
    "texts", [TEXTS, np.array(TEXTS, dtype=object), pandas.Series(TEXTS)], ids=["list", "array", "series"]
)
def test_cross_validation(texts: Any) -> None:
    scores = cross_val_score(tiny(), texts, LABELS, cv=3, error_score="raise")
    assert scores.shape == (3,)
    assert scores.mean() > 0.8


def test_cross_validation_with_several_scores_and_predictions() -> None:
    scoring = ["accuracy", "roc_auc", "neg_log_loss", "f1_macro"]
    results = cross_validate(tiny(), TEXTS, LABELS, cv=2, scoring=scoring, error_score="raise")
    assert all(np.isfinite(results[f"test_{name}"]).all() for name in scoring)
    for method, shape in (("predict", (96,)), ("predict_proba", (96, 2)), ("decision_function", (96,))):
        assert cross_val_predict(tiny(), TEXTS, LABELS, cv=2, method=method).shape == shape


def test_a_learning_curve() -> None:
    sizes, learned, held = learning_curve(
        tiny(), TEXTS, LABELS, cv=2, train_sizes=[12, 24], shuffle=True, random_state=0
    )
    assert (sizes.tolist(), learned.shape, held.shape) == ([12, 24], (2, 2), (2, 2))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration(method: str) -> None:
    calibrated = CalibratedClassifierCV(tiny(), method=method, cv=2).fit(TEXTS, LABELS)
    np.testing.assert_allclose(calibrated.predict_proba(TEXTS).sum(1), 1)
    assert calibrated.score(TEXTS, LABELS) > 0.9


def test_it_votes_and_is_bagged() -> None:
    voting = VotingClassifier(
        [("one", tiny()), ("two", tiny(random_state=1)), ("none", DummyClassifier())], voting="soft"
    )
    assert voting.fit(TEXTS, LABELS).score(TEXTS, LABELS) > 0.9
    members = make_pipeline(FunctionTransformer(np.ravel), tiny())  # bagging hands tables on
    bagged = BaggingClassifier(members, n_estimators=2, random_state=0)
    rows = np.array(TEXTS, dtype=object)[:, np.newaxis]
    assert bagged.fit(rows, LABELS).score(rows, LABELS) > 0.8


def test_one_against_the_rest() -> None:
    matrix = np.stack([LABELS == "glad", LABELS == "sad"], axis=1).astype(int)
    rest = OneVsRestClassifier(tiny()).fit(np.array(TEXTS, dtype=object), matrix)
    assert rest.predict(np.array(TEXTS, dtype=object)).shape == (96, 2)


def test_several_labels_are_cross_validated_as_a_matrix() -> None:
    examples = planted.several(120)
    matrix = np.array([[label in (each.labels or ()) for label in planted.LABELS] for each in examples], dtype=int)
    texts = [example.text for example in examples]
    scores = cross_val_score(tiny(epochs=8), texts, matrix, cv=2, scoring="f1_micro", error_score="raise")
    assert scores.mean() > 0.7


def test_a_clone_has_the_settings_and_nothing_learned() -> None:
    fitted = tiny().fit(TEXTS, LABELS)
    cloned = clone(fitted)
    assert cloned.get_params() == fitted.get_params()
    assert not hasattr(cloned, "classes_")
    np.testing.assert_array_equal(cloned.fit(TEXTS, LABELS).predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_settings_are_got_and_set() -> None:
    model = tiny()
    assert model.set_params(epochs=7, settings={"patience": 2}).get_params()["epochs"] == 7
    with pytest.raises(ValueError, match="Invalid parameter 'epoch' for estimator TextClassifier"):
        model.set_params(epoch=7)


def test_copies_and_files_predict_alike(tmp_path: Path) -> None:
    fitted = tiny(aggregator="routing", capsules=2, capsule_size=4, encoder="bilstm", hidden_size=4, epochs=1)
    expected = fitted.fit(TEXTS, LABELS).predict_proba(TEXTS)
    joblib.dump(fitted, tmp_path / "model.joblib")
    fitted.save(tmp_path / "run")
    copies = {
        "pickle": pickle.loads(pickle.dumps(fitted)),
        "joblib": joblib.load(tmp_path / "model.joblib"),
        "deepcopy": copy.deepcopy(fitted),
        "folder": TextClassifier.load(tmp_path / "run"),
    }
    for name, other in copies.items():
        np.testing.assert_array_equal(other.predict_proba(TEXTS), expected, err_msg=name)
        assert other.classes_.tolist() == fitted.classes_.tolist()


def test_a_fitted_pipeline_is_pickled() -> None:
    pipeline = make_pipeline(Shorten(), tiny()).fit(TEXTS, LABELS)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), pipeline.predict_proba(TEXTS))
