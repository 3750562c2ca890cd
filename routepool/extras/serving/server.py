"""Listening, and the life of the process: slow connections are closed, SIGHUP reloads, SIGTERM drains."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from routepool.errors import InputError
from routepool.extras.serving.application import build
from routepool.extras.serving.guard import Gate, is_loopback
from routepool.extras.serving.models import Models, load_model
from routepool.extras.serving.prometheus import Metrics
from routepool.serving import SERVERS, Service

logger = logging.getLogger(__name__)

LINGER_SECONDS = 1.0  # in which a request that was on its way when the server began to stop still gets an answer
STOP_SECONDS = 2.0  # in which a computation that nobody waits for ends by itself
_HEADER_BYTES = 16_384
_IDLE_SECONDS = 75  # longer than proxies keep a connection: one closed under a request on its way loses it


@SERVERS.register("http")
def serve(service: Service, on_ready: Callable[[str], None]) -> None:
    """Serve a model until SIGTERM or Ctrl-C, then answer what was accepted and return.

    Args:
        service: what to serve, and where.
        on_ready: called with the address as soon as requests are answered.
    """
    with bind(service) as listener:
        metrics = Metrics()
        models = Models(service, load_model(service.run), metrics)
        try:
            asyncio.run(_serve(service, listener, models, metrics, on_ready))
        finally:
            ended = models.close(STOP_SECONDS)
        if not ended and threading.current_thread() is threading.main_thread():
            _leave()


def _leave() -> None:
    """End the process although a thread still computes, in compiled code that nothing can interrupt.

    All that was accepted has been answered. An interpreter that ends by itself would abort, since it stops its threads
    wherever they are.
    """
    logger.debug("left while a thread was computing")
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def bind(service: Service) -> socket.socket:
    """The socket, bound before the model is loaded: a port that is taken is an error at once."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            service.host, service.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise InputError(f"{service.host}: no such address ({error.strerror}); check --host") from error
    if not is_loopback(str(address[0])) and service.key is None:
        raise InputError(f"{service.host} can be reached by others; give a key for them with --api-key-file FILE")
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise InputError(
            f"port {service.port} of {service.host} cannot be had ({error.strerror}); choose another --port, or 0 for "
            "any that is free"
        ) from error
    return listener


async def _serve(
    service: Service,
    listener: socket.socket,
    models: Models,
    metrics: Metrics,
    on_ready: Callable[[str], None],
) -> None:
    limits, gate = service.limits, Gate()

    class Protocol(PunctualProtocol):
        header_seconds, write_seconds = limits.header_seconds, limits.request_seconds

    config = uvicorn.Config(
        build(service, models, gate, metrics),
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        timeout_keep_alive=_IDLE_SECONDS,
        # A request has so long to arrive and so long to be answered.
        timeout_graceful_shutdown=int(2 * limits.request_seconds + 1),
    )
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # a malformed request is the client's matter
    server = _Server(config, gate, models.begin_reload, on_ready)
    metrics.connections.set_function(gate.connections)
    await server.serve(sockets=[listener])


class PunctualProtocol(H11Protocol):
    """HTTP/1.1 with a time limit on receiving from a client, and on sending to one that does not read.

    uvicorn alone waits for ever for half a header, and for a client that reads nothing.
    """

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


class _Server(uvicorn.Server):
    """uvicorn with a drain that loses no request, an exit code of 0, and SIGHUP."""

    def __init__(
        self,
        config: uvicorn.Config,
        gate: Gate,
        reload: Callable[[], object],
        on_ready: Callable[[str], None],
    ) -> None:
        super().__init__(config)
        self._gate, self._reload, self._on_ready = gate, reload, on_ready
        gate.connections = lambda: len(self.server_state.connections)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        assert sockets
        host, port = sockets[0].getsockname()[:2]
        self._on_ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, tell those that are open to close, and answer what was accepted."""
        self._gate.draining = True
        loop = asyncio.get_running_loop()
        waiting = [connection for listener in sockets or [] for connection in _waiting(listener)]
        for server in self.servers:
            server.close()
        for connection in waiting:
            await loop.connect_accepted_socket(self._protocol, connection)
        end = loop.time() + LINGER_SECONDS
        while self.server_state.connections and loop.time() < end and not self.force_exit:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but the signals are not raised again at the end: a drained server has ended well."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        handlers: dict[int, Callable[..., object]] = {signal.SIGINT: self.handle_exit, signal.SIGTERM: self.handle_exit}
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = lambda *_: loop.call_soon_threadsafe(self._reload)
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _waiting(listener: socket.socket) -> Iterator[socket.socket]:
    """Connections made but not yet accepted: closing the listener would reset them, requests and all."""
    with contextlib.suppress(BlockingIOError):
        while True:
            yield listener.accept()[0]
