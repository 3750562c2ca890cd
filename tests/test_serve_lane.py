"""A lane by itself: order, batches, bounds, and a failure that stays with the request that caused it."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')

from routepool.errors import InputError
from routepool.extras.serving.lane import Lane, Question
from routepool.extras.serving.metrics import Metrics
from routepool.extras.serving.refusals import Refused

PREDICT, ENCODE = Question("predict"), Question("encode")


class Slow:
    """Stands in for a model: keeps the batches it was given, and holds the first until told."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self.go = threading.Event()

    def __call__(self, model: Any, question: Question, texts: Sequence[str]) -> list[str]:
        self.batches.append(list(texts))
        self.threads.add(threading.current_thread().name)
        assert self.go.wait(10)
        if "wrong" in texts:
            raise InputError("wrong is not wanted")
        if "broken" in texts:
            raise RuntimeError("a message that quotes the text: broken")
        return [f"{question.kind} {text} by {model}" for text in texts]


def make(compute: Slow, **options: Any) -> Lane:
    usual: dict[str, Any] = {"batch": 4, "queue": 100, "seconds": 10.0}
    return Lane("test", compute, "A", start=lambda: None, metrics=Metrics(), **{**usual, **options})  # type: ignore[arg-type]


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


def test_a_request_larger_than_a_batch_is_computed_alone() -> None:
    compute = Slow()
    compute.go.set()
    assert len(play(lambda: make(compute).ask(PREDICT, ["a"] * 9))) == 9


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

    async def scene() -> None:
        lane = make(compute, seconds=0.1)
        first = await begin(lane, compute)
        with pytest.raises(Refused, match=r"504: not ready within 0\.1 seconds"):
            await lane.ask(ENCODE, ["late"])
        compute.go.set()
        with pytest.raises(Refused, match="504"):
            await first
        assert await lane.ask(PREDICT, ["next"]) == ["predict next by A"]

    play(scene)
    assert compute.batches == [["first"], ["next"]]
