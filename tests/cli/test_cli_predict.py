"""`routepool predict`: one row out for each row in, in any format, in bounded memory, nothing written over."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli_runs import TINY, call, refused, run_process, sentences, succeed, train_tiny, write_csv

from routepool.scoring.bulk import likeliest


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("predict"))


@pytest.fixture(scope="module")
def tags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tags")
    rows = [(text, label if number % 3 else "good|bad") for number, (text, label) in enumerate(sentences(90))]
    data = write_csv(folder / "tags.csv", rows)
    succeed("train", data, "--multi-label", "--out", folder / "run", *TINY)
    return folder / "run"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "new.csv", sentences(6))


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_row_has_its_line_number_label_and_probability_and_not_the_text(run: Path, new: Path) -> None:
    rows = table(succeed("predict", run, new).out)
    assert [list(row) for row in rows] == [["row", "label", "probability"]] * 6
    assert [row["row"] for row in rows] == ["2", "3", "4", "5", "6", "7"]
    assert [row["label"] for row in rows] == ["good", "bad"] * 3
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)


def test_every_label_and_the_likeliest_ones_can_be_had(run: Path, new: Path) -> None:
    row = table(succeed("predict", run, new, "--prob", "-k", "2").out)[0]
    assert list(row) == ["row", "label", "probability", "label_2", "probability_2", "p(bad)", "p(good)"]
    assert (row["label"], row["label_2"]) == ("good", "bad")
    assert float(row["p(bad)"]) + float(row["p(good)"]) == pytest.approx(1, abs=2e-6)
    assert "-k must be at most 2" in refused("predict", run, new, "-k", "3")


def test_kept_columns_stay_as_they_were(run: Path, new: Path) -> None:
    row = table(succeed("predict", run, new, "--keep").out)[0]
    assert list(row) == ["text", "label", "row", "predicted_label", "probability"]
    assert (row["text"], row["label"]) == sentences(1)[0]


def test_output_can_be_json_lines(run: Path, new: Path, tmp_path: Path) -> None:
    rows = lines(succeed("predict", run, new, "--format", "jsonl").out)
    assert rows[0].keys() == {"row", "label", "probability", "unread", "known"}
    succeed("predict", run, new, "--out", tmp_path / "out.jsonl")
    assert lines((tmp_path / "out.jsonl").read_text("utf-8")) == rows


def test_standard_input_is_a_text_a_line_and_a_blank_one_has_its_row(run: Path) -> None:
    rows = table(succeed("predict", run, stdin=b"a great film\n\nan awful film\n").out)
    assert [row["row"] for row in rows] == ["1", "2", "3"]
    assert (rows[0]["label"], rows[2]["label"]) == ("good", "bad")


def test_standard_input_can_be_a_table(run: Path) -> None:
    given = b"text,id\na great film,7\n"
    row = table(succeed("predict", run, "-", "--input-format", "csv", "--keep", stdin=given).out)[0]
    assert (row["id"], row["predicted_label"] if "predicted_label" in row else row["label"]) == ("7", "good")


def test_texts_that_hold_commas_quotes_and_newlines_come_back_as_they_were(run: Path, tmp_path: Path) -> None:
    text = 'great, "lovely"\nand warm'
    (tmp_path / "odd.csv").write_text('text\n"great, ""lovely""\nand warm"\n', encoding="utf-8")
    assert table(succeed("predict", run, tmp_path / "odd.csv", "--keep").out)[0]["text"] == text


def test_several_labels_are_joined(tags: Path, new: Path) -> None:
    rows = table(succeed("predict", tags, new).out)
    for row in rows:
        assert set(filter(None, row["label"].split("|"))) <= {"bad", "good"}
        assert row["label"].count("|") == row["probability"].count("|")
    listed = lines(succeed("predict", tags, new, "--format", "jsonl", "-k", "2").out)[0]
    assert isinstance(listed["labels"], list)
    assert {listed["label_1"], listed["label_2"]} == {"bad", "good"}


def test_the_columns_of_training_are_used_unless_told(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "a.csv", sentences(60), header="body,kind")
    succeed("train", data, "--text-column", "body", "--label-column", "kind", "--out", tmp_path / "run", *TINY)
    other = tmp_path / "b.csv"
    other.write_text("comment,body\nawful,great\n", encoding="utf-8")
    assert table(succeed("predict", tmp_path / "run", other).out)[0]["label"] == "good"
    assert table(succeed("predict", tmp_path / "run", other, "--text-column", "comment").out)[0]["label"] == "bad"
    other.write_text("comment\nawful\n", encoding="utf-8")
    assert "b.csv, row 1: unknown column 'body'" in refused("predict", tmp_path / "run", other)
    (tmp_path / "c.txt").write_text("great\n", encoding="utf-8")
    assert table(succeed("predict", tmp_path / "run", tmp_path / "c.txt").out)[0]["label"] == "good"


def test_a_file_is_never_written_over_without_force(run: Path, new: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("mine", encoding="utf-8")
    assert "use --force" in refused("predict", run, new, "--out", out)
    assert out.read_text("utf-8") == "mine"
    succeed("predict", run, new, "--out", out, "--force")
    assert len(table(out.read_text("utf-8"))) == 6


def test_only_a_file_can_be_the_output(run: Path, new: Path, tmp_path: Path) -> None:
    assert "there is no folder" in refused("predict", run, new, "--out", tmp_path / "none" / "out.csv")
    (tmp_path / "pipe").mkdir()
    assert "wanted a file to write" in refused("predict", run, new, "--out", tmp_path / "pipe", "--force")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    succeed("predict", run, new, "--out", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").is_file()


def test_a_prediction_that_fails_leaves_no_file(run: Path, new: Path, tmp_path: Path) -> None:
    with new.open("a", encoding="utf-8") as file:
        file.write("one,two,three\n")
    assert "new.csv, row 8: 3 fields" in refused("predict", run, new, "--out", tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
    done = call("predict", run, new, "--out", tmp_path / "out.csv", "--on-error", "skip")
    assert "row 8: 3 fields" in done.err
    assert len(table((tmp_path / "out.csv").read_text("utf-8"))) == 6


def test_records_of_other_keys_want_json_lines(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_text('{"text": "great"}\n{"text": "dull", "more": 1}\n', encoding="utf-8")
    assert "column 'more' is not in the first row; use --format jsonl" in refused("predict", run, file, "--keep")
    assert lines(succeed("predict", run, file, "--keep", "--format", "jsonl").out)[1]["more"] == 1


def test_an_unknown_format_is_an_error(run: Path, new: Path) -> None:
    assert "--format must be csv or jsonl" in refused("predict", run, new, "--format", "xml")
    assert "unknown data format 'excel'" in refused("predict", run, new, "--input-format", "excel")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak in kilobytes")
def test_memory_does_not_grow_with_the_rows(run: Path, tmp_path: Path) -> None:
    few, many = (peak_of(run, write_csv(tmp_path / f"{rows}.csv", sentences(rows))) for rows in (2_000, 40_000))
    # A buffer of 4,096 texts is read ahead, which the small file does not fill; 38,000 more texts would take 40 MB.
    assert many - few < 15_000, (few, many)


def peak_of(run: Path, data: Path) -> int:
    """Kilobytes of a process that predicts a file."""
    code = (
        "import resource, sys; from routepool.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))"
    )
    arguments = [sys.executable, "-c", code, "predict", str(run), str(data), "--out", str(data) + ".out"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    with Path(str(data) + ".out").open(encoding="utf-8") as predicted, data.open(encoding="utf-8") as given:
        assert sum(1 for _ in predicted) == sum(1 for _ in given)
    return int(done.stderr)


def test_a_table_in_a_real_process_is_utf_8(run: Path) -> None:
    done = run_process("predict", run, "--keep", stdin="schön und great 好\n".encode())
    assert "schön und great 好" in done.stdout.decode()


@pytest.mark.parametrize("number", [1, 2, 3, 50])
def test_the_likeliest_of_many_labels_come_in_order_the_first_of_equal_ones_first(number: int) -> None:
    probabilities = np.random.default_rng(0).integers(0, 9, 50) / 100
    assert likeliest(probabilities, number) == sorted(range(50), key=lambda place: -probabilities[place])[:number]


def test_dates_of_a_parquet_file_are_kept_in_json(run: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    dates = pyarrow.array([20_000], pyarrow.date32())
    parquet.write_table(pyarrow.table({"text": ["a lovely film"], "day": dates}), tmp_path / "new.parquet")
    (row,) = lines(succeed("predict", run, tmp_path / "new.parquet", "--keep", "--format", "jsonl").out)
    assert row["day"] == "2024-10-04"
