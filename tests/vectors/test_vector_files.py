"""What users rely on when `routepool.vectors` reads a file: any form, the same rows; any fault, its file and line."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.tiny_vectors import GLOVE, ROWS, WORDS, cached_files, written

from routepool import vectors
from routepool.errors import InputError
from routepool.vectors import load_vectors


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ROUTEPOOL_CACHE", str(folder))
    return folder


def arrays(words: list[str], table: object) -> dict[str, np.ndarray]:
    return {"words_utf8": np.frombuffer("\n".join(words).encode(), dtype=np.uint8), "vectors": np.asarray(table)}


def in_every_form(folder: Path) -> list[str]:
    header = "5 2\n" + GLOVE
    with zipfile.ZipFile(folder / "two.zip", "w") as archive:
        archive.writestr("folder/a.txt", GLOVE)
        archive.writestr("other.txt", "the 1 1 1\n")
    with zipfile.ZipFile(folder / "one.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", GLOVE)
    lines = [line.rsplit(" ", 2) for line in GLOVE.splitlines()]
    table = arrays([line[0] for line in lines], np.array([line[1:] for line in lines], dtype=np.float32))
    save_file(table, folder / "a.safetensors")
    np.savez(folder / "a.npz", **table)  # type: ignore[arg-type]
    return [
        written(folder / "glove.txt", GLOVE),
        written(folder / "word2vec.txt", header),
        written(folder / "fasttext.vec", header.replace("\n", " \n")),
        written(folder / "windows.txt", "\ufeff" + GLOVE.replace("\n", "\r\n") + "\r\n"),
        written(folder / "tabs.txt", GLOVE.replace(" ", "\t").replace(".\t.\t.", ". . .")),
        written(folder / "glove.txt.gz", gzip.compress(header.encode())),
        f"{folder / 'two.zip'}:folder/a.txt",
        *(str(folder / name) for name in ("one.zip", "a.safetensors", "a.npz")),
    ]


def test_every_form_of_a_file_gives_the_same_rows(tmp_path: Path) -> None:
    for spec in in_every_form(tmp_path):
        for _ in ("parsed", "from the cache"):
            found = load_vectors(spec, WORDS)
            assert found.table.tolist() == ROWS, spec
            assert found.known.tolist() == [True, False, True, True], spec
            assert vectors.frequent(spec, 3) == ["the", "gut", "电影"], spec


def test_half_precision_arrays_are_read_as_single(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays(["x"], np.array([[0.5, 2]], dtype=np.float16)))  # type: ignore[arg-type]
    table = load_vectors(str(tmp_path / "a.npz"), ["x"]).table
    assert table.dtype == np.float32
    assert table.tolist() == [[0.5, 2]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"bad\.txt: is empty"),
        ("\n \n", r"bad\.txt: is empty"),
        ("label,text\n", r"bad\.txt, line 1: wanted a word and its numbers"),
        ("a 1 2\nb 3\n", r"bad\.txt, line 2: wanted a word and 2 numbers.*got 2 fields; cut short\?"),
        ("a 1 2\nb 3 4 5\n", r"bad\.txt, line 2: wanted 2 numbers, as in the first line, got more"),
        ("a 1 2\n\nb 3 four\n", r"bad\.txt, line 3: wanted a number, got b'four'"),
        ("a 1 2\nb nan 4\n", r"bad\.txt, line 2: a number is NaN or too large"),
        ("a 1 2\nb 3 -inf\n", r"bad\.txt, line 2: a number is NaN or too large"),
        ("a 1 2\nb 1e39 4\n", r"bad\.txt, line 2: a number is NaN or too large"),
        (b"a 1 2\n\xe9 3 4\n", r"bad\.txt, line 2: the word is not UTF-8"),
        ("a 1 2\nb 3 4\n".encode("utf-16"), r"bad\.txt, line 1"),
        ("3 2\na 1 2\nb 3 4\n", r"bad\.txt: its first line promises 3 rows, 2 came; cut short\?"),
        ("1 2\na 1 2\nb 3 4\n", r"bad\.txt: its first line promises 1 row, 2 came"),
        ("2 3\na 1 2\nb 3 4\n", r"bad\.txt, line 2: wanted a word and 3 numbers"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, cache: Path, content: str | bytes, message: str) -> None:
    spec = written(tmp_path / "bad.txt", content)
    with pytest.raises(InputError, match=message):
        load_vectors(spec, ["a"])
    assert not cached_files(cache)


def test_lines_are_counted_beyond_the_first_block(tmp_path: Path) -> None:
    lines = [f"word{number} {number} 1" for number in range(2500)]
    lines[2345] += "x"
    with pytest.raises(InputError, match="line 2346: wanted a number, got b'1x'"):
        load_vectors(written(tmp_path / "long.txt", "\n".join(lines)), ["a"])


def test_a_compressed_file_cut_short_is_an_error(tmp_path: Path) -> None:
    text = "".join(f"word{number} {number / 7} {number / 3}\n" for number in range(5000)).encode()
    whole = gzip.compress(text)
    for content in (whole[: len(whole) // 2], whole[:-4], b"plain 1 2\n", whole[:100] + b"\0" * 100 + whole[200:]):
        with pytest.raises(InputError, match=r"cut\.txt\.gz, after line \d+: damaged or cut short .*download it again"):
            load_vectors(written(tmp_path / "cut.txt.gz", content), ["a"])


def test_a_zip_must_say_which_member(tmp_path: Path) -> None:
    in_every_form(tmp_path)
    with pytest.raises(
        InputError, match=r"name one member, as in .*two\.zip:MEMBER; it holds folder/a\.txt, other\.txt"
    ):
        load_vectors(str(tmp_path / "two.zip"), ["a"])
    with pytest.raises(InputError, match=r"no member 'b\.txt'"):
        load_vectors(f"{tmp_path / 'two.zip'}:b.txt", ["a"])
    with pytest.raises(InputError, match=r"no\.zip, after line 0: damaged"):
        load_vectors(written(tmp_path / "no.zip", GLOVE), ["a"])


def test_the_first_row_of_a_repeated_word_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = written(tmp_path / "twice.txt", "a 1 2\nb 3 4\na 5 6\n")
    assert load_vectors(spec, ["a", "b"]).table.tolist() == [[1, 2], [3, 4]]
    assert "1 repeated word; the first row" in caplog.text


def test_a_last_line_without_newline_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_vectors(written(tmp_path / "open.txt", "a 1 2\nb 3 4"), ["a"])
    assert "line 2: no newline at its end" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"vectors": np.ones((1, 2))}, "words_utf8"),
        (arrays(["a", "b"], np.ones((3, 2))), r"each of its 2 words, got shape \(3, 2\)"),
        (arrays(["a"], np.ones(2)), r"got shape \(2,\)"),
        (arrays(["a", "b"], np.ones((2, 2), dtype=int)), "table of floats"),
        (arrays(["a", "b"], [[1, 2], [np.nan, 1]]), "row 2: the vector of 'b' holds NaN"),
        ({"vectors": np.ones((1, 2)), "words_utf8": np.array([255], dtype=np.uint8)}, "wanted the arrays"),
        ({"vectors": np.array([{}]), "words_utf8": np.zeros(1, dtype=np.uint8)}, "wanted the arrays"),
    ],
)
def test_faulty_arrays_are_named(tmp_path: Path, content: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "bad.npz", **content)  # type: ignore[arg-type]
    paths = [tmp_path / "bad.npz"]
    if content["vectors"].dtype != object:
        save_file(content, tmp_path / "bad.safetensors")
        paths.append(tmp_path / "bad.safetensors")
    for path in paths:
        with pytest.raises(InputError, match=rf"{path.name}(, row|: wanted).*") as caught:
            load_vectors(str(path), ["a"])
        assert caught.match(message)


def test_array_files_cut_short_are_errors(tmp_path: Path) -> None:
    in_every_form(tmp_path)
    for name in ("a.npz", "a.safetensors"):
        content = (tmp_path / name).read_bytes()
        for size in (0, 50, len(content) - 10):
            with pytest.raises(InputError, match="wanted the arrays vectors and words_utf8"):
                load_vectors(written(tmp_path / name, content[:size]), ["a"])


def test_only_the_rows_asked_for_are_kept(tmp_path: Path) -> None:
    spec = written(tmp_path / "a.txt", "".join(f"word{number} {number} 1\n" for number in range(3000)))
    table = load_vectors(spec, ["word2999", "word0"]).table
    assert table.tolist() == [[2999, 1], [0, 1]]
    assert table.base is None or table.base.size == table.size
