"""What the estimator refuses: one line that names what came and what was wanted."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from sklearn.exceptions import NotFittedError
from support.tiny_classifier import LABELS, TEXTS, tiny

from routepool import TextClassifier
from routepool.errors import InputError, UnknownNameError


@pytest.fixture(scope="module")
def model() -> TextClassifier:
    return tiny().fit(TEXTS, LABELS)


def test_the_unfitted_say_so(tmp_path: Path) -> None:
    for use in ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform"):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(TextClassifier(), use)(TEXTS)
    with pytest.raises(NotFittedError):
        TextClassifier().score(TEXTS, LABELS)
    with pytest.raises(NotFittedError):
        TextClassifier().save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ("one string", "X must be a list with an entry for each text, got one string; put it in a list"),
        (b"bytes", "got one string"),
        ([1, 2], "X[0] must be a string, got 1"),
        (np.zeros(2), "X[0] must be a string, got 0.0"),
        (["a", None], "X[1] must be a string, got None; drop missing texts or write them as ''"),
        (pandas.Series(["a", None]), "X[1] must be a string, got nan"),
        (polars.Series(["a", None]), "X[1] must be a string, got None"),
        (pyarrow.array(["a", None]), "X[1] must be a string, got None"),
        (["a", b"b"], "X[1] must be a string, got b'b'"),
        ([["a"], ["b"]], "X[0] must be a string, got ['a']"),
        (np.array([["a", "b"], ["c", "d"]]), "X must have one entry for each text, got shape (2, 2)"),
        (pandas.DataFrame({"text": ["a", "b"]}), "got shape (2, 1); choose one column of a table"),
        (polars.DataFrame({"text": ["a", "b"]}), "got shape (2, 1)"),
        (pyarrow.table({"text": ["a", "b"]}), "got shape (2, 1)"),
        (np.array("a"), "got shape ()"),
        ({"a": 1, "b": 2}, "X must be a list, in the order of the texts, got a dict"),
        ({"a", "b"}, "got a set"),
        (3, "X must be a list with an entry for each text, got 3"),
        (None, "got None"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_what_are_no_texts_is_refused(texts: Any, told: str, model: TextClassifier) -> None:
    for use in (lambda: tiny().fit(texts, ["a", "b"]), lambda: model.predict(texts), lambda: model.transform(texts)):
        with pytest.raises(InputError) as error:
            use()
        assert told in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["x", "y"], "wanted a label for each of the 3 texts, got 2"),
        (["x", "x", "x"], "wanted labels of two classes or more, got one class, 'x'"),
        (["x", 1, "y"], "labels must be all of one type, got 'x' and y[1] = 1"),
        (["x", None, "y"], "y[1] must be a label, got None; drop texts without one"),
        ([1.0, float("nan"), 2.0], "y[1] must be a label, got nan"),
        ([0.5, 1.5, 1], "y must hold classes, got continuous numbers such as y[0] = 0.5"),
        ([b"x", b"y", b"x"], "labels must be all of one type"),
        (np.array([1j, 2j, 1j]), "labels must be strings, whole numbers or booleans"),
        (np.array([[1, 2], [0, 1], [1, 1]]), "a y of 2 columns must hold zeros and ones"),
        (np.zeros((3, 2, 2)), "got shape (3, 2, 2)"),
        ([[], [], []], "wanted labels of one class or more, got none"),
        ("xyz", "y must be a list with an entry for each text, got one string"),
        ({"x", "y", "z"}, "y must be a list, in the order of the texts, got a set"),
        (None, "requires y to be passed"),
        (3, "y must be a list with an entry for each text, got 3"),
    ],
)
def test_what_are_no_labels_is_refused(labels: Any, told: str) -> None:
    with pytest.raises(InputError) as error:
        tiny().fit(["a", "b", "c"], labels)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ([1, -1, 1], "sample_weight[1] must be a finite number from 0, got -1"),
        ([1, np.nan, 1], "sample_weight[1] must be a finite number from 0, got nan"),
        ([1, 1], "sample_weight must be a number for each of the 3 texts, got shape (2,)"),
        (["a", "b", "c"], "sample_weight must be a number for each text"),
        (2, "sample_weight must be a number for each text, got 2"),
        ([0, 0, 0], "sample_weight must not be zero for every text"),
        ([1, 0, 1], "got one class, 'x'"),
    ],
)
def test_wrong_weights_are_refused(weights: Any, told: str) -> None:
    with pytest.raises(InputError) as error:
        tiny().fit(["a", "b", "c"], ["x", "y", "x"], sample_weight=weights)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"epochs": "many"}, "epochs must be a whole number, got 'many'"),
        ({"aggregator": "rooting"}, "unknown aggregator 'rooting', did you mean 'routing'?"),
        ({"aggregator": 3}, "aggregator must be a name, got 3"),
        ({"encoder": "bilstn"}, "did you mean 'bilstm'?"),
        ({"capsules": 3}, "unknown setting 'capsules'"),  # of an aggregator that has none
        ({"preset": "papper"}, "unknown preset 'papper', did you mean 'paper'?"),
        ({"preset": 3}, "preset must be a name, got 3"),
        ({"settings": {"learning_rat": 1}}, "unknown setting 'learning_rat'"),
        ({"settings": {"epochs": 2}}, "epochs is given twice, in settings and by the argument epochs"),
        ({"settings": {"seed": 2}}, "seed is given twice, in settings and by random_state"),
        ({"class_weight": "fair"}, "class_weight must be one of none, balanced, got 'fair'"),
        ({"class_weight": {"happy": 2}}, "class_weight names the label 'happy', got only glad, sad"),
        ({"class_weight": {"glad": -1}}, "class_weight of 'glad' must be a finite number from 0, got -1"),
        ({"class_weight": [1, 2]}, "class_weight must be 'balanced', a table or None, got [1, 2]"),
        ({"validation_fraction": 1.0}, "validation_fraction must be above 0 and below 1, or None, got 1.0"),
        ({"validation_fraction": "half"}, "validation_fraction must be above 0 and below 1"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"device": "gpu"}, "device gpu cannot be used here"),
        ({"vectors": "no-such-file.txt"}, "no-such-file.txt: no such file"),
        ({"vectors": 3}, "vectors must be a file, a name, 'none' or None, got 3"),
        ({"random_state": -1}, "random_state must be from 0 to 4294967295, got -1"),
        ({"random_state": "zero"}, "random_state must be a number, a RandomState or None, got 'zero'"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named_by_fit_not_before(settings: dict[str, Any], told: str) -> None:
    wrong = tiny(**settings)
    with pytest.raises(InputError) as error:
        wrong.fit(TEXTS, LABELS)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_settings_must_be_a_table() -> None:
    with pytest.raises(InputError, match="settings must be a table such as"):
        TextClassifier(settings=["epochs"]).fit(TEXTS, LABELS)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError):
        TextClassifier(settings={3: 3}).fit(TEXTS, LABELS)  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("dev", "told"),
    [
        (TEXTS, "dev must be a pair of texts and their labels"),
        ((["a"], ["b", "c"]), "wanted a label for each of the 1 texts, got 2"),
        ((["a"], ["angry"]), "unknown label 'angry'; the model knows glad, sad"),
        ((["a"], [["glad"]]), "the labels of dev must have the form of y, 'one', got 'sets'"),
        (([], []), "got 0 samples"),
    ],
)
def test_a_wrong_dev_set_is_refused(dev: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        tiny().fit(TEXTS, LABELS, dev=dev)


def test_too_few_texts_to_hold_some_out_are_told() -> None:
    with pytest.raises(InputError, match="too few different texts to hold some out; give dev, or validation_fraction"):
        tiny(validation_fraction=0.1).fit(["a", "b"], ["x", "y"])
