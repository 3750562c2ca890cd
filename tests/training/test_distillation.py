"""A student learns what its teachers answer; the answers are computed once, and never taken for others."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import planted
from support.planted import Failing

from routepool.arrays import Floats32
from routepool.datasets import Example
from routepool.errors import InputError
from routepool.persistence import SavedModel, latest_checkpoint, save_model
from routepool.persistence.tensors import stream
from routepool.scoring.predictor import of_saved
from routepool.training import Fitted, Objective, Task, Teacher, balanced_weights, fit, teacher_logits, teaching


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("teacher"), planted.train(planted.quick()).saved)


def written(folder: Path, saved: SavedModel) -> Path:
    save_model(folder / "run", saved, card={})
    return folder / "run"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts a teacher really answered, call by call."""
    calls: list[int] = []
    compute = Teacher.compute

    def watch(self: Teacher, texts: Sequence[str]) -> Floats32:
        calls.append(len(texts))
        return compute(self, texts)

    monkeypatch.setattr(Teacher, "compute", watch)
    return calls


def texts_of(number: int, *, seed: int = 5) -> list[str]:
    return [example.text for example in planted.planted(number, seed=seed)]


def taught(teacher: Path, folder: Path, *, unlabelled: int = 60) -> Task:
    task = planted.task(train=8)
    train = [*task.train, *(Example(row, text) for row, text in enumerate(texts_of(unlabelled), 1))]
    logits = teacher_logits([Teacher.read(teacher)], [one.text for one in train], task.labels, folder=folder)
    return replace(task, train=train, teacher_logits=logits)


def test_a_student_of_unlabelled_texts_agrees_with_its_teacher(teacher: Path, tmp_path: Path) -> None:
    task, fresh = taught(teacher, tmp_path, unlabelled=160), texts_of(100, seed=9)
    wanted = of_saved(Teacher.read(teacher).saved).logits(fresh)
    wanted -= wanted.mean(1, keepdims=True)
    student, untaught = (
        of_saved(planted.train(planted.quick(epochs=12, seed=1), of=of).saved).logits(fresh)
        for of in (task, planted.task(train=8))
    )
    agreement = [float((one.argmax(1) == wanted.argmax(1)).mean()) for one in (student, untaught)]
    assert agreement[0] > max(0.85, agreement[1] + 0.1)
    error = [float(((one - wanted) ** 2).mean()) for one in (student, untaught)]
    assert error[0] < 0.5 * error[1]


def test_answers_are_in_the_students_order_and_mean_nothing_by_their_sum(teacher: Path, tmp_path: Path) -> None:
    texts = texts_of(5)
    own = of_saved(Teacher.read(teacher).saved).logits(texts)
    for labels, columns in ((("glad", "sad"), [0, 1]), (("sad", "glad"), [1, 0])):
        logits = teacher_logits([Teacher.read(teacher)], texts, labels, folder=tmp_path)
        np.testing.assert_allclose(logits, (own - own.mean(1, keepdims=True))[:, columns], atol=1e-5)
        np.testing.assert_allclose(logits.sum(1), 0, atol=1e-6)


def test_several_teachers_are_averaged(teacher: Path, tmp_path: Path) -> None:
    other = written(tmp_path, planted.train(planted.tiny(seed=3, epochs=1)).saved)
    each = [
        teacher_logits([Teacher.read(one)], texts_of(5), planted.LABELS, folder=tmp_path) for one in (teacher, other)
    ]
    both = teacher_logits([Teacher.read(teacher), Teacher.read(other)], texts_of(5), planted.LABELS, folder=tmp_path)
    assert not np.allclose(each[0], each[1], atol=1e-2)
    np.testing.assert_allclose(both, (each[0] + each[1]) / 2, atol=1e-6)


def test_answers_are_computed_once_and_anew_for_changed_texts(
    teacher: Path, tmp_path: Path, computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teaching, "CHUNK", 4)
    texts = texts_of(10)
    first = teacher_logits([Teacher.read(teacher)], texts, planted.LABELS, folder=tmp_path)
    assert computed == [4, 4, 2]
    again = teacher_logits([Teacher.read(teacher)], texts, planted.LABELS, folder=tmp_path)
    assert computed == [4, 4, 2]
    assert np.array_equal(first, again)
    changed = [*texts[:9], "A gloomy table."]
    teacher_logits([Teacher.read(teacher)], changed, planted.LABELS, folder=tmp_path)
    assert computed == [4, 4, 2, 2]
    other = written(tmp_path, planted.train(planted.tiny(seed=3, epochs=1)).saved)
    teacher_logits([Teacher.read(other)], texts, planted.LABELS, folder=tmp_path)
    assert computed == [4, 4, 2, 2, 4, 4, 2]


def test_an_interruption_costs_one_chunk(
    teacher: Path, tmp_path: Path, computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teaching, "CHUNK", 4)
    rows = Teacher.read(teacher).answers(texts_of(10), folder=tmp_path)
    for _ in range(6):  # into the second chunk
        next(rows)
    rows.close()  # type: ignore[attr-defined]
    teacher_logits([Teacher.read(teacher)], texts_of(10), planted.LABELS, folder=tmp_path)
    assert computed == [4, 4, 2]
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("damage", [b"", b"nonsense", "shape", "nan"], ids=str)
def test_damaged_answers_are_computed_again(
    damage: bytes | str, teacher: Path, tmp_path: Path, computed: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    first = teacher_logits([Teacher.read(teacher)], texts_of(3), planted.LABELS, folder=tmp_path)
    (file,) = tmp_path.rglob("*.safetensors")
    if isinstance(damage, bytes):
        file.write_bytes(damage)
    else:
        wrong = torch.full((3, 2), float("nan")) if damage == "nan" else torch.zeros(2, 2)
        file.write_bytes(b"".join(stream({"logits": wrong})))
    again = teacher_logits([Teacher.read(teacher)], texts_of(3), planted.LABELS, folder=tmp_path)
    assert np.array_equal(first, again)
    assert computed == [3, 3]
    assert "the cache is broken and made again" in caplog.text


def test_a_folder_that_cannot_be_written_costs_a_warning(
    teacher: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    logits = teacher_logits([Teacher.read(teacher)], texts_of(3), planted.LABELS, folder=tmp_path / "file")
    assert logits.shape == (3, 2)
    assert "not kept" in caplog.text


def test_other_labels_are_refused(teacher: Path) -> None:
    for labels, multi_label in ((("glad", "angry"), False), (("glad", "sad", "angry"), False), (("glad", "sad"), True)):
        with pytest.raises(InputError, match="the teacher gives one of the labels glad, sad; the data must have"):
            teacher_logits([Teacher.read(teacher)], ["a"], labels, multi_label=multi_label)


def test_the_loss_of_a_student_is_the_squared_error_and_as_much_of_the_labels_as_asked_for() -> None:
    logits, wanted = torch.tensor([[1.0, -1.0], [0.0, 0.0]]), torch.tensor([[3.0, -3.0], [1.0, -1.0]])
    targets = torch.from_numpy(Objective(("a", "b")).targets([("a",), None]))
    squared = [(2**2 + 2**2) / 2, (1**2 + 1**2) / 2]
    pure = Objective(("a", "b"))
    assert float(pure.loss(logits, targets, None, wanted)) == pytest.approx(sum(squared) / 2)
    entropy = float(np.log(1 + np.exp(-2)))  # of the first text; the second has no label
    mixed = replace(pure, label_weight=0.25)
    expected = (0.75 * squared[0] + 0.25 * entropy + 0.75 * squared[1]) / 2
    assert float(mixed.loss(logits, targets, None, wanted)) == pytest.approx(expected)
    weighted = (2 * squared[0] + 0.5 * squared[1]) / 2
    assert float(pure.loss(logits, targets, torch.tensor([2.0, 0.5]), wanted)) == pytest.approx(weighted)


def test_of_several_labels_none_known_is_not_the_same_as_none() -> None:
    objective = Objective(("a", "b"), multi_label=True, label_weight=1.0)
    targets = objective.targets([("a",), (), None])
    assert targets.tolist() == [[1, 0], [0, 0], [-1, -1]]
    logits = torch.zeros(3, 2)
    assert float(objective.loss(logits, torch.from_numpy(targets), None, logits)) == pytest.approx(2 / 3 * np.log(2))


def test_balanced_classes_are_counted_among_labelled_texts(teacher: Path, tmp_path: Path) -> None:
    task = taught(teacher, tmp_path)
    fitted = planted.train(planted.tiny(epochs=1, class_weight="balanced", label_weight=0.5), of=task)
    assert np.isfinite(fitted.progress.best_score)
    assert balanced_weights(np.array([0, 1]), 2).tolist() == [1, 1]


def test_several_labels_are_distilled_too(tmp_path: Path) -> None:
    train, dev = planted.several(80), planted.several(30, seed=1)
    of_labels = Task(train, dev, planted.LABELS, multi_label=True)
    run = written(tmp_path, fit(of_labels, planted.quick()).saved)
    unlabelled = [Example(one.row, one.text) for one in planted.several(60, seed=2)]
    logits = teacher_logits(
        [Teacher.read(run)], [one.text for one in unlabelled], planted.LABELS, multi_label=True, folder=tmp_path
    )
    student: Fitted = fit(replace(of_labels, train=unlabelled, teacher_logits=logits), planted.quick(seed=1))
    assert student.progress.best_score > 0.8


def test_a_text_without_labels_is_refused_where_nobody_answers_for_it() -> None:
    task = planted.task()
    with pytest.raises(InputError, match="text 61 must have one label, got 0"):
        planted.train(of=replace(task, train=[*task.train, Example(1, "a")]))


@pytest.mark.parametrize("settings", [{}, {"label_weight": 0.5, "average_weights": 0.8}], ids=str)
def test_a_resumed_student_is_the_same_to_the_last_bit(settings: dict[str, Any], teacher: Path, tmp_path: Path) -> None:
    task = taught(teacher, tmp_path / "cache", unlabelled=52)
    whole = planted.train(planted.tiny(**settings), of=task)
    with pytest.raises(ZeroDivisionError):
        planted.train(planted.tiny(**settings), of=task, run=tmp_path / "run", hooks=[Failing(step=13)])
    run = tmp_path / "run"
    again = planted.train(planted.tiny(**settings), of=task, run=run, checkpoint=latest_checkpoint(run))
    assert planted.identical(again, whole)
