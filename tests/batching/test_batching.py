"""Batches are pure functions of their arguments, little padded, and nothing shows how far ahead they were prepared."""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routepool.arrays import Integers
from routepool.batching import (
    Batch,
    Prefetched,
    Schedule,
    SlidingBucket,
    buffers,
    evaluation_batches,
    length_of,
    pad,
    shard,
)
from routepool.datasets import load_named
from routepool.errors import InputError
from routepool.text import Encoded, Tokenizer

DATA = os.environ.get("ROUTEPOOL_DATA", "")
needs_sst1 = pytest.mark.skipif(not DATA or not (Path(DATA) / "sst1").is_dir(), reason="ROUTEPOOL_DATA has no sst1")

documents = st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=6)  # words of the sentences of each document
lengths_of_sets = st.lists(st.integers(0, 30), min_size=1, max_size=200)
sizes = st.integers(1, 40)


def encoded(sentences: list[int]) -> Encoded:
    ids = np.arange(2, 2 + sum(sentences), dtype=np.int32)
    return Encoded(ids, np.zeros((len(ids), 2), dtype=np.int32), np.array(sentences, dtype=np.int32), 0, 0)


def epoch_of(bucket: SlidingBucket, epoch: int, batch_size: int, window: int) -> list[Integers]:
    return [bucket.rows(epoch, i, batch_size=batch_size, window=window) for i in range(bucket.number(batch_size))]


def noting(taken: list[int]) -> Iterator[int]:
    for item in range(10**9):
        taken.append(item)
        yield item


@given(documents, st.sampled_from([1, 2]))
def test_padding_keeps_the_words_and_is_no_wider_than_the_longest(texts: list[list[int]], depth: int) -> None:
    batch = [encoded(sentences) for sentences in texts]
    ids, mask = pad(batch, depth)
    assert (str(ids.dtype), str(mask.dtype)) == ("int64", "bool")
    assert ids[mask].tolist() == [word for text in batch for word in text.ids.tolist()]
    assert not ids[~mask].any()
    widest = np.array([length_of(text, depth) for text in batch]).reshape(-1, depth).max(0, initial=1)
    assert ids.shape == (len(texts), *widest)
    in_sentences = [text if depth == 2 else [sum(text)] for text in texts]
    assert mask.sum(-1)[mask.any(-1)].tolist() == [words for text in in_sentences for words in text if words]


def test_empty_texts_are_rows_of_padding() -> None:
    texts = Tokenizer.build(["a"]).encode(["", " "], depth=2)
    assert pad(texts, 2)[0].tolist() == [[[0]], [[0]]]
    assert [length_of(text, 2) for text in texts] == [(0, 0), (0, 0)]


def test_a_batch_holds_the_rows_asked_for() -> None:
    texts = Tokenizer.build(["this is short"]).encode(["This is one. Another!", "is", "this"], depth=2)
    batch = Batch.of(texts, np.array([2, 0]), depth=2)
    assert (batch.rows.tolist(), batch.ids[0, 0, 0], batch.ids.shape) == ([2, 0], texts[2].ids[0], (2, 2, 4))


@given(lengths_of_sets, sizes, sizes, st.booleans(), st.integers(0, 2**40), st.data())
def test_a_batch_depends_on_its_arguments_alone(
    lengths: list[int], batch_size: int, window: int, replacement: bool, seed: int, data: st.DataObject
) -> None:
    fresh, used = (SlidingBucket(lengths, seed=seed, replacement=replacement) for _ in range(2))
    calls = st.tuples(st.integers(0, 3), st.integers(0, fresh.number(batch_size) - 1))
    for epoch, index in data.draw(st.lists(calls, max_size=5)):
        used.rows(epoch, index, batch_size=batch_size, window=window + epoch)[:] = -1
    expected = epoch_of(fresh, 1, batch_size, window)
    for index in data.draw(st.permutations(range(len(expected)))):
        got = used.rows(1, index, batch_size=batch_size, window=window)
        assert got.tolist() == expected[index].tolist()


@pytest.mark.parametrize("replacement", [True, False])
def test_epochs_and_seeds_and_schedules_differ(replacement: bool) -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 1000)
    one, other = (SlidingBucket(lengths, seed=seed, replacement=replacement) for seed in (0, 1))
    drawn = [epoch_of(one, 0, 10, 50), epoch_of(one, 1, 10, 50), epoch_of(other, 0, 10, 50), epoch_of(one, 0, 10, 60)]
    memberships = [{frozenset(rows.tolist()) for rows in batches} for batches in drawn]
    for place, first in enumerate(memberships):
        for second in memberships[place + 1 :]:
            assert len(first & second) < 0.05 * len(first)


@given(lengths_of_sets, sizes, sizes, st.integers(0, 3))
def test_without_replacement_each_example_comes_once(lengths: list[int], size: int, window: int, epoch: int) -> None:
    batches = epoch_of(SlidingBucket(lengths, seed=1, replacement=False), epoch, size, window)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    widths = [len(rows) for rows in batches]
    assert max(widths) <= min(size, min(widths) + 1)


@pytest.mark.parametrize("window", [1000, 5000])
def test_with_replacement_63_percent_are_seen_and_all_are_equally_likely(window: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 5000)
    bucket = SlidingBucket(lengths, seed=0, replacement=True)
    epochs = [np.concatenate(epoch_of(bucket, epoch, 50, window)) for epoch in range(40)]
    assert np.mean([len(np.unique(rows)) / 5000 for rows in epochs]) == pytest.approx(1 - np.exp(-1), abs=0.01)
    seen = np.bincount(np.concatenate(epochs), minlength=5000)[np.argsort(lengths)]
    assert np.array([part.mean() for part in np.split(seen, 5)]) == pytest.approx(np.full(5, 40.0), rel=0.12)


@given(lengths_of_sets, sizes, sizes, st.booleans())
def test_every_batch_lies_in_one_window_of_the_sorted_order(
    lengths: list[int], batch_size: int, window: int, replacement: bool
) -> None:
    distinct = np.array(lengths) * 1000 + np.arange(len(lengths))  # no ties: a place in the order is then known
    place = np.argsort(np.argsort(distinct))
    for rows in epoch_of(SlidingBucket(distinct, seed=0, replacement=replacement), 0, batch_size, window):
        places = np.unique(place[rows])
        # A drawn window may run on from the longest to the shortest: the widest gap on the circle lies outside it.
        gaps = np.diff(places, append=places[0] + len(lengths))
        assert (len(lengths) - gaps.max() if replacement else np.ptp(places)) < max(window, batch_size)


def test_a_window_as_long_as_the_set_is_plain_shuffling() -> None:
    bucket = SlidingBucket(np.arange(1000), seed=0, replacement=False)
    means = [rows.mean() for rows in epoch_of(bucket, 0, 100, 1000)]
    assert np.std(means) < 3 * np.sqrt(1000**2 / 12 / 100)


def test_documents_are_sorted_by_sentences_then_by_their_longest() -> None:
    bucket = SlidingBucket([(2, 9), (1, 30), (2, 5), (3, 1)], seed=0, replacement=False)
    assert {frozenset(rows.tolist()) for rows in epoch_of(bucket, 0, 2, 2)} == {frozenset({1, 2}), frozenset({0, 3})}


@needs_sst1
@pytest.mark.parametrize(("window", "most"), [(500, 0.08), (256, 0.05)])
def test_a_tight_window_pads_sst1_by_less_than_10_percent(window: int, most: float) -> None:
    texts = [example.text for example in load_named("sst1").train.examples]
    lengths = np.array([length_of(text, 1)[0] for text in Tokenizer.build(texts).encode(texts)])
    batches = epoch_of(SlidingBucket(lengths, seed=0, replacement=False), 0, 64, window)
    padded = sum(lengths[rows].max() * len(rows) for rows in batches)
    assert 1 - lengths.sum() / padded < most


def test_the_schedule_halves_and_doubles_together_to_its_bounds() -> None:
    schedules = [Schedule(64, 5000)]
    for _ in range(3):
        schedules.append(schedules[-1].after_no_improvement(16, 8544))
    assert schedules[1:] == [Schedule(32, 8544), Schedule(16, 8544), Schedule(16, 8544)]
    assert Schedule(32, 5000).after_no_improvement(32, 60_000) == Schedule(32, 10_000)  # documents
    assert Schedule(8, 100).after_no_improvement(16, 1000) == Schedule(8, 200)


@given(st.lists(st.integers(0, 100), max_size=70), st.sampled_from([1, 2, 4]))
def test_the_parts_of_all_ranks_are_the_batch(rows: list[int], world_size: int) -> None:
    parts = [shard(np.array(rows, dtype=np.int64), rank, world_size) for rank in range(world_size)]
    assert np.concatenate(parts).tolist() == rows
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=60), st.integers(1, 9))
def test_evaluation_takes_every_text_once_within_its_bounds(lengths: list[tuple[int, int]], batch_size: int) -> None:
    batches = evaluation_batches(lengths, batch_size=batch_size, tokens=300)
    assert sorted(row for rows in batches for row in rows.tolist()) == list(range(len(lengths)))
    for rows in batches:
        sentences, words = np.array([lengths[row] for row in rows]).max(0, initial=1)
        assert 1 <= len(rows) <= batch_size
        assert len(rows) == 1 or len(rows) * sentences * words <= 300
    in_order = [lengths[row][0] for rows in batches for row in rows]
    assert in_order == sorted(in_order, reverse=True)


@pytest.mark.parametrize(("most", "words", "read"), [(8, 10**9, 8), (100, 30, 3)])
def test_a_buffer_reads_no_further_than_its_bounds(most: int, words: int, read: int) -> None:
    taken: list[int] = []
    (text,) = Tokenizer.build(["a"]).encode(["a " * 10])
    held = buffers((text for _ in noting(taken)), most=most, words=words)
    assert [len(next(held)) for _ in range(2)] == [read, read]
    assert len(taken) == 2 * read


def test_buffers_hold_every_text_once_in_order() -> None:
    texts = Tokenizer.build(["a"]).encode(["a " * (number % 7) for number in range(50)])
    assert [text for held in buffers(iter(texts), most=8, words=20) for text in held] == texts
    assert list(buffers([])) == []


def prefetching_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


def slow(act: Callable[[], None]) -> Iterator[int]:
    time.sleep(0.05)
    act()
    time.sleep(0.05)
    yield 1


def failing() -> Iterator[int]:
    yield 1
    raise InputError("row 2 is broken")


@pytest.mark.parametrize("replacement", [True, False])
def test_no_depth_of_prefetching_changes_a_batch(replacement: bool) -> None:
    bucket = SlidingBucket(np.arange(100) % 7, seed=3, replacement=replacement)
    expected = [rows.tolist() for rows in epoch_of(bucket, 2, 8, 20)]
    for depth in (0, 1, 5, 100):
        prepared = Prefetched((bucket.rows(2, i, batch_size=8, window=20) for i in range(13)), depth)
        assert [rows.tolist() for rows in prepared] == expected
    assert not prefetching_threads()


def test_an_error_in_preparation_reaches_the_consumer_in_its_place() -> None:
    prepared = Prefetched(failing(), 5)
    assert next(prepared) == 1
    with pytest.raises(InputError, match="row 2"):
        next(prepared)
    assert list(prepared) == []
    assert not prefetching_threads()


def test_prefetching_reads_no_further_than_its_depth() -> None:
    taken: list[int] = []
    with Prefetched(noting(taken), 3) as prepared:
        next(prepared)
        time.sleep(0.05)
        assert len(taken) <= 4


@pytest.mark.parametrize("stop", [KeyboardInterrupt, GeneratorExit, InputError])
def test_the_thread_ends_when_the_consumer_stops_early(stop: type[BaseException]) -> None:
    def steps() -> Generator[int]:
        with Prefetched(noting([])) as prepared:
            yield from prepared

    running = steps()
    assert next(running) == 0
    with pytest.raises(stop):
        running.throw(stop())
    assert not prefetching_threads()


def test_an_interrupt_while_waiting_ends_the_thread() -> None:
    consumer = threading.get_ident()
    prepared = Prefetched(slow(lambda: signal.pthread_kill(consumer, signal.SIGINT)), 0)
    with pytest.raises(KeyboardInterrupt):
        next(prepared)
    assert not prefetching_threads()
    assert list(prepared) == []


def test_the_thread_ends_when_the_consumer_drops_it() -> None:
    for _ in Prefetched(noting([])):
        break
    gc.collect()
    for thread in prefetching_threads():
        thread.join(timeout=5)
    assert not prefetching_threads()


def test_waiting_is_measured() -> None:
    prepared = Prefetched(slow(lambda: None), 0)
    assert list(prepared) == [1]
    assert 0.09 < prepared.waited < 30


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pad([], 3), "got 3"),
        (lambda: length_of(encoded([1]), 0), "got 0"),
        (lambda: SlidingBucket([], seed=0, replacement=True), "at least one example"),
        (lambda: SlidingBucket([1], seed=0, replacement=True).number(0), "at least 1, got 0"),
        (lambda: SlidingBucket([1], seed=0, replacement=False).rows(0, 1, batch_size=2, window=2), "0 to 0, got 1"),
        (lambda: shard(np.arange(4), 2, 2), "from 0 to 1, got 2"),
        (lambda: Prefetched([1], -1), "got -1"),
    ],
)
def test_an_error_says_what_came_and_what_was_wanted(call: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()
