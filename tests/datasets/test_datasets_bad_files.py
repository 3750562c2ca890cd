"""Each bad file gives one error that names the file, the row and the way out, or is read as documented."""

import contextlib
import gzip
import io
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routepool.datasets import Skipped, check_trainable, load_dataset, read
from routepool.errors import InputError

GOOD = b"text,label\na fine day,1\n"

# name of the file, its bytes, options, the row named, what the message says
BAD: list[tuple[str, bytes, dict[str, Any], int, str]] = [
    ("empty.csv", b"", {}, 1, "the file is empty"),
    ("empty.tsv", b"", {}, 1, "the file is empty"),
    ("empty.jsonl", b"\n\n", {}, 1, "the file is empty"),
    ("header.csv", b"text,label\n", {}, 1, "has a header and no rows"),
    ("column.csv", GOOD, {"text_column": "txt"}, 1, "unknown column 'txt', did you mean 'text'? Known: text, label"),
    ("columns.csv", b"text,a,b\nx,1,2", {}, 1, "cannot tell which column is the label; name it: a, b"),
    ("texts.csv", b"a,b,c\nx,y,z", {}, 1, "cannot tell which column is the text; name it: a, b, c"),
    ("ragged.csv", GOOD + b"one, two,0\n", {}, 3, "3 fields where 2 are wanted (text, label)"),
    ("short.tsv", b"1\tone\n0\n", {}, 2, "1 fields where 2 are wanted"),
    ("open.csv", GOOD + b'"never closed,1\nb,0\nc,1\n', {}, 3, "the quote opened in this row is not closed"),
    ("reopened.csv", GOOD + b'"never closed,1\n"b",0\n', {}, 3, "the quote opened in this row is not closed"),
    ("after.csv", GOOD + b'"so" he said,1\n', {}, 3, "goes on after its closing quote"),
    ("utf16.csv", GOOD.decode().encode("utf-16-le"), {}, 1, "set the encoding to utf-16-le"),
    ("utf16.jsonl", '{"text": "a"}'.encode("utf-16-be"), {}, 1, "set the encoding to utf-16-be"),
    ("latin.csv", GOOD + b"caf\xe9 noir,0\n", {}, 3, "byte 0xe9 at byte 4 of the row is not utf-8"),
    ("latin.jsonl", b'{"text": "\xe9", "label": 1}', {}, 1, "set the encoding to latin-1 or cp1252"),
    ("latin_header.csv", b"caf\xe9,label\nx,1", {}, 1, "byte 0xe9"),
    ("nul.csv", GOOD + b"a\0b,0\n", {}, 3, "NUL byte at character 2"),
    ("nul.txt", b"__label__a fine\n__label__b no\0t\n", {}, 2, "NUL byte"),
    ("escaped.jsonl", b'{"text": "a\\u0000", "label": 1}', {}, 1, "'text' holds a NUL character"),
    ("half.jsonl", b'{"text": "a\\ud800", "label": 1}', {}, 1, "lone surrogate"),
    ("label.csv", GOOD + b"no label,\n", {}, 3, "the label in 'label' is missing"),
    ("label.jsonl", b'{"text": "a", "label": null}', {}, 1, "the label in 'label' is missing"),
    ("label.txt", b"__label__a fine\nnone\n", {}, 2, "the label in 'label' is missing"),
    ("unnamed.txt", b"__label__a fine\n__label__ none\n", {}, 2, "__label__ without a name"),
    ("several.txt", b"__label__a __label__b fine\n", {}, 1, "2 labels in 'label' where one is wanted"),
    ("object.jsonl", b'{"text": "a", "label": {"b": 1}}', {}, 1, "where a string, a number, true or false is wanted"),
    ("blank.csv", GOOD + b" ,1\n", {"on_error": "stop"}, 3, "the text in 'text' is empty; remove the row"),
    ("joined.csv", GOOD + GOOD, {"on_error": "stop"}, 3, "the header comes again; remove the row"),
    ("number.jsonl", b'{"text": 5, "label": 1}', {}, 1, "'text' is 5 where a text in quotes is wanted"),
    ("broken.jsonl", b'{"text": "a", "label": 1}\n{"text": "b", "la\n', {}, 2, "broken JSON"),
    ("deep.jsonl", b'{"text": "a", "label": 1}\n{"a":' + b"[" * 100_000, {}, 2, "broken JSON"),
    ("key.jsonl", b'{"text": "a", "label": 1, "text": "b"}', {}, 1, "key 'text' comes twice"),
    ("lost.jsonl", b'{"text": "a", "label": 1}\n{"texts": "b", "label": 1}', {}, 2, "did you mean 'texts'?"),
    ("list.json", b'[{"text": "a", "label": 1}]', {}, 1, "convert the file: jq -c '.[]'"),
    ("string.jsonl", b'"a"', {}, 1, "a JSON str where an object"),
    ("twice.csv", b"text,text,label\na,b,1", {}, 1, "column 'text' comes twice in the header"),
    ("cut.csv.gz", gzip.compress(GOOD * 9)[:-9], {"header": True}, 1, "the file is cut short or damaged"),
    ("fields.ss", b"user\t\titem\t\t5\t\tfine\nuser\titem\t5\tfine\n", {}, 2, "1 fields where user, product"),
    ("cut.parquet", b"PAR1 and no more", {}, 1, "not a whole Parquet file"),
]


@pytest.mark.parametrize("case", BAD, ids=[case[0] for case in BAD])
def test_a_bad_file_is_named_with_its_row_and_what_is_wrong(tmp_path: Path, case: Any) -> None:
    name, content, options, row, message = case
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="needs the extra parquet")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_dataset(path, **options)
    assert str(caught.value).startswith(f"{path}, row {row}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def write(folder: Path, content: bytes, name: str = "data.csv") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def test_the_record_is_numbered_too_where_it_is_not_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, b'text,label\n"two\nlines",1\nno label,\n')
    with pytest.raises(InputError, match=r"row 4 \(record 2\): the label"):
        load_dataset(path)


def test_bad_rows_are_skipped_counted_and_listed(tmp_path: Path) -> None:
    rows = b"text,label\ngood,1\nragged,2,3\nno label,\ncaf\xe9,0\n\0,1\nlast,0\n"
    data = load_dataset(write(tmp_path, rows), on_error="skip")
    assert [example.text for example in data.examples] == ["good", "last"]
    assert sum(data.skipped_kinds.values()) == 4
    assert [skipped.row for skipped in data.skipped] == [3, 4, 5, 6]
    assert isinstance(data.skipped[0], Skipped)
    assert "3 fields" in data.skipped[0].reason


def test_empty_texts_are_left_out_counted_and_listed_unless_every_row_is_wanted(tmp_path: Path) -> None:
    path = write(tmp_path, b"text,label\ngood,1\n,0\n \t,1\nlast,0\n")
    data = load_dataset(path)
    assert [example.text for example in data.examples] == ["good", "last"]
    assert data.skipped_kinds == {"empty": 2}
    assert [skipped.row for skipped in data.skipped] == [3, 4]
    with pytest.raises(InputError, match="row 3: the text in 'text' is empty"):
        load_dataset(path, on_error="stop")
    with pytest.raises(InputError, match="row 3: the text in 'text' is empty"):
        load_dataset(path, on_error="raise")  # the older name of stop, which is on record in runs that were stopped


@pytest.mark.parametrize(
    "joined",
    [
        pytest.param(GOOD + b"rain,0\n" + GOOD + b"snow,0\n", id="as it was"),
        pytest.param(GOOD + b"rain,0\n\xef\xbb\xbf" + GOOD + b"snow,0\n", id="with a byte order mark"),
        pytest.param(GOOD + b'rain,0\n\xef\xbb\xbf"text","label"\na fine day,1\nsnow,0\n', id="mark and quotes"),
    ],
)
def test_a_header_that_comes_again_is_left_out_and_is_no_class(joined: bytes, tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path, joined))
    assert (data.labels, len(data.examples)) == (("0", "1"), 4)
    assert data.skipped_kinds == {"repeated-header": 1}
    assert [skipped.row for skipped in data.skipped] == [4]


def test_a_guessed_header_is_still_one_where_it_comes_again(tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path, b"phrase,verdict\na fine long day,1\nrain again,0\nphrase,verdict\nsnow,0\n"))
    assert (data.columns.header, data.labels, len(data.examples)) == (True, ("0", "1"), 3)
    rows = b"good,yes\nbad weather,no\ngood,yes\nfine,yes\n"  # a row that comes again is no header for that
    assert len(load_dataset(write(tmp_path, rows), text_column="1", label_column="2").examples) == 4


def test_a_column_of_texts_may_hold_the_name_of_the_column(tmp_path: Path) -> None:
    reader = read(write(tmp_path, b"text\nfine\ntext\n"), labels=False)
    assert [example.text for example in reader] == ["fine", "text"]


def test_an_unclosed_quote_costs_one_row_not_the_rest_of_the_file(tmp_path: Path) -> None:
    rows = b'text,label\n"open,1\ntwo,0\n"three ""3""",1\nfour,0\n'
    data = load_dataset(write(tmp_path, rows), on_error="skip")
    assert [example.text for example in data.examples] == ["two", 'three "3"', "four"]
    assert [skipped.row for skipped in data.skipped] == [2]


def test_a_file_of_bad_rows_only_is_an_error_even_when_skipping(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="all 2 rows were skipped; the first, row 2: the label"):
        load_dataset(write(tmp_path, b"text,label\na,\nb,\n"), on_error="skip")
    with pytest.raises(InputError, match="all 2 rows were skipped; the first, row 2: the text in 'text' is empty"):
        load_dataset(write(tmp_path, b"text,label\n,1\n,0\n"))


def test_a_truncated_file_is_an_error_even_when_skipping(tmp_path: Path) -> None:
    content = gzip.compress(b"text,label\n" + b"".join(b"text %d,1\n" % i for i in range(9000)))
    reader = read(write(tmp_path, content[: len(content) // 2], "data.csv.gz"), on_error="skip")
    with pytest.raises(InputError, match=r"row \d{3,}: cannot be read from here on"):
        list(reader)


def test_a_missing_file_suggests_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "reviews.csv")
    with pytest.raises(InputError, match=r"review\.csv: no such file; near names in its folder: reviews\.csv"):
        load_dataset(tmp_path / "review.csv")
    with pytest.raises(InputError, match="nor is there a folder"):
        load_dataset(tmp_path / "nowhere" / "reviews.csv")


def test_a_folder_is_not_a_file_and_its_files_are_listed(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "reviews.csv")
    with pytest.raises(InputError, match=r"is a folder; name one file in it \(it holds reviews\.csv\)"):
        read(tmp_path)
    with pytest.raises(InputError, match="is a folder"):
        load_dataset(tmp_path)


def test_a_file_without_permission_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, GOOD)
    # The superuser, who may run this, is never refused.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match=r"data\.csv: no permission to read it"):
        load_dataset(path)


def test_a_spreadsheet_or_an_unknown_suffix_gets_advice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="save the sheet as CSV"):
        load_dataset(write(tmp_path, b"PK\x03\x04....", "data.csv"))
    with pytest.raises(InputError, match=r"no data format goes with '\.xlsx'; name one of csv, fasttext, jsonl"):
        load_dataset(write(tmp_path, b"PK\x03\x04....", "data.xlsx"))


def test_a_mistyped_option_encoding_or_format_suggests_the_right_one(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    with pytest.raises(InputError, match="unknown option 'label_colum', did you mean 'label_column'"):
        load_dataset(path, label_colum="label")  # type: ignore[call-arg]
    with pytest.raises(InputError, match="unknown encoding 'latin-99'"):
        load_dataset(path, encoding="latin-99")
    with pytest.raises(InputError, match="unknown data format 'jsonk', did you mean 'jsonl'"):
        load_dataset(path, format="jsonk")
    with pytest.raises(InputError, match=r"unknown on_error 'ignore'\. Known: stop, skip"):
        load_dataset(path, on_error="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "fasttext", "lines", "tang"])
@given(content=st.binary() | st.text('",;\t\n\r ab1{}[]:_é').map(str.encode), packed=st.booleans(), skip=st.booleans())
def test_whatever_the_bytes_are_they_give_examples_or_our_error(
    format: str, content: bytes, packed: bool, skip: bool
) -> None:
    stream = io.BytesIO(gzip.compress(content)[:-1] if packed else content)
    with contextlib.suppress(InputError):
        list(read(stream, format=format, labels=format != "lines", on_error="skip" if skip else "stop"))


def test_an_empty_text_is_legal_where_it_is_allowed(tmp_path: Path) -> None:
    path = write(tmp_path, b"text,label\n,1\nb,0\n")
    assert [example.text for example in read(path, labels=False)] == ["", "b"]
    assert [example.text for example in read(path, allow_empty=True)] == ["", "b"]


def test_one_class_is_refused_for_training_only(tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path, GOOD))
    with pytest.raises(InputError, match=r"data\.csv, row 2: every example is labelled 1 in 'label'; at least two"):
        check_trainable(data)


def test_a_dev_label_that_training_lacks_is_named_with_its_row(tmp_path: Path) -> None:
    train = load_dataset(write(tmp_path, b"text,label\na,1\nb,0\n"))
    dev = load_dataset(write(tmp_path, b"text,label\nc,1\nd,2\n", "dev.csv"))
    check_trainable(train, train)
    with pytest.raises(InputError, match=r"dev\.csv, row 3: label '2' does not occur in .*data\.csv \(0, 1\)"):
        check_trainable(train, dev)
