"""`routepool explain`: every form of output, questions of data, nothing written over, errors in a sentence."""

import io
import json
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console
from support.cli_runs import call, refused, sentences, succeed, train_tiny, write_csv

from routepool.cli import screen
from routepool.errors import InputError
from routepool.explaining import Explanation, explain_file

TEXT = "the film was a great story"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("explain"))


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("pooled"), "--set", "depth=2")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "held.csv", sentences(24))


def test_a_text_is_told_in_plain_lines(run: Path) -> None:
    lines = succeed("explain", run, TEXT).out.splitlines()
    assert lines[1].startswith("-> good ")
    assert "great +" in lines[2]
    assert [line[:11] for line in lines[3:]] == ["  capsule 1", "  capsule 2"]


def test_rounds_are_told_one_by_one(run: Path) -> None:
    told = succeed("explain", run, TEXT, "--iterations").out
    assert told.count("round 1") == told.count("round 3") == 2


def test_a_terminal_gets_colours(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=200)
    monkeypatch.setattr(screen, "out", terminal)
    succeed("explain", run, TEXT)
    shown = cast(io.StringIO, terminal.file).getvalue()
    assert "\x1b[38;5;15;48;2;" in shown or ";48;2;" in shown
    assert "great" in shown


def test_control_characters_do_not_reach_the_terminal(run: Path) -> None:
    assert "\x1b" not in succeed("explain", run, "great \x1b[31mred\x07 film").out


def test_json_is_an_explanation(run: Path) -> None:
    shown = Explanation.from_json(succeed("explain", run, TEXT, "--json", "--method", "message", "--label", "bad").out)
    assert (shown.text, shown.label, shown.method) == (TEXT, "bad", "message")


def test_every_form_is_written(run: Path, tmp_path: Path) -> None:
    names = [tmp_path / f"why.{form}" for form in ("html", "json", "jsonl", "png", "svg")]
    assert succeed("explain", run, TEXT, *(part for name in names for part in ("--out", name))).out == ""
    assert names[0].read_text().startswith("<!doctype html>")
    assert Explanation.from_json(names[1].read_text()).text == TEXT
    assert names[3].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in names[4].read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(name.name for name in names)


def test_rounds_and_documents_are_drawn(pooled: Path, tmp_path: Path) -> None:
    text = "A great $film$. It was cold."
    for name, options in (("rounds.png", ["--iterations"]), ("plain.png", [])):
        succeed("explain", pooled, text, *options, "--out", tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    assert "words of sentence" in succeed("explain", pooled, text).out


def test_a_file_gives_one_explanation_a_text(run: Path, data: Path, tmp_path: Path) -> None:
    succeed(
        "explain", run, data, "--method", "message", "--out", tmp_path / "all.jsonl", "--out", tmp_path / "all.html"
    )
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert [Explanation.from_json(line).text for line in lines] == [text for text, _ in sentences(24)]
    assert (tmp_path / "all.html").read_text().count("<article>") == 24
    assert "holds one text, got 24; write .jsonl or .html" in refused(
        "explain", run, data, "--out", tmp_path / "a.json"
    )


def test_python_writes_what_the_command_writes(run: Path, data: Path, tmp_path: Path) -> None:
    forms, asked = ("html", "jsonl"), ("--method", "message", "--label", "bad")
    succeed("explain", run, data, *asked, *(part for form in forms for part in ("--out", tmp_path / f"command.{form}")))
    names = [str(tmp_path / f"python.{form}") for form in forms]
    done = explain_file(run, str(data), names, method="message", label="bad")
    assert [example.text for example in done.examples] == [one.text for one in done.explanations]
    for form in forms:
        assert (tmp_path / f"python.{form}").read_bytes() == (tmp_path / f"command.{form}").read_bytes()
    with pytest.raises(InputError, match="there is such a file already"):
        explain_file(run, str(data), names)


def test_a_file_of_nothing_but_bad_rows_says_so(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "bad.jsonl"
    data.write_text('{"text": 1}\n{"text": null}\n')
    assert "no text to explain; rows left out: 2" in refused("explain", run, data, "--on-error", "skip")


def test_standard_input_is_read_by_lines(run: Path) -> None:
    told = succeed("explain", run, "--json", stdin=b"great film\nawful film\n").out
    assert [Explanation.from_json(line).label for line in told.splitlines()] == ["good", "bad"]


def test_standard_input_can_be_a_table(run: Path) -> None:
    told = succeed("explain", run, "--json", "--input-format", "csv", stdin=b"text,label\ngreat film,good\n").out
    assert [Explanation.from_json(line).text for line in told.splitlines()] == ["great film"]


def test_nothing_is_written_over_unless_forced(run: Path, tmp_path: Path) -> None:
    there = tmp_path / "why.json"
    there.write_text("mine")
    assert "there is such a file already" in refused("explain", run, TEXT, "--out", there)
    assert there.read_text() == "mine"
    succeed("explain", run, TEXT, "--out", there, "--force")
    assert Explanation.from_json(there.read_text()).text == TEXT


def test_mistakes_are_told_in_a_sentence(run: Path, tmp_path: Path) -> None:
    assert "no such file; check the name" in refused("explain", run, "revews.csv")
    assert "unknown method 'gradiant', did you mean 'gradient'" in refused("explain", run, TEXT, "--method", "gradiant")
    assert "unknown label 'fine'" in refused("explain", run, TEXT, "--label", "fine")
    assert "ends in .html" in refused("explain", run, TEXT, "--out", tmp_path / "why.pdf")
    assert "one at a time" in refused("explain", run, "--audit", "a.csv", "--capsules", "b.csv")
    assert "with --capsules" in refused("explain", run, TEXT, "--one-iteration", run)
    assert call("explain").code == 2


def test_an_audit_is_shown_drawn_and_kept(run: Path, data: Path, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "audit.json", "--out", tmp_path / "audit.png"]
    told = succeed("explain", run, "--audit", data, "--texts", 6, "--method", "gradient", *out).out
    assert told.startswith("6 texts.")
    assert all(removal in told for removal in ("removal: drop", "removal: unknown", "removal: masked"))
    kept = json.loads((tmp_path / "audit.json").read_text())
    orders = {row["order"] for row in kept["rows"]}
    assert orders == {"random", "gradient", "rare words first", "leave-one-out", "search"}
    assert (tmp_path / "audit.png").read_bytes().startswith(b"\x89PNG")


def test_capsules_are_shown_beside_their_controls(run: Path, data: Path) -> None:
    told = succeed("explain", run, "--capsules", data, "--one-iteration", run, "--projected-mean", run).out
    for part in ("capsule 2 of words", "words: ", "dynamic?", "variance", "capsules of one iteration", "random slices"):
        assert part in told
    report = json.loads(succeed("explain", run, "--capsules", data, "--json").out)
    assert report["texts"] == 24


def test_unknown_labels_name_file_and_row(run: Path, tmp_path: Path) -> None:
    other = write_csv(tmp_path / "other.csv", [("a film", "odd")])
    assert "row 2: label 'odd' is none of the model's" in refused("explain", run, "--audit", other)
