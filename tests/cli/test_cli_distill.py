"""`routepool distill`: a student of trained models, trained, resumed and refused like any other run."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import tiny_encoder
from support.cli_runs import TINY, call, refused, sentences, succeed, train_tiny, write_csv

from routepool.arrays import Floats32
from routepool.cli.progress import TrainingScreen
from routepool.training import StepReport, Teacher

GUIDE = Path(__file__).parents[2] / "docs" / "distill.md"


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("teacher"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROUTEPOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "few.csv", sentences(40))


@pytest.fixture
def unlabelled(tmp_path: Path) -> Path:
    file = tmp_path / "more.txt"
    file.write_text("".join(f"{text}\n" for text, _ in sentences(200)[40:]) + "\n\n", encoding="utf-8")
    return file


def test_a_student_is_a_model_like_any_other(teacher: Path, data: Path, unlabelled: Path, tmp_path: Path) -> None:
    run = tmp_path / "student"
    told = succeed("distill", teacher, data, "--unlabelled", unlabelled, "--out", run, *TINY).out
    known = {text for text, _ in sentences(40)}
    new = len({text for text, _ in sentences(200)[40:]} - known)
    assert f"{unlabelled}: {new} new texts without labels" in told
    scores = json.loads(succeed("evaluate", run, data, "--json").out)
    assert scores["accuracy"] > 0.9
    assert (
        "it learned what run answered to the training texts and to those of more.txt" in (run / "README.md").read_text()
    )
    assert json.loads((run / "config.json").read_text())["provenance"]["teachers"] == ["run"]


def test_texts_may_come_in_the_columns_of_the_data(teacher: Path, data: Path, tmp_path: Path) -> None:
    more = write_csv(tmp_path / "more.csv", [(text, "") for text, _ in sentences(60)[40:]])
    told = succeed("distill", teacher, data, "--unlabelled", more, "--out", tmp_path / "run", *TINY).out
    assert "new texts without labels" in told


def test_dev_and_test_texts_are_kept_out(teacher: Path, data: Path, tmp_path: Path) -> None:
    dev, test = (
        write_csv(tmp_path / f"{name}.csv", sentences(end)[end - 20 :]) for name, end in (("a", 60), ("b", 80))
    )
    more = tmp_path / "more.txt"
    fresh = "a film of great warm people"
    more.write_text("\n".join(text for text, _ in sentences(80)) + f"\n{fresh}\n{fresh}\n", encoding="utf-8")
    told = succeed(
        "distill", teacher, data, "--dev", dev, "--test", test, "--unlabelled", more, "--out", tmp_path / "run", *TINY
    ).out
    assert f"{more}: 1 new text without labels" in told


def test_several_teachers_and_no_other_texts(teacher: Path, data: Path, tmp_path: Path) -> None:
    other = train_tiny(tmp_path, "--seed", "3")
    run = tmp_path / "student"
    succeed("distill", f"{teacher},{other}", data, "--out", run, *TINY, "--set", "label_weight=0.5")
    record = json.loads((run / "run.json").read_text())
    assert record["lesson"] == {"teachers": [str(teacher), str(other)], "unlabelled": None}


def test_the_next_student_finds_the_answers(
    teacher: Path, data: Path, unlabelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distil = ("distill", teacher, data, "--unlabelled", unlabelled, *TINY)
    succeed(*distil, "--out", tmp_path / "first")

    def refuse(self: Teacher, texts: object) -> Floats32:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(Teacher, "compute", refuse)
        succeed(*distil, "--out", tmp_path / "second", "--seed", "1")
        unlabelled.write_text("a warm film\n", encoding="utf-8")
        with pytest.raises(AssertionError):
            call(*distil, "--out", tmp_path / "third")


def test_a_stopped_student_goes_on_with_the_same_weights(
    teacher: Path, data: Path, unlabelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distil = ("distill", teacher, data, "--unlabelled", unlabelled, *TINY)
    succeed(*distil, "--out", tmp_path / "whole")
    on_step = TrainingScreen.on_step

    def ask_to_stop(self: TrainingScreen, report: StepReport) -> None:
        on_step(self, report)
        if report.step == 5:
            signal.raise_signal(signal.SIGTERM)

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(TrainingScreen, "on_step", ask_to_stop)
        assert call(*distil, "--out", run).code == 143
    content = unlabelled.read_text()
    unlabelled.write_text(content + "one more\n")
    assert "the unlabelled file has changed since training began" in refused("train", "--resume", run)
    unlabelled.write_text(content)
    succeed("train", "--resume", run)
    assert (run / "model.safetensors").read_bytes() == (tmp_path / "whole" / "model.safetensors").read_bytes()


def test_other_labels_are_one_line_and_leave_nothing(teacher: Path, tmp_path: Path) -> None:
    data = write_csv(
        tmp_path / "other.csv", [(text, {"good": "1", "bad": "0"}[label]) for text, label in sentences(40)]
    )
    error = refused("distill", teacher, data, "--out", tmp_path / "run", *TINY)
    assert error == (
        f"{teacher}: the teacher gives one of the labels bad, good; the data must have the same, "
        "got one of the labels 0, 1; take another teacher or other data"
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("teachers", "more", "wanted"),
    [
        ("none", None, "none: wanted the folder of a model, got nothing"),
        ("{teacher},", None, "TEACHER wants model folders, with a comma between two"),
        ("{teacher}", "no.txt", "no.txt: no such file"),
        ("{teacher}", "-", "standard input cannot be trained on"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    teachers: str,
    more: str | None,
    wanted: str,
    teacher: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--unlabelled", more] if more else []
    assert wanted in refused("distill", teachers.format(teacher=teacher), data, *options, *TINY)


def test_a_pretrained_encoder_teaches_too(data: Path, unlabelled: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "encoder").mkdir()
    encoder = tiny_encoder.write_encoder(tmp_path / "encoder")
    quick = ("--threads", "1", "--set", "epochs=1", "--set", "capsules=2", "--set", "head_size=8")
    succeed("train", data, "--encoder", f"hf:{encoder}", "--out", tmp_path / "large", *quick)
    run = tmp_path / "small"
    succeed("distill", tmp_path / "large", data, "--unlabelled", unlabelled, "--out", run, *TINY)
    assert json.loads((run / "config.json").read_text())["model_config"]["encoder"] == "bilstm"


@pytest.mark.skipif(not GUIDE.exists(), reason="a package of the sources has no docs")
def test_the_guide_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.splitlines()[-1:] == ["['good', 'bad']"], done.stderr
