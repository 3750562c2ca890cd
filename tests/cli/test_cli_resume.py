"""A stopped run goes on as if it had never been stopped, with the files it began with, or not at all."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli_runs import TINY, call, refused, sentences, succeed, train_tiny, write_csv

from routepool.cli.progress import TrainingScreen
from routepool.training import StepReport

KILL = Path(__file__).parents[1] / "programmes" / "kill.py"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("whole"))


def stopped(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: object, step: int = 9) -> Path:
    """The run of `train_tiny`, asked to end in the middle of its second epoch."""
    on_step = TrainingScreen.on_step

    def ask_to_stop(self: TrainingScreen, report: StepReport) -> None:
        on_step(self, report)
        if report.step == step:
            signal.raise_signal(signal.SIGTERM)

    data = write_csv(folder / "reviews.csv", sentences(120))
    with monkeypatch.context() as patch:
        patch.setattr(TrainingScreen, "on_step", ask_to_stop)
        called = call("train", data, "--out", folder / "run", *TINY, *options)
    assert called.code == 143
    assert f"go on with: routepool train --resume {folder / 'run'}" in called.err
    return folder / "run"


def test_a_run_asked_to_end_goes_on_and_ends_with_the_same_weights(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(tmp_path, monkeypatch)
    assert "use --resume" in refused("predict", run, tmp_path / "reviews.csv")
    assert "routepool train --resume" in refused("train", tmp_path / "reviews.csv", "--out", run, *TINY)
    assert "resumed after step 10" in succeed("train", "--resume", run).out
    for name in ("model.safetensors", "tokenizer.json"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()
    assert "finished already" in succeed("train", "--resume", run).out


def test_an_epoch_after_a_resume_is_the_best_so_far_only_if_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole").mkdir()
    data = write_csv(tmp_path / "whole" / "reviews.csv", sentences(120))
    told = epochs(succeed("train", data, "--out", tmp_path / "whole" / "run", *TINY).out)
    assert [told[3], told[4]] == [False, False]  # else this test could not fail
    run = stopped(tmp_path, monkeypatch, step=16)
    resumed = epochs(succeed("train", "--resume", run).out)
    assert resumed == {epoch: told[epoch] for epoch in (3, 4)}


def test_where_the_last_epoch_is_kept_none_is_called_the_best(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(60))
    told = epochs(succeed("train", data, "--out", tmp_path / "run", *TINY, "--set", "kept_epoch=last").out)
    assert list(told.values()) == [False] * 4


def epochs(out: str) -> dict[int, bool]:
    """Which epochs were told of, and whether as the best so far."""
    lines = [line for line in out.splitlines() if line.startswith("epoch ")]
    return {int(line.split()[1].rstrip(":")): "the best so far" in line for line in lines}


def test_a_run_is_resumed_from_any_folder(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = stopped(Path(), monkeypatch).absolute()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    succeed("train", "--resume", run)
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_changed_data_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stopped(tmp_path, monkeypatch)
    data = tmp_path / "reviews.csv"
    content = data.read_bytes()
    data.write_bytes(content + b"one more,good\n")
    error = refused("train", "--resume", run)
    assert f"{data}: the training file has changed since training began (SHA-256 " in error
    assert ", now " in error
    data.unlink()
    assert f"{data}: cannot be read" in refused("train", "--resume", run)
    data.write_bytes(content)
    succeed("train", "--resume", run)


def test_changed_vectors_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("great 1 2\nawful 3 4\n", encoding="utf-8")
    run = stopped(tmp_path, monkeypatch, "--vectors", vectors)
    vectors.write_text("great 1 2\nawful 3 5\n", encoding="utf-8")
    assert "the vectors file has changed" in refused("train", "--resume", run)


def test_a_run_begun_from_another_model_goes_on_too(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ["--init-from", whole, "--set", "epochs=3", "--set", "batch_size=16", "--threads", "1"]
    monkeypatch.setattr("test_cli_resume.TINY", settings)
    run = stopped(tmp_path, monkeypatch)
    succeed("train", "--resume", run)
    succeed("train", tmp_path / "reviews.csv", "--out", tmp_path / "whole", *settings)
    assert (run / "model.safetensors").read_bytes() == (tmp_path / "whole" / "model.safetensors").read_bytes()


def test_a_new_run_in_an_old_folder_does_not_take_up_the_old_checkpoints(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(tmp_path, monkeypatch, "--seed", "5")
    succeed("train", tmp_path / "reviews.csv", "--out", run, "--force", *TINY)
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format_version": 1}', b'{"format_version": 9}'])
def test_a_damaged_record_is_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(content)
    assert "run.json" in refused("train", "--resume", tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_run_ends_with_the_same_weights() -> None:
    """The short form of `make kill-test`."""
    arguments = [sys.executable, str(KILL), "--kills", "3", "--saving", "1"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bit-identical" in done.stdout
