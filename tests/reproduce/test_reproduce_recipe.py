"""The runs of the recipe: models that are kept teach others, are gone on with, and reviews are read as SST writes."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import reproduce.review_sentences
from reproduce import data, farming, running, runs, teaching
from reproduce.ledger import Ledger
from reproduce.plan import hindrance, planned
from reproduce.runs import Run, Variant
from routepool.errors import InputError
from routepool.training import StepReport, Task

SENTENCES = ["1\ta warm and lovely film", "0\ta cold and dull film", "1\tlovely", "0\tdull ."]
FINE_SENTENCES = [*SENTENCES, "2\ta film", "3\ta fine film", "4\ta very lovely film"]
PHRASES = ["1\twarm", "0\tdull", "0\tcold and dull"]
FINE_PHRASES = ["3\twarm", "0\tdull", "2\ta film", "1\tdull . dev 0"]
REVIEWS = ["9\t1\tLovely. It's a warm day, and we don't mind.", "2\t0\tDull stuff. A very cold day it was!"]
TINY: dict[str, Any] = {"embedding_size": 6, "hidden_size": 4, "head_size": 4, "epochs": 1, "aggregator": "max"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for inner in ("sst1", "sst2", "sst_phrases", "imdb_reviews"):
        (tmp_path / inner).mkdir()
    for part in ("train", "dev", "test"):
        for inner, sentences in (("sst1", FINE_SENTENCES), ("sst2", SENTENCES)):
            rows = [f"{row} {part} {number}" for number in range(4) for row in sentences]
            (tmp_path / inner / f"{part}.tsv").write_text("\n".join(rows) + "\n")
    reviews = [
        f"{row} Again {number} times {part}." for number in range(8) for row in REVIEWS for part in ("on", "off")
    ]
    files = {
        "sst_phrases/binary.phrases.train": PHRASES,
        "sst_phrases/fine.phrases.train": FINE_PHRASES,
        "imdb_reviews/train": reviews,
        "imdb_reviews/test": REVIEWS,
    }
    for name, lines in files.items():
        (tmp_path / f"{name}.tsv.gz").write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    monkeypatch.setenv("ROUTEPOOL_DATA", str(tmp_path))
    monkeypatch.setenv("ROUTEPOOL_CACHE", str(tmp_path / "cache"))
    for module in (runs, running, teaching):
        monkeypatch.setattr(module, "MODELS", tmp_path / "models")
    monkeypatch.setattr(runs, "ANSWERS", tmp_path / "answers")
    return tmp_path


def execute(folder: Path, run: Run) -> dict[str, Any]:
    running.execute(run, folder / "results", Ledger(folder / "ledger.csv"))
    found: dict[str, Any] = json.loads((folder / "results" / f"{run.name}.json").read_text())
    return found


def test_reviews_are_written_as_sst_writes() -> None:
    sentences = reproduce.review_sentences.sentences_of_reviews(100)
    assert sentences["it 's a warm day , and we do n't mind ."] == 9
    assert sentences["a very cold day it was !"] == sentences["dull stuff ."] == 2
    assert "lovely ." not in sentences  # too short
    assert len(reproduce.review_sentences.sentences_of_reviews(2)) == 2


def test_a_warm_up_has_the_reviews_under_the_classes_of_their_stars() -> None:
    parts = data.load("warm-up-sst2-phrases")
    labels = {example.text: example.labels for example in parts.train.examples}
    assert labels["it 's a warm day , and we do n't mind ."] == ("1",)
    assert labels["dull stuff ."] == ("0",)
    assert labels["cold and dull"] == ("0",)
    assert len(parts.test.examples) == 16


def test_a_student_learns_what_a_kept_model_answers_and_another_goes_on_with_it(folder: Path) -> None:
    teacher = Run("sst2-phrases", Variant("teacher", "default", TINY, "", kept=True), 0, scored=False)
    student = Run("sst2-phrases", Variant("student", "default", TINY, "", teachers=(teacher.name,)), 1)
    later = Run("sst2-phrases", Variant("later", "default", TINY, "", start=teacher.name), 0, scored=False)
    assert "not in runs/reproduce" in hindrance(student)
    assert "not in runs/reproduce" in hindrance(later)
    first = execute(folder, teacher)
    assert (first["dataset"], first["trained_on"], first["test"]) == ("sst2", "sst2-phrases", None)
    assert hindrance(student) == hindrance(later) == ""
    second = execute(folder, student)
    assert second["teachers"] == [teacher.name]
    assert len(second["test_predictions"]) == 16
    assert second["curve"][0]["loss"] != pytest.approx(first["curve"][0]["loss"])
    third = execute(folder, later)
    assert third["start"] == teacher.name
    assert third["parameters"] == first["parameters"]


def test_grades_are_learned_from_the_fine_labels_and_scored_on_two(folder: Path) -> None:
    run = Run("sst2-phrases-graded", Variant("graded", "default", TINY, ""), 0)
    parts = data.load(run.data)
    texts = [example.text for example in parts.train.examples]
    assert "dull . dev 0" not in texts  # it is one of dev
    task = teaching.taught(run, Task(parts.train.examples, parts.dev.examples, parts.train.labels), parts)
    assert task.labels == ("0", "1")
    assert not any(example.labels for example in task.train)
    assert task.teacher_logits is not None
    graded = dict(zip(texts, task.teacher_logits.tolist(), strict=True))
    assert graded["warm"] == [-1.25, 1.25]
    assert graded["dull"] == [2.5, -2.5]
    assert graded["a film"] == [0.0, 0.0]
    found = execute(folder, run)
    assert (found["dataset"], found["trained_on"]) == ("sst2", run.data)
    assert set(found["test_predictions"]) <= {"0", "1"}


def test_a_teacher_of_grades_teaches_two_sides(folder: Path) -> None:
    teacher = Run("sst1-phrases", Variant("teacher", "default", TINY, "", kept=True), 0, scored=False)
    student = Run("sst2-phrases-graded", Variant("student", "default", TINY, "", teachers=(teacher.name,)), 1)
    execute(folder, teacher)
    parts = data.load(student.data)
    task = teaching.taught(student, Task(parts.train.examples, parts.dev.examples, parts.train.labels), parts)
    assert task.teacher_logits is not None
    negative, positive = task.teacher_logits.T
    assert len(positive) == len(task.train) > len(parts.train.examples)  # and sentences of reviews
    assert positive == pytest.approx(-negative)
    assert positive.std() > 0
    assert set(execute(folder, student)["test_predictions"]) <= {"0", "1"}


def test_a_student_needs_no_teacher_at_hand_once_it_has_answered(folder: Path) -> None:
    variant = Variant("teacher", "default", TINY, "", kept=True)
    both = [Run("sst1-phrases", variant, seed, scored=False) for seed in range(2)]
    names = tuple(run.name for run in both)
    student = Run("sst1-phrases", Variant("student", "default", TINY, "", teachers=names), 1)
    for run in both:
        execute(folder, run)
    before = execute(folder, student)
    shutil.rmtree(folder / "models")
    shutil.rmtree(folder / "cache")
    assert hindrance(student) == ""
    assert execute(folder, student)["curve"][0]["loss"] == before["curve"][0]["loss"]
    lines = (folder / "sst1" / "train.tsv").read_text()
    (folder / "sst1" / "train.tsv").write_text(lines + "3\tanother film\n")
    with pytest.raises(InputError, match=r"sst1-phrases-by-2\.npz: holds answers of other teachers or to other texts"):
        execute(folder, student)


def test_a_teacher_is_trained_again_where_its_model_is_gone_and_a_student_waits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teacher = Run("sst2-phrases", Variant("teacher", "default", TINY, "", kept=True), 0, scored=False)
    student = Run("sst2-phrases", Variant("student", "default", TINY, "", teachers=(teacher.name,)), 1)
    monkeypatch.setattr(farming, "planned", lambda: [teacher, student])
    farm = farming.Farm(folder / "results", folder / "ledger.csv")
    execute(folder, teacher)
    assert farm.missing([teacher, student]) == [student]
    shutil.rmtree(folder / "models")
    assert farm.missing([teacher, student]) == [teacher, student]
    execute(folder, teacher)
    execute(folder, student)
    shutil.rmtree(folder / "models")
    assert farm.missing([teacher, student]) == []


def test_every_trial_of_students_and_warm_models_names_runs_of_the_plan() -> None:
    names = {run.name for run in planned()}
    named = [name for run in planned() for name in (*run.variant.teachers, run.variant.start) if name]
    assert named
    assert set(named) <= names


def test_a_long_epoch_tells_how_far_it_is_and_a_short_one_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    step = StepReport(step=7, epoch=1, index=2, batches=9, examples=16, loss=0.5, rate=1e-3)
    for quiet_seconds in (0.0, 300.0):
        running.Curve("sst2/routing/0", quiet_seconds=quiet_seconds).on_step(step)
    assert capsys.readouterr().out == "sst2/routing/0: epoch 2, batch 3 of 9\n"
