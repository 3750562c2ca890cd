"""The estimator's own promises: what it reads, what it refuses, and that it is the command line's model."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import planted
import polars
import pyarrow
import pytest
import torch
from cli_runs import succeed, train_tiny
from sklearn.exceptions import NotFittedError

from routepool import TextClassifier, load
from routepool.cli.settings import Asked, resolve
from routepool.datasets import split
from routepool.errors import InputError, UnknownNameError
from routepool.inputs import read_labels
from routepool.persistence import SavedModel
from routepool.settings import default_preset
from routepool.training import Hook, Objective, StepReport, Task, Trainer, fit
from routepool.training.watching import ProgressBar

EXAMPLES = planted.planted(40)
TEXTS = [example.text for example in EXAMPLES]
LABELS = [(example.labels or ("",))[0] for example in EXAMPLES]
SEVERAL = planted.several(60)
SETS = [example.labels or () for example in SEVERAL]


def tiny(**values: Any) -> TextClassifier:
    settings = {"head_size": 8, "word_dropout": 0.0, **values.pop("settings", {})}
    usual: dict[str, Any] = {
        "aggregator": "mean", "encoder": "none", "vectors": "none", "embedding_size": 8, "hidden_size": 8,
        "epochs": 3, "batch_size": 16, "learning_rate": 0.05, "dropout": 0.0, "validation_fraction": None,
        "random_state": 0,
    }  # fmt: skip
    return TextClassifier(**{**usual, **values}, settings=settings)


@pytest.fixture(scope="module")
def model() -> TextClassifier:
    return tiny().fit(TEXTS, LABELS)


def saved(model: TextClassifier) -> SavedModel:
    assert model.predictor_.saved is not None
    return model.predictor_.saved


def same(one: TextClassifier, other: TextClassifier) -> bool:
    """To the last bit."""
    return planted.identical(saved(one), saved(other))


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
    asked = Asked(assignments=("epochs=1", "hidden_size=4", "head_size=4", "seed=3"))
    parts = split(EXAMPLES, held=0.1, seed=3)
    task = Task([EXAMPLES[i] for i in parts.kept], [EXAMPLES[i] for i in parts.held], planted.LABELS)
    other = fit(task, resolve(asked, data="texts.csv", texts=TEXTS))
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


# Settings


def test_settings_are_those_of_the_preset_unless_named() -> None:
    usual = default_preset()
    named = TextClassifier(epochs=2, capsules=3, iterations=2, settings={"patience": 2, "average": False})
    chosen = named._preset(TEXTS, seed=7)
    assert chosen.model.aggregator_options == {"average": False, "capsules": 3, "iterations": 2}
    assert (chosen.training.epochs, chosen.training.patience, chosen.training.seed) == (2, 2, 7)
    assert chosen.training.learning_rate == usual.training.learning_rate
    assert TextClassifier(preset="paper")._preset(TEXTS, seed=0).training.learning_rate == 3e-4
    assert TextClassifier(preset="paper", aggregator="mean")._preset(["word " * 61], seed=0).model.depth == 1


def test_numbers_of_numpy_are_numbers() -> None:
    drawn: dict[str, Any] = {"epochs": np.int64(2), "dropout": np.float32(0.25)}
    settled = TextClassifier(**drawn, settings={"sparse": np.bool_(False)})._preset(TEXTS, seed=0)
    assert (settled.training.epochs, settled.model.dropout, settled.training.sparse) == (2, 0.25, False)


def test_vectors_are_those_that_are_installed_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def watch(task: Task, preset: Any, **options: Any) -> Any:
        seen.append(task.vectors)
        raise InputError("seen")

    monkeypatch.setattr("routepool.classifier.fit", watch)
    for installed, vectors in (("wordllama", None), (None, None), ("wordllama", "none"), (None, "a.txt")):
        monkeypatch.setattr("routepool.classifier.installed", lambda found=installed: found)
        with pytest.raises(InputError, match="seen"):
            tiny(vectors=vectors).fit(TEXTS, LABELS)
    assert seen == ["wordllama", None, None, "a.txt"]


def test_the_same_number_gives_the_same_model_and_another_another() -> None:
    assert same(tiny().fit(TEXTS, LABELS), tiny().fit(TEXTS, LABELS))
    assert not same(tiny().fit(TEXTS, LABELS), tiny(random_state=1).fit(TEXTS, LABELS))
    states = [np.random.RandomState(7) for _ in range(2)]
    one, other = (tiny(random_state=state).fit(TEXTS, LABELS) for state in states)
    assert same(one, other)
    assert not same(one, tiny(random_state=states[0]).fit(TEXTS, LABELS))  # its next number
    assert not same(tiny(random_state=None).fit(TEXTS, LABELS), tiny(random_state=None).fit(TEXTS, LABELS))


def test_random_numbers_and_threads_of_the_user_stay_as_they_are() -> None:
    torch.manual_seed(1)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    tiny(threads=2).fit(TEXTS, LABELS)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


# What decides the end


class Seen:
    """The task that training was given."""

    task: Task


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    noted = Seen()

    def watch(task: Task, preset: Any, **options: Any) -> Any:
        noted.task = task
        return fit(task, preset, **options)

    monkeypatch.setattr("routepool.classifier.fit", watch)
    return noted


def test_a_part_is_held_out_by_label_and_by_seed(seen: Seen) -> None:
    held = []
    for seed in (0, 0, 1):
        tiny(validation_fraction=0.25, epochs=1, random_state=seed).fit(TEXTS, LABELS)
        held.append([example.text for example in seen.task.dev])
        assert sorted(example.labels or () for example in seen.task.dev) == [("glad",)] * 5 + [("sad",)] * 5
        assert not set(held[-1]) & {example.text for example in seen.task.train}
    assert held[0] == held[1] != held[2]


def test_a_dev_set_of_ones_own_decides(seen: Seen) -> None:
    dev = planted.planted(10, seed=4)
    fitted = tiny(validation_fraction=0.25).fit(
        TEXTS, LABELS, dev=([one.text for one in dev], [(one.labels or ("",))[0] for one in dev])
    )
    assert (len(seen.task.train), len(seen.task.dev)) == (40, 10)
    assert fitted.validation_score_ == fitted.score(
        [one.text for one in dev], [(one.labels or ("",))[0] for one in dev]
    )
    assert 1 <= fitted.n_iter_ <= 3


def test_without_a_part_every_text_is_learned(seen: Seen) -> None:
    fitted = tiny().fit(TEXTS, LABELS)
    assert seen.task.dev is seen.task.train
    assert fitted.predictor_.temperature == 1
    assert fitted.validation_score_ == fitted.score(TEXTS, LABELS)


# Weights


def test_a_weighted_loss_is_the_loss_of_repeated_texts() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    weights = np.array([3, 1, 2, 2])
    mean_of_one = torch.tensor(weights * 4 / 8)
    for objective, targets in (
        (Objective(("a", "b", "c")), torch.tensor([0, 1, 2, 1])),
        (Objective(("a", "b", "c"), multi_label=True), torch.tensor([[1, 0, 0], [1, 1, 1], [0, 0, 0], [0, 1, 0]])),
    ):
        rows = torch.from_numpy(np.repeat(np.arange(4), weights))
        expected = objective.loss(logits[rows], targets[rows])
        torch.testing.assert_close(objective.loss(logits, targets, mean_of_one).float(), expected)


def test_a_heavy_text_is_learned_before_its_contradictions() -> None:
    """The same text with both labels: the heavier one wins."""
    texts = ["one text"] * 10 + ["another text"] * 10
    labels = ["yes", "no"] * 5 + ["other"] * 10
    for heavy in ("yes", "no"):
        weights = [5.0 if label == heavy else 1.0 for label in labels]
        assert tiny(epochs=10).fit(texts, labels, sample_weight=weights).predict(["one text"]) == [heavy]


def test_balanced_weights_count_a_text_as_often_as_it_weighs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    begin = Trainer.__init__

    def watch(self: Trainer, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        seen.append(self.objective.weights)

    monkeypatch.setattr(Trainer, "__init__", watch)
    tiny(class_weight="balanced", epochs=1).fit(["a", "b", "c"], [0, 0, 1], sample_weight=[1, 1, 2])
    tiny(class_weight={1: 3}, epochs=1).fit(["a", "b", "c"], [0, 0, 1])
    assert seen[0].tolist() == pytest.approx([1, 1])  # two texts that weigh one against one that weighs two
    assert seen[1].tolist() == [1, 3]


# Bad input


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
    monkeypatch.setattr("routepool.classifier.ProgressBar", Stopping)
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
