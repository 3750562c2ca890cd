"""However a file is made, it is read or refused in time and memory that fit its size."""

import gzip
import json
import lzma
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from routepool.datasets import Example, load_dataset, natural_order, read, split
from routepool.errors import InputError, unknown
from routepool.vectors.word_files import FileSource

PROGRAMME = Path(__file__).parents[1] / "programmes" / "bad_files.py"
SECONDS, MEGABYTES = 1.0, 200.0
SLACK = 3  # a machine at work on other things, with a processor half as fast
ROWS = b"text,label\na fine day,1\nrain again,0\n"
MANY = 300  # megabytes that must never come out of a file


def packed(path: Path, opener: Any, start: bytes, piece: bytes) -> None:
    """A file that swells to `MANY` megabytes."""
    with opener(path, "wb") as file:
        file.write(start)
        for _ in range(MANY):
            file.write(piece * (1_000_000 // len(piece)))


def bad_data(folder: Path) -> dict[str, str]:
    """Bad files by name, and what must be said of each."""
    packed(folder / "line.csv.gz", gzip.open, ROWS, b"0123456789")
    packed(folder / "zeros.txt.gz", gzip.open, b"fine\n", b"0")
    packed(folder / "blank.csv.gz", gzip.open, ROWS, b"\n")
    packed(folder / "rows.jsonl.xz", lzma.open, b"", b'{"text": "a", "label": 1}\n')
    keys = ", ".join(f'"k{number}": 0' for number in range(85_000))
    (folder / "wide.jsonl").write_text(f'{{"text": "a", "label": 1, {keys}, "k84999": 1}}\n')
    (folder / "field.csv").write_bytes(ROWS + b'"' + (b"x" * 999_999 + b"\n") * 100 + b'",1\n')
    (folder / "long.tsv").write_bytes(b"text\tlabel\n" + b"x" * 30_000_000)
    (folder / "nested.jsonl").write_bytes(b'{"text": "a", "label": [' + b"{}," * 1_700_000 + b"0]}")
    (folder / "quotes.csv").write_bytes(ROWS + b'x","\n' * 220_000)
    (folder / "header.csv").write_bytes(b"text,label," + b",".join(b"c%d" % n for n in range(150_000)) + b",c7\n1")
    (folder / "commas.csv").write_bytes(b"," * 5_000_000 + b"\n")
    (folder / "digits.csv").write_bytes(ROWS + b"a,x" + b"9" * 5000 + b"\nb,\n")
    (folder / "labels.ft").write_bytes(b"__label__a " * 300_000 + b"__label__ x\n")
    return {
        "line.csv.gz": "row 4: longer than 6,000,000 characters",
        "zeros.txt.gz": "row 2: it swells more than 600 times",
        "blank.csv.gz": "swells more than 600 times",
        "rows.jsonl.xz": "swells more than 600 times",
        "wide.jsonl": "row 1: key 'k84999' comes twice",
        "field.csv": "row 4: the quote opened in this row is not closed",
        "long.tsv": "row 2: longer than 6,000,000 characters",
        "nested.jsonl": "row 1: {} as a label",
        "quotes.csv": "open a quote that is not closed",
        "header.csv": "row 1: 150,003 columns",
        "commas.csv": "row 1: 5,000,001 columns",
        "digits.csv": "row 5: the label in 'label' is missing",
        "labels.ft": "row 1: __label__ without a name",
    } | (bad_parquet(folder) if find_spec("pyarrow") else {})


def bad_parquet(folder: Path) -> dict[str, str]:
    import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from pyarrow import parquet

    def write(name: str, texts: Any, **options: Any) -> None:
        columns = {"text": pyarrow.array(texts), "label": pyarrow.array(["1", "0"])}
        parquet.write_table(pyarrow.table(columns | options.pop("more", {})), folder / name, **options)

    raw = pyarrow.array([b"fine", b"caf\xe9"], pyarrow.binary())
    write("latin.parquet", pyarrow.Array.from_buffers(pyarrow.string(), 2, raw.buffers()))
    times = pyarrow.array([0, 2**62], pyarrow.timestamp("us"))
    write("times.parquet", ["a", "b"], more={"time": times, "length": times.cast(pyarrow.int64())})
    write("long.parquet", ["a", "b" * 7_000_000])
    write("zeros.parquet", ["a", "0" * 100_000_000], compression="zstd")
    twice = pyarrow.Table.from_arrays([pyarrow.array(["a", "b"])] * 3, names=["text", "text", "label"])
    parquet.write_table(twice, folder / "twice.parquet")
    return {
        "latin.parquet": "row 2: column 'text' holds a string that cannot be read",
        "times.parquet": "row 2: column 'time' holds a timestamp[us] that cannot be read",
        "long.parquet": "row 2: longer than 6,000,000 characters",
        "zeros.parquet": "swells more than 600 times",
        "twice.parquet": "row 1: column 'text' comes twice",
    }


def bad_vectors(folder: Path) -> dict[str, str]:
    packed(folder / "vectors.txt.gz", gzip.open, b"good 1 2\n", b"0")
    with zipfile.ZipFile(folder / "vectors.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        packed(folder, lambda *_: archive.open("a.txt", "w"), b"good 1 2\n", b"0 1 2\n")
    np.savez_compressed(folder / "vectors.npz", vectors=np.zeros((10**6, 75), np.float32), words_utf8=np.zeros(9, "u1"))
    (folder / "vectors-digits.txt").write_text("9" * 5000 + " " + "9" * 5000 + "\n")
    (folder / "vectors-line.txt").write_bytes(b"good " + b"1 " * 50_000_000)
    (folder / "vectors-wide.txt").write_text("9 99999999999\ngood 1\n")
    return {
        "vectors.txt.gz": "swells more than 600 times",
        "vectors.zip": "swells more than 600 times",
        "vectors.npz": "swells more than 600 times",
        "vectors-digits.txt": "line 1: a number is NaN or too large",
        "vectors-line.txt": "line 1: longer than 1,048,576 bytes",
        "vectors-wide.txt": "line 1: wanted a word and its numbers, 65,536 at most",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="needs the resources of a process")
def test_bad_files_are_refused_in_a_second_and_200_megabytes(tmp_path: Path) -> None:
    wanted = bad_data(tmp_path) | bad_vectors(tmp_path)
    done = subprocess.run([sys.executable, PROGRAMME, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = {one["name"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert told.keys() == wanted.keys()
    for name, message in wanted.items():
        assert message in told[name]["error"]
        assert told[name]["error"].startswith(str(tmp_path / name))
        assert len(told[name]["error"]) < 1000 + len(str(tmp_path))
        assert "\n" not in told[name]["error"]
    assert {name: one for name, one in told.items() if one["seconds"] > SLACK * SECONDS} == {}
    assert max(one["megabytes"] for one in told.values()) < MEGABYTES


def test_the_longest_row_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(ROWS + b'"two\nlines",1\n' + b"x" * 40 + b",0\n")
    assert len(load_dataset(path, longest_row=43).examples) == 4
    with pytest.raises(InputError, match=r"row 6: longer than 42 characters.*--longest-row N \(longest_row=N"):
        load_dataset(path, longest_row=42)
    with pytest.raises(InputError, match=r"longest_row must be a number of characters, 1 or more, got 0"):
        load_dataset(path, longest_row=0)


def test_what_is_packed_well_is_read(tmp_path: Path) -> None:
    row = b"the same ten words once more,1\n"
    with gzip.open(tmp_path / "same.csv.gz", "wb") as file:
        file.write(ROWS)
        for _ in range(100):
            file.write(row * 10_000)  # 31 MB
    assert sum(1 for _ in read(tmp_path / "same.csv.gz")) == 1_000_002


def test_a_quote_that_is_never_closed_costs_its_row_in_a_long_file_too(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(ROWS + b'"open,1\n' + b"some words of a review,1\n" * 300_000 + b'"open too,1\n' + b"fine,0\n" * 9)
    data = load_dataset(path, on_error="skip")
    assert [skipped.row for skipped in data.skipped] == [4, 300_005]
    assert len(data.examples) == 300_011


def rows(count: int, labels: int) -> Iterator[Example]:
    for number in range(count):
        yield Example(number, f"text {number}", (f"label {number % labels}",))


def test_ten_thousand_classes_are_split_each_on_both_sides() -> None:
    examples = list(rows(20_000, 10_000))
    parts = split(examples)  # the square of the classes took minutes
    assert len({examples[place].labels for place in parts.held}) == len(parts.held) == 10_000


def test_digits_without_end_in_a_label_are_a_number_like_others() -> None:
    names = ["n" + "9" * 5000, "n10", "n9", "n010"]
    assert natural_order(names) == ("n9", "n010", "n10", "n" + "9" * 5000)


def test_an_error_names_a_few_of_many_columns(tmp_path: Path) -> None:
    message = str(unknown("column", "tex" * 10_000, [f"c{number}" * 1000 for number in range(100_000)]))
    assert len(message) < 20_000
    assert message.endswith("and 99,900 others")


def test_times_to_the_nanosecond_are_text(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    times = pyarrow.array([1], pyarrow.timestamp("ns"))
    parquet.write_table(pyarrow.table({"text": ["a"], "label": ["1"], "time": times}), tmp_path / "data.parquet")
    (example,) = read(tmp_path / "data.parquet")
    assert example.fields["time"] == "1970-01-01 00:00:00.000000001"


def test_a_parquet_row_that_cannot_be_read_is_skipped(tmp_path: Path) -> None:
    if not find_spec("pyarrow"):
        pytest.skip("needs the extra parquet")
    bad_parquet(tmp_path)
    for name in ("latin", "times", "long"):
        reader = read(tmp_path / f"{name}.parquet", on_error="skip")
        assert [example.text for example in islice(reader, 9)] in (["fine"], ["a"])
        assert [skipped.row for skipped in reader.skipped] == [2]


def test_a_vector_file_as_large_as_honest_ones_is_read(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"w{number} {'0.125 ' * 5000}\n" for number in range(300)))
    table, known = FileSource(str(path), cache=tmp_path).lookup(["w0", "w299"])
    assert (table.shape, known.tolist()) == ((2, 5000), [True, True])
