"""The estimator's own promises: what it reads, and that it is the command line's model."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from support import planted
from support.cli_runs import succeed, train_tiny
from support.tiny_classifier import EXAMPLES, LABELS, TEXTS, same, saved, tiny

from routepool import TextClassifier, load
from routepool.datasets import split
from routepool.errors import InputError
from routepool.estimator.inputs import read_labels
from routepool.settings import Changes
from routepool.settings.choosing import parse_assignments
from routepool.training import Hook, ProgressBar, StepReport, Task, fit

SEVERAL = planted.several(60)
SETS = [example.labels or () for example in SEVERAL]


@pytest.fixture(scope="module")
def model() -> TextClassifier:
    return tiny().fit(TEXTS, LABELS)


# What it reads


CONTAINERS = {
    "tuple": tuple,
    "generator": lambda texts: (text for text in texts),
    "objects": lambda texts: np.array(texts, dtype=object),
    "numpy": np.array,
    "numpy strings": lambda texts: np.array(texts, dtype=np.dtypes.StringDType()),
    "list of numpy strings": lambda texts: list(np.array(texts)),
    "pandas": pandas.Series,
    "pandas, index": lambda texts: pandas.Series(texts, index=range(100, 100 + len(texts))),
    "categories": lambda texts: pandas.Series(texts, dtype="category"),
    "polars": polars.Series,
    "arrow": pyarrow.array,
    "arrow, chunked": lambda texts: pyarrow.chunked_array([texts[:7], texts[7:]]),
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_texts_and_labels_come_in_any_container(container: Any, model: TextClassifier) -> None:
    read = tiny().fit(container(TEXTS), container(LABELS))
    assert same(read, model)
    assert read.classes_.tolist() == ["glad", "sad"]
    np.testing.assert_array_equal(read.predict(container(TEXTS)), model.predict(TEXTS))
    np.testing.assert_array_equal(read.predict_proba(container(TEXTS)), model.predict_proba(TEXTS))


@pytest.mark.parametrize(
    ("names", "kind"), [((1, 0), int), ((True, False), bool), ((2.0, -1.0), float), (("é", "a b"), str)]
)
def test_labels_keep_their_type_and_are_sorted(names: tuple[Any, Any], kind: type, tmp_path: Path) -> None:
    labels = [names[place % 2] for place in range(len(TEXTS))]
    fitted = tiny(epochs=6).fit(TEXTS, labels)
    assert fitted.classes_.tolist() == sorted(names)
    predicted = fitted.predict(TEXTS)
    assert predicted.tolist() == labels
    assert {type(label) for label in predicted.tolist()} == {kind}
    fitted.save(tmp_path / "run")
    loaded = TextClassifier.load(tmp_path / "run")
    assert loaded.predict(TEXTS).tolist() == labels
    assert loaded.classes_.dtype.kind == fitted.classes_.dtype.kind
    assert load(tmp_path / "run").predict(TEXTS[:2]) == [str(names[0]), str(names[1])]


def test_numbers_are_sorted_as_numbers() -> None:
    assert tiny(epochs=1).fit(["a", "b", "c"] * 3, [10, 9, 100] * 3).classes_.tolist() == [9, 10, 100]


def test_no_texts_give_no_rows(model: TextClassifier) -> None:
    assert model.predict([]).shape == (0,)
    assert model.predict_proba([]).shape == (0, 2)
    assert model.transform([]).shape == (0, 8)


# Several labels


def test_lists_of_labels_come_back_as_tuples_of_labels() -> None:
    texts = [example.text for example in SEVERAL]
    for labels in (SETS, [set(each) for each in SETS], [list(each) for each in SETS], pandas.Series(SETS)):
        fitted = tiny(epochs=8).fit(texts, labels)
        assert fitted.classes_.tolist() == ["glad", "sad"]
        predicted = fitted.predict(texts)
        assert set(predicted) <= {(), ("glad",), ("sad",), ("glad", "sad")}
        right = np.mean([set(one) == set(other) for one, other in zip(predicted, SETS, strict=True)])
        assert fitted.score(texts, labels) == right > 0.8
    assert fitted.score(texts, labels, sample_weight=[1] + [0] * 59) in (0, 1)


def test_a_matrix_and_lists_of_labels_train_the_same_model() -> None:
    texts = [example.text for example in SEVERAL]
    matrix = np.array([["glad" in each, "sad" in each] for each in SETS], dtype=int)
    one, other = tiny().fit(texts, matrix), tiny().fit(texts, SETS)
    assert same(one, other)
    np.testing.assert_array_equal(one.predict_proba(texts), other.predict_proba(texts))
    assert one.classes_.tolist() == [0, 1]
    assert [tuple(np.take(["glad", "sad"], np.flatnonzero(row))) for row in one.predict(texts)] == other.predict(texts)


def test_thresholds_of_several_labels_are_the_zero_of_the_decision(tmp_path: Path) -> None:
    texts = [example.text for example in planted.several(300)]
    labels = np.array([[label in (each.labels or ()) for label in planted.LABELS] for each in planted.several(300)])
    fitted = tiny(validation_fraction=0.5, settings={"calibration": 0.5}).fit(texts, labels)
    assert fitted.predictor_.thresholds not in (None, [0.5, 0.5])
    np.testing.assert_array_equal(fitted.predict(texts), fitted.decision_function(texts) >= 0)
    fitted.save(tmp_path / "run")
    np.testing.assert_array_equal(TextClassifier.load(tmp_path / "run").predict(texts), fitted.predict(texts))


def test_nested_lists_are_read_as_scikit_learn_reads_them() -> None:
    assert read_labels([[0, 1], [1, 0]]).form == "indicator"
    assert read_labels([{0, 1}, {1, 0}]).form == "sets"
    assert read_labels([["a", "b"], ["b", "c"]]).form == "sets"
    assert read_labels([[0], [1]]).form == "sets"


# One path with the command line


def test_it_trains_what_the_command_line_trains() -> None:
    """The same settings, the same part held out, the same seed: the same weights."""
    fitted = TextClassifier(vectors="none", epochs=1, hidden_size=4, settings={"head_size": 4}, random_state=3).fit(
        TEXTS, LABELS
    )
    asked = Changes.of("default", parse_assignments(("epochs=1", "hidden_size=4", "head_size=4", "seed=3")))
    parts = split(EXAMPLES, held=0.1, seed=3)
    task = Task([EXAMPLES[i] for i in parts.kept], [EXAMPLES[i] for i in parts.held], planted.LABELS)
    other = fit(task, asked.preset(data="texts.csv"))
    assert planted.identical(saved(fitted), other)


def test_long_texts_are_documents_unless_told() -> None:
    long = [" ".join(TEXTS[place : place + 20]) for place in range(20)] * 2
    assert saved(tiny(epochs=1).fit(long, LABELS)).model_config.depth == 2
    assert saved(tiny(epochs=1, depth=1).fit(long, LABELS)).model_config.depth == 1


def test_a_folder_of_the_command_line_is_an_estimator(tmp_path: Path) -> None:
    run = train_tiny(tmp_path)
    loaded, model = TextClassifier.load(run), load(run)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert loaded.predict(TEXTS).tolist() == model.predict(TEXTS)
    assert loaded.classes_.tolist() == sorted(model.labels)


def test_a_saved_estimator_predicts_on_the_command_line(model: TextClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    rows = succeed("predict", tmp_path / "run", tmp_path / "texts.txt").out.splitlines()
    assert [row.split(",")[1] for row in rows[1:]] == model.predict(TEXTS).tolist()
    with pytest.raises(InputError, match="it holds a finished model already"):
        model.save(tmp_path / "run")
    model.save(tmp_path / "run", force=True)


def test_a_loaded_estimator_can_be_trained_again_alike(tmp_path: Path) -> None:
    fitted = tiny(validation_fraction=0.2, random_state=5).fit(TEXTS, LABELS)
    fitted.save(tmp_path / "run")
    loaded = TextClassifier.load(tmp_path / "run").set_params(vectors="none", validation_fraction=0.2)
    assert same(loaded.fit(TEXTS, LABELS), fitted)


def test_labels_of_a_folder_come_in_any_order_and_are_sorted(tmp_path: Path) -> None:
    """The command line puts 2 before 10; strings are sorted otherwise."""
    data = tmp_path / "data.csv"
    rows = [f'{("2", "10")[place % 2]},"{text}"' for place, text in enumerate(TEXTS)]
    data.write_text("\n".join(["label,text", *rows]), encoding="utf-8")
    settings = [f"--set={each}" for each in ("hidden_size=4", "head_size=4", "epochs=4", "learning_rate=0.05")]
    succeed("train", data, "--out", tmp_path / "run", "--vectors", "none", *settings)
    loaded, model = TextClassifier.load(tmp_path / "run"), load(tmp_path / "run")
    assert (model.labels, loaded.classes_.tolist()) == (("2", "10"), ["10", "2"])
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS)[:, ::-1])
    assert loaded.predict(TEXTS).tolist() == model.predict(TEXTS)
    np.testing.assert_array_equal(
        loaded.classes_[(loaded.decision_function(TEXTS) > 0).astype(int)], loaded.predict(TEXTS)
    )


# Watching and stopping


def test_verbose_tells_each_epoch_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    tiny(epochs=2).fit(TEXTS, LABELS)
    assert capsys.readouterr() == ("", "")
    tiny(epochs=2, verbose=True).fit(TEXTS, LABELS)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[0] for line in err.splitlines()] == ["epoch 1", "epoch 2"]


def test_ctrl_c_is_a_keyboard_interrupt_that_no_search_takes_for_a_bad_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopping(ProgressBar):
        def on_step(self, report: StepReport) -> None:
            signal.raise_signal(signal.SIGINT)

    assert issubclass(Stopping, Hook)
    monkeypatch.setattr("routepool.estimator.classifier.ProgressBar", Stopping)
    with pytest.raises(KeyboardInterrupt):
        tiny(verbose=True).fit(TEXTS, LABELS)


def test_the_package_alone_imports_no_scikit_learn() -> None:
    code = (
        "import routepool, sys; print('sklearn' in sys.modules, routepool.TextClassifier(), 'sklearn' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.stdout.split() == ["False", "TextClassifier()", "True"]
