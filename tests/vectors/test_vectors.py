"""What users of `routepool.vectors` rely on: the right rows, coverage, a cache that never harms."""

import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from support.tiny_vectors import GLOVE, ROWS, WORDS, cached_files, flipped, written

from routepool import vectors
from routepool.errors import InputError, MissingPackageError
from routepool.registry import Extra, Registry
from routepool.text import PAD, SPECIAL_WORDS, UNKNOWN, Tokenizer
from routepool.vectors import load_vectors, word_files

HAS_WORDLLAMA = importlib.util.find_spec("wordllama") is not None
needs_wordllama = pytest.mark.skipif(not HAS_WORDLLAMA, reason='needs pip install "routepool[vectors]"')


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ROUTEPOOL_CACHE", str(folder))
    return folder


def test_a_file_that_is_not_there_is_named_with_the_known_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.txt: no such file; wanted a file of vectors or one of: .*wordllama"):
        load_vectors(str(tmp_path / "none.txt"), ["a"])
    with pytest.raises(InputError, match="is a folder"):
        load_vectors(str(tmp_path), ["a"])
    with pytest.raises(InputError, match="joined by commas, got 'a,'"):
        load_vectors("a,", ["a"])


def test_a_file_is_parsed_once_wherever_it_lies(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_vectors(written(tmp_path / "a.txt", GLOVE), WORDS)
    assert [path.suffix for path in cached_files(cache)] == [".safetensors"]
    assert load_file(cached_files(cache)[0])["vectors"].shape == (5, 2)
    monkeypatch.setattr(word_files, "parse", None)
    assert load_vectors(written(tmp_path / "moved.txt", GLOVE), WORDS).table.tolist() == ROWS


def test_a_changed_file_is_parsed_again_even_with_its_old_time(tmp_path: Path) -> None:
    spec = written(tmp_path / "a.txt", "a 1 2\n")
    load_vectors(spec, ["a"])
    before = (tmp_path / "a.txt").stat()
    written(tmp_path / "a.txt", "a 3 4\n")
    os.utime(spec, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load_vectors(spec, ["a"]).table.tolist() == [[3, 4]]


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:-3], lambda content: b"\0" * 900])
def test_a_broken_cache_is_made_again(
    tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
) -> None:
    spec = written(tmp_path / "a.txt", GLOVE)
    load_vectors(spec, WORDS)
    (file,) = cached_files(cache)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert load_vectors(spec, WORDS).table.tolist() == ROWS
    assert "the cache is broken and made again" in caplog.text
    assert file.read_bytes() == whole


def test_no_flipped_bit_of_a_cache_gives_other_vectors(tmp_path: Path, cache: Path) -> None:
    spec = written(tmp_path / "a.txt", GLOVE)
    load_vectors(spec, WORDS)
    (file,) = cached_files(cache)
    whole = file.read_bytes()
    for place in range(0, 8 * len(whole), 13):  # every bit of a byte, all over the file
        file.write_bytes(flipped(whole, place))
        assert load_vectors(spec, WORDS).table.tolist() == ROWS
        assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_only_warns(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    spec = written(tmp_path / "a.txt", GLOVE)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        assert load_vectors(spec, WORDS).table.tolist() == ROWS
    assert "not cached" in caplog.text
    assert not cached_files(cache)


def test_a_cache_folder_that_cannot_be_made_only_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = written(tmp_path / "a.txt", GLOVE)
    blocked = Path(written(tmp_path / "file", "where the folder should be"))
    for _ in range(2):
        assert load_vectors(spec, WORDS, cache=blocked).table.tolist() == ROWS
    assert "not cached" in caplog.text


def test_rows_stand_in_the_order_of_the_words_and_repeats_are_served(tmp_path: Path) -> None:
    spec = written(tmp_path / "a.txt", "( 1 2\n) 3 4\n/ 5 6\nn't 7 8\nand/or 9 9\n")
    words = ["-rrb-", "(", "-lrb-", "-LRB-", "\\/", "n’t", "and\\/or"]
    assert load_vectors(spec, words).table.tolist() == [[3, 4], [1, 2], [1, 2], [1, 2], [5, 6], [7, 8], [9, 9]]


def test_coverage_counts_types_and_tokens_of_words_seen(tmp_path: Path) -> None:
    spec = written(tmp_path / "a.txt", "good 1 2\nextra 3 4\n")
    tokenizer = Tokenizer.build(["good good good odd"], extra_words=["extra"])
    found = load_vectors(spec, tokenizer.words, counts=tokenizer.counts)
    assert found.coverage == (("a.txt", 2, 1, 4, 3),)
    assert found.known.tolist() == [False, False, True, False, True]
    with pytest.raises(InputError, match="each of the 5 words, got 1"):
        load_vectors(spec, tokenizer.words, counts=[1])


def test_several_sources_are_joined_side_by_side(tmp_path: Path) -> None:
    first = written(tmp_path / "a.txt", "a 1 2\nb 3 4\n")
    second = written(tmp_path / "b.txt", "b 5\nc 6\n")
    found = load_vectors(f"{first}, {second}", ["a", "b", "c", "d"])
    assert found.table.tolist() == [[1, 2, 0], [3, 4, 5], [0, 0, 6], [0, 0, 0]]
    assert found.known.tolist() == [True, True, True, False]
    assert [str(one) for one in found.coverage] == [
        "a.txt: 50.0 % of 4 words, 50.0 % of 4 tokens",
        "b.txt: 50.0 % of 4 words, 50.0 % of 4 tokens",
    ]
    assert vectors.frequent(f"{first},{second}", 3) == ["a", "b", "c"]


@needs_wordllama
def test_wordllama_has_a_vector_for_every_word() -> None:
    found = load_vectors("wordllama", [*SPECIAL_WORDS, "film", "filmic", "电", "👩‍👩‍👧", "zzyzxq", "-lrb-", "("])
    assert found.known.tolist() == [False, False, *[True] * 7]
    assert not found.table[[PAD, UNKNOWN]].any()
    assert found.table.shape == (9, 256)
    assert np.isfinite(found.table).all()
    np.testing.assert_array_equal(found.table[-2], found.table[-1])


@needs_wordllama
def test_a_wordllama_vector_is_three_tenths_of_the_mean_of_the_sub_words() -> None:
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    parts = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"].astype(np.float32)
    tokenizer = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    ids = json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    expected = [parts[ids["▁film"]], (parts[ids["▁film"]] + parts[ids["ic"]]) / 2]
    found = load_vectors("wordllama", ["film", "filmic"]).table
    np.testing.assert_allclose(found, 0.3 * np.array(expected), rtol=1e-5)


@needs_wordllama
def test_wordllama_joins_other_vectors_and_offers_frequent_words(tmp_path: Path) -> None:
    spec = written(tmp_path / "a.txt", "film 1 2\n") + ",wordllama"
    found = load_vectors(spec, ["film", "odd"])
    assert found.table.shape == (2, 2 + 256)
    assert found.table[:, :2].tolist() == [[1, 2], [0, 0]]
    assert found.known.all()
    assert {"film", "the", "of"} < set(vectors.frequent(spec, 1000))


@needs_wordllama
@pytest.mark.parametrize(
    "part", ["weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"]
)
def test_a_damaged_wordllama_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    module = importlib.import_module("routepool.extras.wordllama_vectors")
    folder = Path(shutil.copytree(module.FOLDER, tmp_path / "wordllama"))
    monkeypatch.setattr(module, "FOLDER", folder)
    assert load_vectors("wordllama", ["film"]).known.all()
    content = (folder / part).read_bytes()
    (folder / part).write_bytes(flipped(content, 4 * len(content)))
    with pytest.raises(InputError, match=r"the installed wordllama is damaged: .* install it again"):
        load_vectors("wordllama", ["film"])
    (folder / part).unlink()
    with pytest.raises(InputError, match="the installed wordllama has no "):
        load_vectors("wordllama", ["film"])


@needs_wordllama
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_wordllama_opened_again_and_again_takes_no_more_memory() -> None:
    """In a process of its own: memory of compiled code, which only the system sees."""
    code = (
        "import re; from pathlib import Path; from routepool.vectors import load_vectors\n"
        "def used(): return int(re.search(r'RssAnon:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) / 1024\n"
        "words, seen = [f'word{number}' for number in range(30_000)], []\n"
        "for _ in range(13): load_vectors('wordllama', words); seen.append(used())\n"
        "print(seen[-1] - seen[2])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 30  # megabytes of ten times; it was 105


@needs_wordllama
def test_reading_wordllama_runs_none_of_its_code() -> None:
    load_vectors("wordllama", ["film"])
    assert "wordllama" not in sys.modules


def test_a_missing_wordllama_gives_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "routepool.extras.wordllama_vectors", raising=False)
    table = Registry[object]("source of vectors", {"w": Extra("routepool.extras.wordllama_vectors", "vectors")})
    with pytest.raises(MissingPackageError, match=r"'wordllama': pip install \"routepool\[vectors\]\""):
        table["w"]


def test_the_real_glove_covers_english_as_documented(caplog: pytest.LogCaptureFixture) -> None:
    folder = Path(os.environ.get("ROUTEPOOL_DATA", "missing"))
    file = folder / "vectors" / "glove.6B.100d.f16.npz"
    if not file.is_file():
        pytest.skip("needs the GloVe vectors in the folder ROUTEPOOL_DATA names")
    caplog.set_level(logging.WARNING)
    assert vectors.frequent(str(file), 3) == ["the", ",", "."]
    tokenizer = Tokenizer.build(
        ["The film wasn't good (at all), was it?"], extra_words=vectors.frequent(str(file), 500)
    )
    found = load_vectors(str(file), tokenizer.words, counts=tokenizer.counts)
    assert found.table.shape == (len(tokenizer.words), 100)
    assert found.known[2:].all()
    king, queen, table = load_vectors(str(file), ["king", "queen", "table"]).table
    assert king @ queen > 2 * abs(king @ table)
    assert not caplog.records
