"""The guard around an application: what becomes of a request whose client leaves."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')

from routepool.extras.serving.guard import Gate, Guard
from routepool.extras.serving.prometheus import Metrics
from routepool.serving import Limits

SCOPE = {"type": "http", "method": "POST", "path": "/explain", "headers": [(b"host", b"localhost")]}


class Client:
    """Sends a body, and then leaves when told to."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self._body = [{"type": "http.request", "body": b"{}", "more_body": False}]
        self.leaves = asyncio.Event()

    async def receive(self) -> Any:
        if self._body:
            return self._body.pop()
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)


def guard(app: Any) -> Guard:
    return Guard(app, {"/explain"}, limits=Limits(), key=None, gate=Gate(), metrics=Metrics())


def test_what_is_computed_for_a_client_that_leaves_is_given_up() -> None:
    async def scene() -> None:
        client, begun, ended = Client(), asyncio.Event(), asyncio.Event()

        async def endless(*_: Any) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        task = asyncio.create_task(guard(endless)(SCOPE, client.receive, client.send))
        await begun.wait()
        client.leaves.set()
        await asyncio.wait_for(task, 10)
        await asyncio.wait_for(ended.wait(), 10)
        assert client.sent == []

    asyncio.run(scene())


def test_an_answer_that_has_begun_is_finished() -> None:
    """A server says that a client has left as soon as the answer is complete, too."""

    async def scene() -> None:
        client = Client()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            assert (await receive())["body"] == b"{}"
            await send({"type": "http.response.start", "status": 200, "headers": []})
            client.leaves.set()
            await asyncio.sleep(0.01)
            await send({"type": "http.response.body", "body": b"{}"})

        await guard(app)(SCOPE, client.receive, client.send)
        assert [message["type"] for message in client.sent] == ["http.response.start", "http.response.body"]

    asyncio.run(scene())


def test_what_is_no_exception_is_answered_and_counted_too(caplog: pytest.LogCaptureFixture) -> None:
    class Panic(BaseException):
        pass

    async def scene() -> None:
        client, own = Client(), Metrics()

        async def app(*_: Any) -> None:
            raise Panic("a message that quotes the text")

        await Guard(app, {"/explain"}, limits=Limits(), key=None, gate=Gate(), metrics=own)(
            SCOPE, client.receive, client.send
        )
        assert client.sent[0]["status"] == 500
        assert b'routepool_requests_total{path="/explain",status="500"} 1.0' in own.render()

    asyncio.run(scene())
    assert "Panic" in caplog.text
    assert "quotes the text" not in caplog.text
