"""`routepool tune`: from a file and a space to a preset that trains, whatever stops it on the way."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.cli_runs import call, command, refused, sentences, succeed, write_csv, write_space

from routepool.cli import screen
from routepool.persistence import load_model
from routepool.settings import Changes
from routepool.training import DivergedError, EpochReport, fit
from routepool.tuning.search import TrialHook, ended_trials
from routepool.tuning.study import Study
from routepool.tuning.trials import FAILED, FINISHED, PRUNED, SEARCHES, Trial

DATA_OPTIONS = ["--vectors", "none", "--threads", "1"]
SMALL = [
    *DATA_OPTIONS, "--set", "hidden_size=8", "--set", "embedding_size=8", "--set", "head_size=8",
    "--set", "capsule_size=8", "--set", "epochs=3", "--set", "word_dropout=0", "--set", "batch_size=16",
]  # fmt: skip
SPACE = "learning_rate = [0.02, 1e-6]\ncapsules = [2, 3]\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "reviews.csv", sentences(60))


def trials_of(study: Path) -> list[Trial]:
    plan = Study.read(study).plan
    return ended_trials(SEARCHES[plan.sampler](plan, study / "trials.db"))


def scores(study: Path) -> dict[str, tuple[str, float | None, int]]:
    """What came of each setting."""
    return {json.dumps(trial.settings): (trial.state, trial.score, trial.epochs) for trial in trials_of(study)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that was left alone."""
    folder = tmp_path_factory.mktemp("whole")
    data = write_csv(folder / "reviews.csv", sentences(60))
    succeed("tune", data, "--space", write_space(folder, SPACE), "--out", folder / "study", *SMALL)
    return folder / "study"


def test_a_grid_is_tried_whole_and_its_best_setting_trains_as_it_did(whole: Path) -> None:
    trials = trials_of(whole)
    assert sorted((trial.settings["learning_rate"], trial.settings["capsules"]) for trial in trials) == [
        (1e-6, 2), (1e-6, 3), (0.02, 2), (0.02, 3),
    ]  # fmt: skip
    assert {trial.state for trial in trials} == {FINISHED}
    run, data = whole.parent / "run", whole.parent / "reviews.csv"
    best = max(trials, key=lambda trial: (trial.score, -trial.number))
    assert best.settings["learning_rate"] == 0.02
    succeed("train", data, "--preset", whole / "best.toml", "--out", run, *DATA_OPTIONS)
    saved = load_model(run)
    assert saved.training is not None
    assert saved.training.learning_rate == 0.02
    assert saved.model_config.aggregator_options["capsules"] == best.settings["capsules"]
    assert (saved.model_config.hidden_size, saved.training.epochs) == (8, 3)
    epochs = [json.loads(line) for line in (run / "logs" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert (len(epochs), epochs[-1]["best_score"]) == (best.epochs, best.score)


@pytest.mark.parametrize("name", ["history.png", "settings.png"])
def test_pictures_are_in_the_folder(name: str, whole: Path) -> None:
    assert (whole / name).read_bytes().startswith(b"\x89PNG")


def test_the_table_is_best_first_and_the_best_is_marked(whole: Path) -> None:
    told = succeed("tune", "--resume", whole).out.splitlines()
    assert "search: " + str(whole) + ", 4 trials ended before" in told
    assert "the search has ended: everything has been tried" in told
    head = next(place for place, line in enumerate(told) if line.split()[:2] == ["trial", "learning_rate"])
    rows = [line.split() for line in told[head + 1 : head + 5]]
    assert rows[0][0] == "*"
    assert all(row[0] != "*" for row in rows[1:])
    shown = [float(row[-4]) for row in rows]
    assert shown == sorted(shown, reverse=True)
    assert f"  routepool train {whole.parent / 'reviews.csv'} --preset {whole / 'best.toml'}" in told
    assert not any(line.startswith("trial ") for line in told)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_search_goes_on_without_repeating_or_losing_a_trial(whole: Path, tmp_path: Path, data: Path) -> None:
    study = tmp_path / "study"
    arguments = ["tune", data, "--space", write_space(tmp_path, SPACE), "--out", study, *SMALL]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(b"trial 1:"):
                break
        time.sleep(0.05)  # into the third
        process.kill()
    assert process.returncode == -signal.SIGKILL
    kept = trials_of(study)
    assert [trial.number for trial in kept[:2]] == [0, 1]
    assert len(kept) < 4
    told = succeed(*arguments).out  # the same command again, as good as --resume
    assert re.findall(r"^trial (\d+):", told, re.MULTILINE) == [str(number) for number in range(len(kept), 4)]
    assert trials_of(study)[: len(kept)] == kept
    assert scores(study) == scores(whole)
    assert (study / "best.toml").read_bytes() == (whole / "best.toml").read_bytes()


def test_control_c_ends_quietly_and_tells_how_to_go_on(
    whole: Path, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_epoch, study = TrialHook.on_epoch, tmp_path / "study"

    def ask_to_stop(self: TrialHook, report: EpochReport) -> None:
        on_epoch(self, report)
        if self.attempt.number == 1 and report.epoch == 1:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(TrialHook, "on_epoch", ask_to_stop)
        stopped = call("tune", data, "--space", write_space(tmp_path, SPACE), "--out", study, *SMALL)
    assert stopped.code == 130
    assert stopped.err.splitlines()[-1].endswith(f"Go on with: routepool tune --resume {study}")
    assert len(trials_of(study)) == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    succeed("tune", "--resume", study)
    assert scores(study) == scores(whole)


def test_a_search_can_go_further_than_was_asked_at_first(tmp_path: Path, data: Path) -> None:
    study = tmp_path / "study"
    space = write_space(tmp_path, 'learning_rate = { low = 1e-4, high = 0.1, log = true }\nencoder = ["none", "cnn"]\n')
    arguments = ["tune", data, "--space", space, "--sampler", "tpe", "--out", study, *SMALL]
    assert "give --trials N or --minutes M" in refused(*arguments)
    assert not study.exists()
    succeed(*arguments, "--trials", "2")
    first = trials_of(study)
    succeed("tune", "--resume", study, "--trials", "3")
    assert trials_of(study)[:2] == first
    assert len(trials_of(study)) == 3
    assert "as many trials as were asked for" in succeed("tune", "--resume", study).out
    assert "no trial" in refused(*arguments[:-1], "batch_size=17", "--out", tmp_path / "other", "--minutes", "0")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--seed", "1"], "settings"),
        (["--sampler", "random", "--trials", "4"], "sampler"),
        (["--prune", "median"], "pruner"),
        (["--dev", "dev.csv"], "data"),
    ],
)
def test_another_search_in_the_same_folder_is_refused(options: list[str], what: str, whole: Path) -> None:
    folder = whole.parent
    write_csv(folder / "dev.csv", sentences(20))
    options = [str(folder / one) if one == "dev.csv" else one for one in options]
    error = refused("tune", folder / "reviews.csv", "--space", folder / "space.toml", "--out", whole, *SMALL, *options)
    assert f"it holds a search with another {what}; go on with that one, routepool tune --resume {whole}" in error


def test_changed_data_are_refused(tmp_path: Path, data: Path) -> None:
    study = tmp_path / "study"
    arguments = ["tune", data, "--space", write_space(tmp_path, SPACE), "--out", study, *SMALL, "--trials", "1"]
    succeed(*arguments)
    data.write_bytes(data.read_bytes() + b"one more,good\n")
    assert "the training file has changed" in refused("tune", "--resume", study)
    assert "another content of files" in refused(*arguments)


def test_two_processes_do_not_share_a_search(whole: Path) -> None:
    imports = "from pathlib import Path\nfrom routepool.files.locks import sole_process\n"
    hold = f"{imports}with sole_process(Path({str(whole)!r}), 'searching'):\n"
    holder = [sys.executable, "-c", hold + "    print(flush=True); input()"]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert "another process is searching here" in refused("tune", "--resume", whole)
        process.communicate(b"\n")
    succeed("tune", "--resume", whole)


def test_pruning_gives_up_what_is_hopeless(tmp_path: Path, data: Path) -> None:
    space = write_space(tmp_path, "learning_rate = [0.02, 1e-7]\nseed = [0, 1, 2, 3]\n")
    study = tmp_path / "study"
    longer = ["--set", "epochs=6", "--set", "dropout=0.2"]  # so that all that can learn has learned when halving looks
    told = succeed("tune", data, "--space", space, "--prune", "halving", "--out", study, *SMALL, *longer).out
    pruned = [trial for trial in trials_of(study) if trial.state == PRUNED]
    assert pruned
    assert all(trial.epochs < 6 for trial in pruned)
    assert any(trial.settings["learning_rate"] == 1e-7 for trial in pruned)
    assert ": pruned, dev accuracy " in told
    assert "learning_rate = 0.02 " in (study / "best.toml").read_text("utf-8")


def test_a_trial_that_fails_is_told_and_the_search_goes_on(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(task: Any, preset: Any, **options: Any) -> Any:
        if preset.training.learning_rate == 0.5:
            raise DivergedError("the loss is nan in epoch 1")
        return fit(task, preset, **options)

    monkeypatch.setattr("routepool.tuning.search.fit", diverge)
    # Word vectors under l2 need sparse=false, which training says.
    space = write_space(tmp_path, "learning_rate = [0.02, 0.5]\nl2_on_embeddings = [true, false]\n")
    told = succeed("tune", data, "--space", space, "--out", tmp_path / "study", *SMALL).out
    trials = {
        (one.settings["learning_rate"], one.settings["l2_on_embeddings"]): one for one in trials_of(tmp_path / "study")
    }
    assert [trials[0.02, on].state for on in (True, False)] == [FAILED, FINISHED]
    assert trials[0.5, False].why == "the loss is nan in epoch 1"
    assert "failed, the loss is nan in epoch 1" in told
    assert "sparse" in trials[0.02, True].why


def test_a_search_in_which_all_fails_is_an_error(tmp_path: Path, data: Path) -> None:
    space = write_space(tmp_path, "l2_on_embeddings = [true]\n")
    error = refused("tune", data, "--space", space, "--out", tmp_path / "study", *SMALL)
    assert "no trial was finished" in error
    assert not (tmp_path / "study" / "best.toml").exists()


def test_without_a_space_the_papers_grid_is_searched_from_its_preset(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    succeed("tune", data, "--trials", "1", *SMALL)
    (study,) = (tmp_path / "runs").iterdir()
    assert study.name.startswith("tune-reviews-")
    record = Study.read(study)
    assert (record.base.preset_name, record.plan.sampler) == ("paper", "grid")
    assert list(record.plan.space) == ["learning_rate", "dropout", "l2"]


def known_set(folder: Path, test_rows: list[tuple[str, str]]) -> Path:
    parts: Mapping[str, list[tuple[str, str]]] = {"train": sentences(40), "dev": sentences(20), "test": test_rows}
    (folder / "sst2").mkdir(parents=True)
    for part, rows in parts.items():
        lines = [f"{int(label == 'good')}\t{text}\n" for text, label in rows]
        (folder / "sst2" / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def test_the_test_set_changes_nothing_and_its_best_reads_texts_as_the_search_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = write_space(tmp_path, 'learning_rate = [0.02]\nsplit = ["words"]\n')
    found = []
    for name, rows in (("one", sentences(20)), ("other", [("quite different", "good"), ("words", "bad")])):
        monkeypatch.setenv("ROUTEPOOL_DATA", str(known_set(tmp_path / name, rows)))
        study = tmp_path / name / "study"
        succeed("tune", "sst2", "--space", space, "--out", study, *SMALL)
        assert [fact.role for fact in Study.read(study).base.files] == ["training", "dev"]
        found.append((scores(study), (study / "best.toml").read_bytes()))
    assert found[0] == found[1]
    assert Changes.of(str(study / "best.toml"), {}).preset(data="sst2").text.split == "words"
    assert call("tune", "sst2", "--test", space).code == 2


def test_labels_may_be_many(tmp_path: Path) -> None:
    rows = [(text, "good|long" if label == "good" else "bad") for text, label in sentences(40)]
    data = write_csv(tmp_path / "reviews.csv", rows)
    space = write_space(tmp_path, "learning_rate = [0.02]\n")
    told = succeed("tune", data, "--multi-label", "--space", space, "--out", tmp_path / "study", *SMALL).out
    assert "dev micro F1" in told


def test_a_terminal_shows_a_table_that_grows(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "shown").open("w+", encoding="utf-8") as file:
        monkeypatch.setattr(screen, "out", Console(file=file, force_terminal=True, width=120))
        space = write_space(tmp_path, "learning_rate = [0.02, 0.01]\n")
        succeed("tune", data, "--space", space, "--out", tmp_path / "study", *SMALL)
        file.seek(0)
        shown = file.read()
    assert "running" in shown
    assert "dev accuracy" in shown
    assert "trial 0:" not in shown
