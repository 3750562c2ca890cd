"""Slow connections are closed: uvicorn alone waits for ever for half a header, and for a client that reads nothing."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PunctualProtocol(H11Protocol):
    """HTTP/1.1 with a time limit on receiving from a client, and on sending to one that does not read."""

    header_seconds: float
    write_seconds: float

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._receiving: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_receiving()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_receiving()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # Between two requests uvicorn's own timer runs; the rest of a refused body is read and thrown away for a while,
        # since a connection closed over unread data is reset, and the client would not see the refusal.
        if self.conn.their_state is h11.SEND_BODY:
            self._watch_receiving()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._sending = self.loop.call_later(self.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._sending)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._receiving)
        _cancel(self._sending)
        super().connection_lost(exc)

    def _watch_receiving(self) -> None:
        """Start the clock when the client should send and no request is being answered; data does not restart it."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            _cancel(self._receiving)
            self._receiving = None
        elif self._receiving is None and not self.transport.is_closing():
            self._receiving = self.loop.call_later(self.header_seconds, self.transport.close)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
