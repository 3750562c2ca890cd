"""Reading data: every format, any label type, columns found and said, in bounded memory."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routepool.datasets import Example, load_dataset, natural_order, read
from routepool.errors import MissingPackageError

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
rows_of_data = st.lists(st.tuples(texts, st.sampled_from(["good", "bad", "so, so"])), min_size=1, max_size=8)
ROWS = [("A bright day.", "good"), ("Rain, again\nand again.", "bad"), ('She said "no" 🙂', "bad")]


def as_csv(rows: list[tuple[str, str]], *, header: bool = True, delimiter: str = ",") -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter).writerows([("text", "label"), *rows] if header else rows)
    return file.getvalue().encode()


def pairs(content: bytes, **options: Any) -> list[tuple[str, tuple[str, ...] | None]]:
    return [(example.text, example.labels) for example in read(io.BytesIO(content), **options)]


def expected(rows: list[tuple[str, str]]) -> list[tuple[str, tuple[str, ...]]]:
    return [(text, (label,)) for text, label in rows]


@given(rows_of_data)
def test_any_text_survives_a_csv_file(rows: list[tuple[str, str]]) -> None:
    assert pairs(as_csv(rows), format="csv") == expected(rows)


@given(rows_of_data, st.booleans())
def test_any_text_survives_a_jsonl_file(rows: list[tuple[str, str]], ascii_only: bool) -> None:
    content = "\n".join(json.dumps({"text": t, "label": c}, ensure_ascii=ascii_only) for t, c in rows).encode()
    assert pairs(content, format="jsonl") == expected(rows)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_reads_as_the_plain_one_whatever_its_name(tmp_path: Path, compress: Any) -> None:
    for name in ("data.csv", "data.csv.gz"):
        (tmp_path / name).write_bytes(compress(as_csv(ROWS)))
        data = load_dataset(tmp_path / name)
        assert [(e.text, e.labels) for e in data.examples] == expected(ROWS)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_newlines_of_every_system_and_byte_order_marks_are_read(newline: str, mark: str) -> None:
    content = newline.join(["text,label", "héllo,1", "", "wörld,0", ""]).encode(mark)
    assert pairs(content, format="csv") == [("héllo", ("1",)), ("wörld", ("0",))]


def test_rows_are_the_lines_on_which_records_start() -> None:
    assert [example.row for example in read(io.BytesIO(as_csv(ROWS)), format="csv")] == [2, 3, 5]


def test_an_encoding_that_is_named_is_used() -> None:
    assert pairs("text,label\nhéllo,1".encode("latin-1"), format="csv", encoding="latin-1") == [("héllo", ("1",))]


def test_a_header_with_semicolons_is_enough_to_know_the_delimiter() -> None:
    assert pairs(as_csv(ROWS, delimiter=";"), format="csv") == expected(ROWS)


def test_a_tsv_keeps_its_quotes_and_a_quoted_one_is_read_as_csv() -> None:
    assert pairs(b'1\t"Well" she said\n0\tno "way\n', format="tsv") == [
        ('"Well" she said', ("1",)),
        ('no "way', ("0",)),
    ]
    assert pairs(as_csv(ROWS, delimiter="\t"), format="csv") == expected(ROWS)


def test_fasttext_files_are_known_by_their_first_line(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("__label__good a fine day\n__label__bad rain\n")
    assert [(e.text, e.labels) for e in load_dataset(tmp_path / "train.txt").examples] == [
        ("a fine day", ("good",)),
        ("rain", ("bad",)),
    ]


@pytest.mark.parametrize("space", [" ", "\t", "  ", " \t "])
def test_a_fasttext_label_ends_at_any_space_and_costs_no_word(space: str) -> None:
    content = f"__label__good{space}a fine\tday\n__label__bad{space}__label__wet{space}rain\n__label__dull\n"
    assert pairs(content.encode(), format="fasttext", multi_label=True, allow_empty=True) == [
        ("a fine\tday", ("good",)),
        ("rain", ("bad", "wet")),
        ("", ("dull",)),
    ]


def test_a_fasttext_label_may_hold_a_space_that_is_none_to_fasttext() -> None:
    assert pairs("__label__très\u00a0bien oui\n".encode(), format="fasttext") == [("oui", ("très\u00a0bien",))]


def test_standard_input_is_one_text_a_line_and_blank_lines_count(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"one\n\nthree\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    reader = read("-", labels=False)
    assert list(reader) == [Example(1, "one"), Example(2, ""), Example(3, "three")]
    assert not stream.closed


def test_standard_input_can_be_loaded_with_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(as_csv(ROWS))))
    data = load_dataset("-", format="csv")
    assert data.source == "standard input"
    assert len(data.examples) == len(ROWS)
    assert len(data.sha256) == 64


def test_parquet_is_read_with_its_extra_and_streams(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"id": [1, 2, 3], "text": [t for t, _ in ROWS], "label": [True, False, True]})
    parquet.write_table(table, tmp_path / "data.parquet")
    data = load_dataset(tmp_path / "data.parquet")
    assert [(e.row, e.labels) for e in data.examples] == [(1, ("true",)), (2, ("false",)), (3, ("true",))]
    assert [e.text for e in data.examples] == [t for t, _ in ROWS]


def test_parquet_without_its_package_gives_the_pip_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr("routepool.datasets.records.FORMATS.entries", {})
    monkeypatch.delitem(sys.modules, "routepool.extras.parquet", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r'pip install "routepool\[parquet\]"'):
        read(tmp_path / "data.parquet")


@pytest.mark.parametrize(
    ("content", "text", "label", "said"),
    [
        (b"id,review,stars\n1,fine,5\n", "review", "stars", "by their names"),
        (b"Sentiment;Review\n1;fine\n", "Review", "Sentiment", "by their names"),
        (b"verdict,words_of_it\nyes,a long day at sea\nno,a short walk home\n", "words_of_it", "verdict", "guessed"),
        (b"yes,a long day at sea\nno,a short walk\nyes,more of this\n", "2", "1", "no header"),
        (b"4,a stirring tale\n1,a dull one\n", "2", "1", "no header"),
        (b"2,short\n3,a\n", "2", "1", "no header"),
        (b",text,label\n0,fine,5\n", "text", "label", "row 1 is the header"),
    ],
)
def test_columns_are_guessed_and_the_reason_is_said(content: bytes, text: str, label: str, said: str) -> None:
    columns = read(io.BytesIO(content), format="csv").columns
    assert (columns.text, columns.label) == (text, label)
    assert said in columns.why


def test_columns_asked_for_win_over_a_guess() -> None:
    content = b"text,summary,label,verdict\nlong text,short,1,no\n"
    reader = read(io.BytesIO(content), format="csv", text_column="summary", label_column="verdict")
    assert "as asked" in reader.columns.why
    assert [(e.text, e.labels) for e in reader] == [("short", ("no",))]


def test_a_header_can_be_denied() -> None:
    assert len(pairs(b"label,text\n1,fine", format="csv", header=False)) == 2


def test_the_first_of_a_column_of_texts_is_not_lost_as_a_header() -> None:
    assert pairs(b"good film\nbad film\n", format="csv", labels=False) == [("good film", None), ("bad film", None)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    writer = threading.Thread(target=(tmp_path / "pipe.csv").write_bytes, args=(as_csv(ROWS),))
    writer.start()
    assert len(load_dataset(tmp_path / "pipe.csv", format="csv").examples) == len(ROWS)
    writer.join()


def test_prediction_needs_no_label_and_keeps_the_record() -> None:
    (example,) = read(io.BytesIO(b"id,text\n7,\n"), format="csv", labels=False)
    assert (example.text, example.labels, example.fields) == ("", None, {"id": "7", "text": ""})


@pytest.mark.parametrize(("value", "label"), [("x", "x"), (3, "3"), (2.5, "2.5"), (True, "true"), (" x ", "x")])
def test_labels_of_any_type_are_compared_as_strings(value: Any, label: str) -> None:
    assert pairs(json.dumps({"text": "t", "label": value}).encode(), format="jsonl") == [("t", (label,))]


def test_labels_are_in_natural_order() -> None:
    assert natural_order(["10", "9", "-1", "2.5"]) == ("-1", "2.5", "9", "10")
    assert natural_order(["b", "a10", "a9"]) == ("a9", "a10", "b")


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (b"text,label\none,a|b\ntwo,\nthree,b | b", "csv"),
        (b'{"text":"one","label":["a","b"]}\n{"text":"two","label":[]}\n{"text":"three","label":"b"}', "jsonl"),
        (b"__label__a __label__b one\ntwo\n__label__b three", "fasttext"),
    ],
)
def test_label_sets_come_from_every_format_and_may_be_empty(content: bytes, format: str) -> None:
    assert pairs(content, format=format, multi_label=True) == [("one", ("a", "b")), ("two", ()), ("three", ("b",))]


def test_a_text_of_a_million_words_is_read(tmp_path: Path) -> None:
    text = "word " * 1_000_000
    (tmp_path / "long.csv").write_text(f'text,label\n"{text}",1\nshort,0\n')
    assert [len(e.text.split()) for e in load_dataset(tmp_path / "long.csv").examples] == [1_000_000, 1]


class EndlessRows(io.RawIOBase):
    """A CSV made as it is read, so that only the reader's own memory is measured."""

    def __init__(self, rows: int) -> None:
        self._parts: Iterator[bytes] = iter([b"text,label\n", *[b"some words of a review,1\n"] * rows])

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = next(self._parts, b"")
        buffer[: len(part)] = part
        return len(part)


def peak_memory(rows: int) -> int:
    stream = EndlessRows(rows)
    tracemalloc.start()
    assert sum(1 for _ in read(io.BufferedReader(stream), format="csv")) == rows
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_reading_needs_no_more_memory_for_more_rows() -> None:
    assert peak_memory(20_000) < peak_memory(2_000) + 100_000


def test_heavy_packages_are_not_imported_to_read_data() -> None:
    heavy = {"torch", "accelerate", "sklearn", "pandas", "pyarrow", "numpy", "datasets"}
    code = f"import sys, routepool.datasets; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
