"""`routepool train` and `evaluate`: from a file to a model that works, in any language, and nothing written over."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli_runs import ENGLISH, TINY, call, refused, sentences, succeed, train_tiny, write_csv
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from routepool.persistence import load_model
from routepool.settings import change
from routepool.training import DivergedError, Fitted, fit

LANGUAGES = {
    "German": (
        {
            "gut": ("großartig", "schön", "wunderbar", "überzeugend"),
            "schlecht": ("öde", "mißlungen", "trüb", "kalt"),
            "": ("der", "Film", "war", "eine", "Geschichte", "über", "Menschen"),
        },
        " ",
    ),
    "Chinese": (
        {
            "好": ("精彩", "优美", "温暖", "出色"),
            "坏": ("糟糕", "无聊", "冰冷", "失败"),
            "": ("电影", "故事", "人们", "时间", "城市"),
        },
        "",
    ),
    "Arabic": (
        {
            "جيد": ("رائع", "جميل", "ممتع", "دافئ"),
            "سيئ": ("ممل", "رديء", "بارد", "كئيب"),
            "": ("الفيلم", "كان", "قصة", "عن", "الناس", "المدينة"),
        },
        " ",
    ),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("train"))


def record(run: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    return values


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_learns_any_language(language: str, tmp_path: Path) -> None:
    words, space = LANGUAGES[language]
    rows = sentences(200, words, space=space)
    data = write_csv(tmp_path / "train.csv", rows[:160])
    new = write_csv(tmp_path / "new.csv", rows[160:])
    succeed("train", data, "--out", tmp_path / "run", *TINY, "--set", "epochs=8")
    predicted = succeed("predict", tmp_path / "run", new).out.splitlines()[1:]
    right = sum(line.split(",")[1] == label for line, (_, label) in zip(predicted, rows[160:], strict=True))
    assert right >= 38


def test_a_run_is_a_model_folder_with_its_record_and_its_log(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {
        "config.json", "tokenizer.json", "model.safetensors", "manifest.json", "README.md", "run.json", "logs",
    }  # fmt: skip
    epochs = [json.loads(line) for line in (run / "logs" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert [one["epoch"] for one in epochs] == [0, 1, 2, 3]
    kept = record(run)
    assert Path(kept["files"][0]["file"]).is_absolute()
    assert len(kept["files"][0]["sha256"]) == 64
    assert kept["threads"] == 1
    assert kept["versions"]["torch"]


def test_the_card_tells_data_scores_and_calibration(run: Path) -> None:
    card = (run / "README.md").read_text("utf-8")
    assert record(run)["files"][0]["sha256"] in card
    for told in (
        "reviews.csv",
        "a stratified 10% of the file",
        "| dev | accuracy |",
        "Brier score, dev",
        "torch",
    ):
        assert told in card
    assert "calibration error" not in card, "of 12 texts it would be chance"
    assert str(run.parent) not in card, "a card is published: no paths of this machine"


def test_the_next_commands_are_printed(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(60))
    told = succeed("train", data, "--out", tmp_path / "run", *TINY).out
    assert "text column 'text' and label column 'label', by their names" in told
    assert "dev set: 6 of 60 examples" in told
    assert f"routepool predict {tmp_path / 'run'}" in told
    assert "test:" not in told


def test_a_folder_is_made_and_told_if_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "reviews.csv", sentences(40))
    told = succeed("train", "reviews.csv", *TINY).out
    (made,) = (tmp_path / "runs").iterdir()
    assert made.name.startswith("reviews-2")
    assert f"model folder: runs/{made.name}" in told


def test_nothing_is_written_over_without_force(run: Path) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    data = run.parent / "reviews.csv"
    assert "use --force" in refused("train", data, "--out", run, *TINY)
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before


def test_force_replaces_a_model(tmp_path: Path) -> None:
    run = train_tiny(tmp_path)
    first, log = record(run)["id"], (run / "logs" / "metrics.jsonl").read_text("utf-8")
    succeed("train", tmp_path / "reviews.csv", "--out", run, "--force", *TINY)
    assert record(run)["id"] == load_model(run).provenance["run"] != first
    assert len((run / "logs" / "metrics.jsonl").read_text("utf-8").splitlines()) == len(log.splitlines())


@pytest.mark.parametrize("name", ["README.md", "config.json", "manifest.json", "run.json", "checkpoints/mine.txt"])
def test_force_replaces_nothing_that_routepool_did_not_write(name: str, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(40))
    (tmp_path / "run" / name).parent.mkdir(parents=True)
    (tmp_path / "run" / name).write_text('{"mine": true}', encoding="utf-8")
    error = refused("train", data, "--out", tmp_path / "run", "--force", *TINY)
    assert error.startswith(f"{tmp_path / 'run' / Path(name).parts[0]}: routepool did not write it")
    if "/" in name or name == "run.json":  # no force is needed to lose these
        assert "routepool did not write it" in refused("train", data, "--out", tmp_path / "run", *TINY)
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert [str(path.relative_to(tmp_path / "run")) for path in files] == [name]
    assert files[0].read_text("utf-8") == '{"mine": true}'


def test_a_run_that_fails_at_once_leaves_nothing(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(40))
    (tmp_path / "bad.txt").write_text("good 1 2\nbad 1\n", encoding="utf-8")
    refused("train", data, "--out", tmp_path / "run", *TINY, "--vectors", tmp_path / "bad.txt")
    assert not (tmp_path / "run").exists()


def test_the_same_seed_gives_the_same_weights_and_another_does_not(run: Path, tmp_path: Path) -> None:
    again = train_tiny(tmp_path)
    assert (again / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    other = train_tiny(tmp_path, "--force", "--seed", "1")
    assert (other / "model.safetensors").read_bytes() != (run / "model.safetensors").read_bytes()


def test_vectors_of_a_file_are_used_and_their_coverage_told(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(40))
    words = [word for group in ENGLISH.values() for word in group]
    lines = [f"{word} {place} {-place} 1\n" for place, word in enumerate([*words, "unseen"])]
    (tmp_path / "vectors.txt").write_text("".join(lines), encoding="utf-8")
    told = succeed("train", data, "--out", tmp_path / "run", *TINY, "--vectors", tmp_path / "vectors.txt").out
    assert told.index("vectors.txt: 100.0 % of 15 words") < told.index("epoch 1:")  # in time to stop and mend it
    assert record(tmp_path / "run")["files"][1]["role"] == "vectors"
    saved = load_model(tmp_path / "run")
    assert saved.model_config.embedding_size == 3
    assert "unseen" in saved.tokenizer.words


def test_curves_go_to_tensorboard_if_asked(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(40))
    succeed("train", data, "--out", tmp_path / "run", *TINY, "--tensorboard")
    (events,) = (tmp_path / "run" / "logs").glob("events*")
    assert {"loss", "learning_rate", "dev_score"} <= {
        value.tag for event in EventFileLoader(str(events)).Load() for value in event.summary.value
    }


def test_dev_and_test_files_are_read_with_the_columns_of_the_training_file(tmp_path: Path) -> None:
    rows = sentences(90)
    data = write_csv(tmp_path / "a.csv", rows[:60], header="body,kind")
    dev = write_csv(tmp_path / "b.csv", rows[60:75], header="body,kind")
    options = ["--text-column", "body", "--label-column", "kind", "--dev", dev, "--test", dev]
    told = succeed("train", data, "--out", tmp_path / "run", *options, *TINY).out
    assert "test: accuracy" in told
    assert "dev set:" not in told
    scored = json.loads(succeed("evaluate", tmp_path / "run", dev, "--json").out)
    assert scored["accuracy"] == load_model(tmp_path / "run").provenance["scores"]["test"]["accuracy"]


def test_several_labels_a_text(tmp_path: Path) -> None:
    rows = [(text, label if number % 3 else "good;bad") for number, (text, label) in enumerate(sentences(90))]
    data = write_csv(tmp_path / "tags.csv", [*rows, ("people of the film", "")])
    succeed("train", "--multi-label", ";", data, "--out", tmp_path / "run", *TINY)
    scores = json.loads(succeed("evaluate", tmp_path / "run", data, "--json").out)
    assert [one["support"] for one in scores["classes"]] == [60, 60]
    called = call("train", data, "--out", tmp_path / "other", "--multi-label", "--init-from", tmp_path / "run")
    assert "label 'good;bad' is none of the model's" in called.err


def test_two_parts_of_dev_that_give_two_scores_are_named(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "data.csv", sentences(240))
    told = [
        succeed("train", data, "--out", tmp_path / share, *TINY, "--set", f"calibration={share}").out
        for share in ("0.5", "1", "0")
    ]
    assert "dev set: 12 texts decide when to stop, 12 others calibrate" in told[0]
    assert all("others calibrate" not in out for out in told[1:])


def test_long_texts_are_read_as_documents(tmp_path: Path) -> None:
    padding = ". ".join(text for text, _ in sentences(12))
    rows = [(f"{padding}. {text}.", label) for text, label in sentences(24)]
    data = write_csv(tmp_path / "long.csv", rows)
    assert "read as documents" in succeed("train", data, "--out", tmp_path / "run", *TINY).out
    assert load_model(tmp_path / "run").model_config.depth == 2


def test_training_goes_on_from_another_model(run: Path, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "more.csv", sentences(40))
    succeed("train", data, "--out", tmp_path / "run", "--init-from", run, "--threads", "1", "--set", "epochs=1")
    first, second = load_model(run), load_model(tmp_path / "run")
    assert (second.model_config, second.tokenizer.words) == (first.model_config, first.tokenizer.words)
    assert (run / "model.safetensors").read_bytes() != (tmp_path / "run" / "model.safetensors").read_bytes()
    options = ["--out", tmp_path / "dropped", "--init-from", run, "--set", "epochs=1"]
    succeed("train", data, *options, "--set", "dropout=0.6")
    assert load_model(tmp_path / "dropped").model_config == change(first.model_config, dropout=0.6)
    options = ["--out", tmp_path / "third", "--init-from", run]
    assert "keeps the model as it is" in refused("train", data, *options, "--set", "hidden_size=9")
    other = write_csv(
        tmp_path / "other.csv",
        [(f"{text} film", "odd") for text, _ in sentences(20)] + [("a story", "even"), ("the story", "even")],
    )
    assert "other.csv, row 2: label 'odd' is none of the model's" in refused("train", other, *options)


def test_a_known_set_is_read_as_it_was_published_and_its_test_part_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTEPOOL_DATA", str(tmp_path))
    (tmp_path / "sst2").mkdir()
    for part, count in (("train", 80), ("dev", 20), ("test", 10)):
        rows = "".join(f"{int(label == 'good')}\t{text} n't\n" for text, label in sentences(count))
        (tmp_path / "sst2" / f"{part}.tsv").write_text(rows, encoding="utf-8")
    told = succeed("train", "sst2", "--preset", "paper", "--out", tmp_path / "run", *TINY, "--set", "dropout=0").out
    assert "test:" not in told
    assert load_model(tmp_path / "run").tokenizer.config.split == "spaces"
    told = succeed("train", "sst2", "--score-test", "--out", tmp_path / "second", *TINY).out
    assert "test: accuracy" in told
    scored = json.loads(succeed("evaluate", tmp_path / "run", "sst2", "--part", "test", "--json").out)
    assert scored["examples"] == 10
    (tmp_path / "own.csv").write_text("id,review\n1,great film\n", encoding="utf-8")
    assert succeed("predict", tmp_path / "run", tmp_path / "own.csv").out.splitlines()[1].startswith("2,1,")
    assert "--part must be one of" in refused("evaluate", tmp_path / "run", "sst2", "--part", "tset")
    assert "--score-test is for known sets" in refused("train", tmp_path / "x.csv", "--score-test", *TINY)


def test_bad_rows_are_skipped_and_listed_if_asked(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(60))
    with data.open("a", encoding="utf-8") as file:
        file.write("one,two,three\n")
    assert "reviews.csv, row 62: 3 fields" in refused("train", data, "--out", tmp_path / "run", *TINY)
    told = succeed("train", data, "--out", tmp_path / "run", *TINY, "--on-error", "skip")
    assert "1 row skipped" in told.err
    assert "row 62: 3 fields" in told.err


def test_the_best_model_before_the_loss_went_wrong_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverging(*arguments: Any, **options: Any) -> Fitted:
        error = DivergedError("the loss is nan")
        error.fitted = fit(*arguments, **options)
        raise error

    monkeypatch.setattr("routepool.runs.run.fit", diverging)
    data = write_csv(tmp_path / "reviews.csv", sentences(40))
    assert refused("train", data, "--out", tmp_path / "run", *TINY) == "the loss is nan"
    assert load_model(tmp_path / "run").labels == ("bad", "good")


def test_evaluate_shows_a_table(run: Path) -> None:
    shown = succeed("evaluate", run, run.parent / "reviews.csv").out
    assert "95 % interval" in shown
    assert "confusion" in shown


def test_evaluate_refuses_labels_the_model_does_not_know(run: Path, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "odd.csv", [("the film", "good"), ("a story", "middling")])
    assert "odd.csv, row 3: label 'middling'" in refused("evaluate", run, data)
