"""`routepool.train` and `routepool.resume`: what the command line trains, from Python."""

import inspect
import json
import re
import signal
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from support.cli_runs import TINY, refused, sentences, succeed, write_csv

import routepool
from routepool.errors import InputError
from routepool.runs.reporter import Reporter
from routepool.runs.request import Request
from routepool.training import Hook, StepReport

SETTINGS: Mapping[str, Any] = {
    "hidden_size": 8, "embedding_size": 8, "head_size": 8, "capsules": 2, "capsule_size": 8, "epochs": 4,
    "learning_rate": 0.02, "dropout": 0.0, "word_dropout": 0.0, "batch_size": 16,
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "reviews.csv", sentences(120))


def train_tiny(data: Path, out: Path, **words: Any) -> routepool.Predictor:
    return routepool.train(data, out=out, vectors="none", threads=1, settings=SETTINGS, **words)


def record(run: Path) -> dict[str, Any]:
    """What a run was asked to do, but for what is its own."""
    values: dict[str, Any] = json.loads((run / "run.json").read_text("utf-8"))
    return {name: value for name, value in values.items() if name not in ("id", "created")}


def card(run: Path) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d\S*", "a time", (run / "README.md").read_text("utf-8"))


def identical(one: Path, other: Path) -> None:
    for name in ("model.safetensors", "tokenizer.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    assert record(one) == record(other)
    assert card(one) == card(other)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ({"seed": 3, "test": "test.csv"}, ["--seed", "3", "--test", "test.csv"]),
        ({"multi_label": True, "aggregator": "max"}, ["--multi-label", "--aggregator", "max"]),
        ({"preset": "paper", "dev": Path("test.csv")}, ["--preset", "paper", "--dev", "test.csv"]),
        ({"text_column": "text", "on_error": "skip"}, ["--text-column", "text", "--on-error", "skip"]),
    ],
)
def test_it_trains_what_the_command_trains(
    words: dict[str, Any], options: list[str], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "test.csv", sentences(150)[120:])
    settings = dict(SETTINGS)
    if words.get("aggregator") == "max":  # it has no capsules
        settings = {name: value for name, value in settings.items() if "capsule" not in name}
        chosen = [f"{name}={value}" for name, value in settings.items()]
        typed = ["--vectors", "none", "--threads", "1", *(part for one in chosen for part in ("--set", one))]
    else:
        typed = TINY
    model = routepool.train(data, out=Path("python"), vectors="none", threads=1, settings=settings, **words)
    succeed("train", data, "--out", "command", *typed, *options)
    identical(tmp_path / "python", tmp_path / "command")
    texts = [text for text, _ in sentences(10)]
    assert model.predict(texts) == routepool.load(tmp_path / "command").predict(texts)


def test_its_words_are_the_options_of_the_command() -> None:
    options = set(re.findall(r"--([a-z-]+)", succeed("train", "--help").out.partition("Options")[2]))
    words = {name.replace("_", "-") for name in inspect.signature(routepool.train).parameters}
    assert options - {"help", "plugin", "resume", "set"} == words - {"data", "settings", "teachers", "unlabelled"}
    with pytest.raises(TypeError, match="epoch"):
        routepool.train("reviews.csv", epoch=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"data": ["a text"]}, "data must be a file or the name of a known set, got ['a text']"),
        ({"data": "none.csv"}, "none.csv: no such file"),
        ({"settings": {"epoch": 3}}, "did you mean 'epochs'?"),
        ({"settings": {"epochs": "3"}}, "epochs must be a whole number, got '3'"),
        ({"settings": ["epochs=3"]}, "settings must be a table such as {'epochs': 10}, got ['epochs=3']"),
        ({"dev": 3}, "wanted the name of a file or a folder, got 3"),
        ({"unlabelled": "more.txt"}, "texts without labels are for students; name the teachers"),
        ({"threads": "2"}, "threads must be a whole number of at least 1, got '2'"),
        ({"preset": "papper"}, "unknown preset 'papper', did you mean 'paper'?"),
        ({"vectors": ""}, "--vectors wants a file, a name, or none, got an empty string"),
        ({"device": "abacus"}, "abacus"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(words: dict[str, Any], message: str, data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        routepool.train(**{"data": data, "out": tmp_path / "run", **words})
    assert message in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_student_is_trained_as_by_the_command(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTEPOOL_CACHE", str(tmp_path / "cache"))
    train_tiny(data, tmp_path / "large", seed=5)
    more = tmp_path / "more.txt"
    more.write_text("".join(f"{text}\n" for text, _ in sentences(200)[120:]), encoding="utf-8")
    train_tiny(data, tmp_path / "python", teachers=[tmp_path / "large"], unlabelled=more)
    succeed("distill", tmp_path / "large", data, "--unlabelled", more, "--out", tmp_path / "command", *TINY)
    identical(tmp_path / "python", tmp_path / "command")
    assert record(tmp_path / "python")["lesson"] == {"teachers": [str(tmp_path / "large")], "unlabelled": str(more)}


def test_a_model_that_is_there_stays_unless_it_may_be_replaced(data: Path, tmp_path: Path) -> None:
    train_tiny(data, tmp_path / "run")
    with pytest.raises(InputError, match="force"):
        train_tiny(data, tmp_path / "run", seed=1)
    train_tiny(data, tmp_path / "run", seed=1, force=True)
    assert record(tmp_path / "run")["preset"]["training"]["seed"] == 1


class StopAtStep(Hook):
    def on_step(self, report: StepReport) -> None:
        if report.step == 9:
            signal.raise_signal(signal.SIGINT)


def test_control_c_keeps_a_checkpoint_that_resume_takes_up(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    with monkeypatch.context() as patch:
        patch.setattr(Reporter, "epochs", lambda self, number, score: nullcontext(StopAtStep()))
        with pytest.raises(KeyboardInterrupt, match="training was stopped after 10 steps"):
            train_tiny(data, run)
    assert not (run / "model.safetensors").exists()
    with pytest.raises(InputError, match="it holds a run that is not finished"):
        train_tiny(data, run)
    model = routepool.resume(run)
    train_tiny(data, whole)
    identical(run, whole)
    assert routepool.resume(str(run)).predict(["a warm film"]) == model.predict(["a warm film"])  # finished already


def test_a_run_of_the_command_is_resumed_and_the_other_way_round(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_tiny(data, run)
    assert "finished already" in succeed("train", "--resume", run).out
    assert "no training run to resume" in refused("train", "--resume", tmp_path)
    with pytest.raises(InputError, match="no training run to resume"):
        routepool.resume(tmp_path)


def test_records_of_before_are_read(data: Path, tmp_path: Path) -> None:
    """As routepool 0.1 wrote them: the lesson of a student by that name, loggers or none."""
    run = tmp_path / "run"
    train_tiny(data, run)
    values = json.loads((run / "run.json").read_text("utf-8"))
    assert list(values) == [
        *("format_version", "id", "created", "preset_name", "preset", "data", "vectors", "init_from", "threads"),
        *("device", "loggers", "force", "files", "versions", "lesson"),
    ]
    del values["lesson"], values["loggers"]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "run.json").write_text(json.dumps(values), encoding="utf-8")
    routepool.resume(tmp_path / "old")
    assert (tmp_path / "old" / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def test_a_program_keeps_its_random_numbers_and_its_threads(data: Path, tmp_path: Path) -> None:
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    train_tiny(data, tmp_path / "run")
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)


def test_every_word_says_what_it_is_for() -> None:
    declared = {item.name: item.metadata for item in Request.__dataclass_fields__.values()}
    assert [name for name, how in declared.items() if "help" not in how] == ["data", "teachers", "unlabelled"]
