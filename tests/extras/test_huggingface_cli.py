"""What `routepool train DATA --encoder hf:FOLDER` promises."""

import json
from pathlib import Path

import pytest
from support import tiny_encoder
from support.cli_runs import refused, sentences, succeed

QUICK = ("--threads", "1", "--set", "epochs=1", "--set", "batch_size=16", "--set", "head_size=8", "--set", "capsules=2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder.write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROUTEPOOL_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "reviews.csv"
    file.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in sentences(80)))
    return file


def settings_of(run: Path) -> dict[str, dict[str, object]]:
    content: dict[str, dict[str, object]] = json.loads((run / "config.json").read_text())
    return content


@pytest.mark.parametrize("frozen", [False, True])
def test_train_evaluate_and_predict(folder: Path, data: Path, tmp_path: Path, frozen: bool) -> None:
    run = tmp_path / "run"
    more = ("--set", "frozen=true") if frozen else ()
    told = succeed("train", data, "--encoder", f"hf:{folder}", "--out", run, *QUICK, *more)
    assert "pre-trained encoder" in told.out
    assert "word vectors" not in told.out
    assert ("it does not learn" in told.out) == frozen
    written = settings_of(run)
    assert written["model_config"]["encoder"] == "hf"
    assert written["training"]["schedule"] == "linear"
    assert str(folder) not in (run / "config.json").read_text()
    assert "accuracy" in succeed("evaluate", run, data).out
    assert len(succeed("predict", run, data).out.splitlines()) == 81


def test_settings_that_are_given_win_over_those_of_a_pretrained_encoder(
    folder: Path, data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    succeed("train", data, "--encoder", f"hf:{folder}", "--out", run, *QUICK, "--set", "encoder_learning_rate=0.002")
    assert settings_of(run)["training"]["encoder_learning_rate"] == 0.002
    assert settings_of(run)["training"]["epochs"] == 1


def test_a_folder_that_is_no_encoder_is_told_before_training(data: Path, tmp_path: Path) -> None:
    told = refused("train", data, "--encoder", f"hf:{tmp_path}", "--out", tmp_path / "run")
    assert "wanted config.json" in told
    assert not (tmp_path / "run").exists()


def test_word_vectors_beside_it_are_refused(folder: Path, data: Path, tmp_path: Path) -> None:
    told = refused("train", data, "--encoder", f"hf:{folder}", "--vectors", "x.txt", "--out", tmp_path / "run")
    assert "drop --vectors" in told
