"""Every bad input gives one line with file and row and exit code 1, or is handled as documented; nothing is lost."""

import gzip
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli_runs import TINY, call, command, refused, sentences, succeed, train_tiny, write_csv

resource = pytest.importorskip("resource")  # limits, which Windows has not
TEXT = "text,label\n" + "".join(f"{text},{label}\n" for text, label in sentences(60))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("bad"))


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "empty file": ("x.csv", b"", "x.csv, row 1: the file is empty"),
    "header only": ("x.csv", b"text,label\n", "x.csv, row 1: the file has a header and no rows"),
    "ragged row": ("x.csv", TEXT.encode() + b"a,b,c\n", "x.csv, row 62: 3 fields where 2 are wanted"),
    "unclosed quote": ("x.csv", TEXT.encode() + b'"a film,good\n', "x.csv, row 62: the quote opened in this row"),
    "utf-16 without a mark": ("x.csv", TEXT.encode("utf-16-le"), "x.csv, row 1: looks like UTF-16"),
    "latin-1": ("x.csv", TEXT.encode() + "schön,good\n".encode("latin-1"), "x.csv, row 62: byte 0xf6"),
    "NUL": ("x.csv", TEXT.encode() + b"a \0 film,good\n", "x.csv, row 62: NUL byte"),
    "label missing": ("x.csv", TEXT.encode() + b"a film,\n", "x.csv, row 62: the label in 'label' is missing"),
    "one class": ("x.csv", b"text,label\na film,good\nthe film,good\n", "x.csv, row 2: every example is labelled good"),
    "column twice": ("x.csv", b"text,label,text\na,good,b\n", "x.csv, row 1: column 'text' comes twice"),
    "broken JSON": ("x.jsonl", b'{"text": "a", "label": 1}\n{"text": \n', "x.jsonl, row 2: broken JSON"),
    "duplicate key": ("x.jsonl", b'{"text": "a", "text": "b", "label": 1}\n', "x.jsonl, row 1: key 'text' comes twice"),
    "cut gzip": ("x.csv.gz", gzip.compress(TEXT.encode())[:-20], "x.csv.gz, row"),
    "spreadsheet": ("x.csv", b"PK\x03\x04rest", "x.csv: is a zip or spreadsheet file"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_bad_training_file_is_one_line_with_file_and_row(what: str, tmp_path: Path) -> None:
    name, content, message = BAD_FILES[what]
    (tmp_path / name).write_bytes(content)
    assert message in refused("train", tmp_path / name, "--out", tmp_path / "run", *TINY)
    assert [path.name for path in tmp_path.iterdir()] == [name], "nothing is left behind"


@pytest.mark.parametrize("what", [name for name in BAD_FILES if name != "one class"])
def test_a_bad_file_to_evaluate_is_one_line_with_file_and_row(what: str, run: Path, tmp_path: Path) -> None:
    name, content, message = BAD_FILES[what]
    (tmp_path / name).write_bytes(content)
    assert message in refused("evaluate", run, tmp_path / name)


def test_an_empty_text_and_a_header_that_comes_again_stop_nothing_and_are_told(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "x.csv"
    data.write_text(TEXT + ",good\ntext,label\n", encoding="utf-8")
    told = ["x.csv: empty texts left out: 1 (row 62)", "x.csv: repeats of the header left out: 1 (row 63)"]
    trained = succeed("train", data, "--out", tmp_path / "run", *TINY)
    assert "60 examples, 2 labels" in trained.out
    for called in (trained, succeed("evaluate", run, data)):
        assert [line.removeprefix(f"{tmp_path}/") for line in called.err.splitlines()] == told
    checked = succeed("data", "check", data).out.splitlines()
    assert checked[0].endswith("60 examples, 2 labels")
    assert "warning: empty texts left out: 1 (rows 62)" in checked
    assert "warning: repeats of the header left out: 1 (rows 63)" in checked
    for arguments in (["train", data, "--out", tmp_path / "strict", *TINY], ["evaluate", run, data]):
        assert "x.csv, row 62: the text in 'text' is empty" in refused(*arguments, "--on-error", "stop")


def test_an_empty_text_has_its_prediction_and_a_header_that_comes_again_has_none(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "x.csv"
    data.write_text("text,label\na great film,good\n,good\ntext,label\nawful,bad\n", encoding="utf-8")
    called = succeed("predict", run, data)
    assert [line.split(",")[0] for line in called.out.splitlines()] == ["row", "2", "3", "5"]
    assert "x.csv: repeats of the header left out: 1 (row 4)" in called.err


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "x.csv", sentences(20))
    error = refused("train", data, "--out", tmp_path / "run", "--text-column", "txt", *TINY)
    assert "x.csv, row 1: unknown column 'txt', did you mean 'text'?" in error


def test_an_unseen_dev_label_is_found_before_training(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "x.csv", sentences(20))
    dev = write_csv(tmp_path / "dev.csv", [*sentences(4), ("a film", "middling")])
    error = refused("train", data, "--dev", dev, "--out", tmp_path / "run", *TINY)
    assert "dev.csv, row 6: label 'middling' does not occur in" in error


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(TEXT.encode("utf-8-sig"), id="byte order mark"),
        pytest.param(TEXT.encode("utf-16"), id="utf-16"),
        pytest.param(TEXT.replace("\n", "\r").encode(), id="CR only"),
        pytest.param(TEXT.replace("\n", "\r\n").encode(), id="CRLF"),
    ],
)
def test_other_marks_and_line_ends_are_read(encoded: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(encoded)
    assert "60 examples, 2 labels" in succeed("train", tmp_path / "x.csv", "--out", tmp_path / "run", *TINY).out


def test_latin_1_is_read_if_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes((TEXT + "schön,good\n").encode("latin-1"))
    succeed("train", tmp_path / "x.csv", "--encoding", "latin-1", "--out", tmp_path / "run", *TINY)


def test_a_text_of_a_million_words_is_cut_and_said(run: Path, tmp_path: Path) -> None:
    dev = write_csv(tmp_path / "dev.csv", sentences(8))
    data = write_csv(tmp_path / "x.csv", [*sentences(60), ("word " * 1_000_000, "good")])
    told = succeed("train", data, "--dev", dev, "--out", tmp_path / "run", *TINY).out
    assert "1 training text too long: 999,000 words" in told
    assert len(succeed("predict", run, data).out.splitlines()) == 62


def vectors_error(content: bytes, folder: Path) -> str:
    data = write_csv(folder / "x.csv", sentences(20))
    (folder / "vectors.txt").write_bytes(content)
    return refused("train", data, "--out", folder / "run", *TINY, "--vectors", folder / "vectors.txt")


def test_vectors_of_another_dimension_are_named_with_their_line(tmp_path: Path) -> None:
    error = vectors_error(b"the 1 2 3\nfilm 1 2\n", tmp_path)
    assert "vectors.txt" in error
    assert "2" in error
    assert not (tmp_path / "run").exists()


def test_vectors_cut_short_are_named(tmp_path: Path) -> None:
    assert "vectors.txt" in vectors_error(b"the 1 2 3\nfilm 1 2 3\nstory 1 2", tmp_path)
    assert "no such file" in refused("train", tmp_path / "x.csv", "--vectors", tmp_path / "none.txt", *TINY[2:])


def test_vectors_that_are_not_there_are_named(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "x.csv", sentences(20))
    error = refused("train", data, "--out", tmp_path / "run", *TINY, "--vectors", "wordlama")
    assert "wanted a file of vectors or one of: wordllama" in error


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch], ids=["an empty folder", "a file"])
def test_a_folder_that_is_not_a_model_is_said(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "run")
    data = write_csv(tmp_path / "x.csv", sentences(4))
    for arguments in (["predict", tmp_path / "run", data], ["evaluate", tmp_path / "run", data]):
        assert f"{tmp_path / 'run'}: wanted the folder of a model" in refused(*arguments)
    assert "run.json" in refused("train", "--resume", tmp_path / "run")


def test_a_file_in_place_of_the_output_folder_is_kept(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "x.csv", sentences(20))
    (tmp_path / "run").write_text("mine", encoding="utf-8")
    assert "wanted a folder for the model, got a file" in refused("train", data, "--out", tmp_path / "run", *TINY)
    inside = refused("train", data, "--out", tmp_path / "run" / "inner", *TINY)
    assert "cannot be written" in inside or "wanted" in inside
    assert (tmp_path / "run").read_text("utf-8") == "mine"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="a read-only folder does not stop this user")
def test_a_read_only_folder_is_said_before_training(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "x.csv", sentences(20))
    (tmp_path / "closed").mkdir(mode=0o500)
    assert "cannot be written" in refused("train", data, "--out", tmp_path / "closed" / "run", *TINY)


@pytest.mark.skipif(os.name != "posix", reason="needs limits")
def test_a_full_disk_is_one_line_and_the_old_model_stays(run: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for it: room for the small ones, none for weights."""
    old = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file() and path.name != "run.json"}

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    data = run.parent / "reviews.csv"
    arguments = command("train", data, "--out", run, "--force", *TINY)
    done = subprocess.run(arguments, capture_output=True, text=True, preexec_fn=no_room, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "cannot be written (File too large)" in line
    assert {name: (run / name).read_bytes() for name in old} == old
    out = tmp_path / "out.csv"
    many = write_csv(tmp_path / "many.csv", sentences(2000))
    arguments = command("predict", run, many, "--out", out)
    done = subprocess.run(arguments, capture_output=True, text=True, preexec_fn=no_room, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["many.csv"]


def test_a_device_that_is_not_there_is_said(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "x.csv", sentences(20))
    assert "use cpu" in refused("train", data, "--out", tmp_path / "run", "--device", "cuda:7", *TINY)
    assert "use cpu" in refused("train", data, "--out", tmp_path / "run", "--device", "gpu", *TINY)


def test_columns_of_a_known_set_are_its_own() -> None:
    assert call("train", "rotten-tomatoes", "--text-column", "x", "--out", "never").code == 1
