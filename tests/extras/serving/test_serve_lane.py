"""A lane by itself: order, batches, bounds, and a failure that stays with the request that caused it."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')

from routepool.errors import InputError
from routepool.extras.serving.lane import Abandoned, Compute, Lane, Question, Wanted, within
from routepool.extras.serving.prometheus import Metrics
from routepool.extras.serving.refusals import Refused

PREDICT, ENCODE = Question("predict"), Question("encode")


class Slow:
    """Stands in for a model: keeps the batches it was given, and holds the first until told."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self.go = threading.Event()

    def __call__(self, model: Any, question: Question, texts: Sequence[str], wanted: Wanted) -> list[str]:
        self.batches.append(list(texts))
        self.threads.add(threading.current_thread().name)
        assert self.go.wait(10)
        if "wrong" in texts:
            raise InputError("wrong is not wanted")
        if "broken" in texts:
            raise RuntimeError("a message that quotes the text: broken")
        return [f"{question.kind} {text} by {model}" for text in texts]


def make(compute: Compute, **options: Any) -> Lane:
    usual: dict[str, Any] = {"batch": 4, "turn": 1000, "queue": 100, "start": lambda: None}
    return Lane("test", compute, "A", metrics=Metrics(), **{**usual, **options})  # type: ignore[arg-type]


def play(scene: Callable[[], Any]) -> Any:
    return asyncio.run(scene())


async def begin(lane: Lane, compute: Slow) -> "asyncio.Task[list[str]]":
    """One request that the thread is busy with."""
    task = asyncio.create_task(lane.ask(PREDICT, ["first"]))
    while not compute.batches:
        await asyncio.sleep(0.001)
    return task


def test_requests_with_the_same_question_share_batches_and_keep_their_order() -> None:
    compute = Slow()

    async def scene() -> list[list[str]]:
        lane = make(compute)
        tasks = [await begin(lane, compute)]
        asked = [(PREDICT, ["a"]), (ENCODE, ["b"]), (PREDICT, ["c", "d"]), (ENCODE, ["e"]), (PREDICT, ["f", "g"])]
        tasks += [asyncio.create_task(lane.ask(question, texts)) for question, texts in asked]
        await asyncio.sleep(0.01)
        lane.model = "B"  # type: ignore[assignment]
        compute.go.set()
        return await asyncio.gather(*tasks)

    answers = play(scene)
    assert compute.batches == [["first"], ["a", "c", "d"], ["b", "e"], ["f", "g"]]
    assert answers[0] == ["predict first by A"]  # begun before the new model came
    assert answers[3] == ["predict c by B", "predict d by B"]
    assert answers[4] == ["encode e by B"]
    assert compute.threads == {"routepool-test"}


def test_a_request_larger_than_a_turn_is_computed_in_parts() -> None:
    compute = Slow()
    compute.go.set()
    answer = play(lambda: make(compute, turn=6).ask(PREDICT, ["a", "bb", "ccc", "d" * 9, "e", "f", "g", "h", "i"]))
    assert [each.split()[1] for each in answer] == ["a", "bb", "ccc", "d" * 9, "e", "f", "g", "h", "i"]
    assert compute.batches == [["a", "bb", "ccc"], ["d" * 9], ["e", "f", "g", "h"], ["i"]]


def test_a_long_request_gives_way_to_a_short_one_between_its_parts() -> None:
    compute = Slow()

    async def scene() -> None:
        lane = make(compute, batch=1, pace=100.0)
        long = asyncio.create_task(lane.ask(PREDICT, ["first", "2", "3"]))
        while not compute.batches:
            await asyncio.sleep(0.001)
        short = asyncio.create_task(lane.ask(PREDICT, ["a"]))
        await asyncio.sleep(0.01)
        lane.model = "B"  # type: ignore[assignment]
        compute.go.set()
        assert await short == ["predict a by B"]
        assert await long == ["predict first by A", "predict 2 by A", "predict 3 by A"]  # never two models

    play(scene)
    assert compute.batches == [["first"], ["a"], ["2"], ["3"]]


def test_a_failure_stays_with_the_request_that_caused_it(caplog: pytest.LogCaptureFixture) -> None:
    compute = Slow()

    async def scene() -> list[Any]:
        lane = make(compute)
        first = await begin(lane, compute)
        tasks = [asyncio.create_task(lane.ask(PREDICT, [text])) for text in ("a", "wrong", "broken", "b")]
        await asyncio.sleep(0.01)
        compute.go.set()
        return await asyncio.gather(first, *tasks, return_exceptions=True)

    with caplog.at_level(logging.INFO):
        _, good, wrong, broken, also_good = play(scene)
    assert (good, also_good) == (["predict a by A"], ["predict b by A"])
    assert isinstance(wrong, Refused)
    assert (wrong.status_code, wrong.detail) == (422, "wrong is not wanted")
    assert isinstance(broken, Refused)
    assert broken.status_code == 500
    assert "quotes the text" not in caplog.text + str(broken.detail)
    assert "RuntimeError" in caplog.text


def test_a_full_queue_refuses_and_takes_again_when_it_has_room() -> None:
    compute = Slow()

    async def scene() -> None:
        lane = make(compute, queue=3)
        first = await begin(lane, compute)
        waiting = [asyncio.create_task(lane.ask(PREDICT, ["a"])), asyncio.create_task(lane.ask(PREDICT, ["b", "c"]))]
        await asyncio.sleep(0.01)
        with pytest.raises(Refused, match="503: too many texts are waiting"):
            await lane.ask(PREDICT, ["d"])
        compute.go.set()
        await asyncio.gather(first, *waiting)
        assert await lane.ask(PREDICT, ["d"]) == ["predict d by A"]

    play(scene)


def test_a_list_longer_than_the_queue_is_taken_when_nothing_waits() -> None:
    compute = Slow()
    compute.go.set()
    assert len(play(lambda: make(compute, queue=2).ask(PREDICT, ["a"] * 3))) == 3


def test_a_late_request_is_given_up_and_not_computed() -> None:
    compute = Slow()

    async def late(lane: Lane, question: Question, texts: Sequence[str]) -> None:
        with pytest.raises(Refused, match=r"504: not ready within 0\.1 seconds"):
            async with within(0.1):
                await lane.ask(question, texts)

    async def scene() -> None:
        lane = make(compute, queue=2)
        first = asyncio.create_task(late(lane, PREDICT, ["first"] * 9))
        while not compute.batches:
            await asyncio.sleep(0.001)
        await asyncio.gather(first, late(lane, ENCODE, ["late"] * 2))
        room = asyncio.create_task(lane.ask(PREDICT, ["next"] * 2))  # as the late ones wait no more
        await asyncio.sleep(0.01)
        compute.go.set()
        assert await room == ["predict next by A"] * 2

    play(scene)
    assert compute.batches == [["first"] * 4, ["next"] * 2]


class Endless:
    """Stands in for a model that computes until nobody wants it."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()

    def __call__(self, model: Any, question: Question, texts: Sequence[str], wanted: Wanted) -> list[str]:
        if question != ENCODE:
            return ["done"] * len(texts)
        self.begun.set()
        while wanted():
            threading.Event().wait(0.001)
        self.ended.set()
        raise Abandoned


async def _begin_endless(lane: Lane, compute: Endless) -> "asyncio.Task[list[str]]":
    task = asyncio.create_task(lane.ask(ENCODE, ["text"]))
    await asyncio.to_thread(compute.begun.wait, 10)
    return task


def test_what_nobody_waits_for_is_computed_no_further() -> None:
    compute = Endless()

    async def scene() -> list[str]:
        lane = make(compute)
        (await _begin_endless(lane, compute)).cancel()
        return await lane.ask(PREDICT, ["next"])

    assert play(scene) == ["done"]
    assert compute.ended.is_set()


def test_a_closed_lane_computes_no_further_and_its_thread_ends() -> None:
    compute = Endless()

    async def scene() -> None:
        lane = make(compute)
        task = await _begin_endless(lane, compute)
        lane.close()
        assert await asyncio.to_thread(lane.join, 10)
        for asked in (task, lane.ask(PREDICT, ["late"])):
            with pytest.raises(Refused, match="503: the server is about to stop"):
                await asked

    play(scene)
    assert compute.ended.is_set()


class Panic(BaseException):
    """As compiled extensions raise it: no Exception."""


@pytest.mark.parametrize("fault", [Panic, SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, StopIteration])
def test_whatever_a_model_raises_the_lane_goes_on(fault: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    def compute(model: Any, question: Question, texts: Sequence[str], wanted: Wanted) -> list[str]:
        if "bad" in texts:
            raise fault("a message that quotes the text: bad")
        return [*texts]

    async def scene() -> None:
        lane = make(compute)
        bad, good = await asyncio.gather(*(lane.ask(PREDICT, [text]) for text in ("bad", "a")), return_exceptions=True)
        assert isinstance(bad, Refused)
        assert bad.status_code == 500
        assert good == ["a"]
        assert lane.is_alive
        assert await lane.ask(PREDICT, ["b"]) == ["b"]

    play(scene)
    assert fault.__name__ in caplog.text
    assert "quotes the text" not in caplog.text


def test_a_model_that_leaves_texts_out_fails_that_request_alone() -> None:
    def compute(model: Any, question: Question, texts: Sequence[str], wanted: Wanted) -> list[str]:
        return list(texts)[: 1 if question == ENCODE else None]

    async def scene() -> None:
        lane = make(compute)
        with pytest.raises(Refused, match="500"):
            await lane.ask(ENCODE, ["a", "b"])
        assert await lane.ask(PREDICT, ["c", "d"]) == ["c", "d"]

    play(scene)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_lane_without_its_thread_says_so() -> None:
    def start() -> None:
        raise SystemExit

    async def scene() -> None:
        lane = make(Slow(), start=start)
        assert lane.join(10)
        assert not lane.is_alive
        with pytest.raises(Refused, match="503"):
            await lane.ask(PREDICT, ["a"])

    play(scene)
