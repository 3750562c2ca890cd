"""What surrounds the application: who may ask and how much may come, the headers of every answer, and the count."""

import asyncio
import hmac
import ipaddress
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from routepool.extras.serving.prometheus import Metrics
from routepool.extras.serving.refusals import RETRY, STOPPING, Refused, refusal
from routepool.serving import Limits

logger = logging.getLogger(__name__)

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OPEN = ("/", "/live", "/ready", "/docs", "/openapi.json")  # without a key: nothing there says anything of the model
ASSETS = "/assets/"
_HOST = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]*:[0-9a-f:.]*)\]|(?P<name>[0-9a-z.-]+))(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE
)


class Gate:
    """What the guard must know of the server: is it about to stop, how many connections are open?"""

    draining = False

    def __init__(self) -> None:
        self.connections: Callable[[], int] = lambda: 0


class Guard:
    """An ASGI application around another.

    Args:
        app: the one that answers.
        paths: of `app`, for the metrics; all others are counted together.
        limits: on bodies and connections.
        key: wanted of every client, outside the open paths.
        gate: whether the server takes requests.
        metrics: count every answer.
    """

    def __init__(
        self, app: ASGIApp, paths: set[str], *, limits: Limits, key: str | None, gate: Gate, metrics: Metrics
    ) -> None:
        self._app, self._paths, self._limits, self._gate, self._metrics = app, paths, limits, gate, metrics
        self._key = None if key is None else key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, answer = time.monotonic(), _Answer(send, self._gate)
        try:
            self._check(scope["path"], Headers(scope=scope))
            body = await self._body(Headers(scope=scope), receive)
            await self._answer(scope, body, receive, answer)
        except Refused as error:
            await refusal(error)(scope, receive, answer.send)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:  # a second signal to stop: the server waits for nobody
            if not answer.status:
                await refusal(Refused(503, STOPPING, RETRY))(scope, receive, answer.send)
        except BaseException as error:  # a panic of compiled code is no Exception
            # Without the message, which may quote a text.
            logger.error("a request failed with %s; --verbose shows more", type(error).__name__)
            logger.debug("the error in full", exc_info=error)
            if not answer.status:
                await refusal(Refused(500, "the server failed on this request"))(scope, receive, answer.send)
        path = scope["path"] if scope["path"] in self._paths else "other"
        self._metrics.requests.labels(path, str(answer.status)).inc()
        self._metrics.seconds.labels(path).observe(time.monotonic() - begun)

    def _check(self, path: str, headers: Headers) -> None:
        if self._gate.draining and path != "/live":
            raise Refused(503, STOPPING, RETRY)
        if self._gate.connections() > self._limits.connections:
            raise Refused(503, "too many connections are open; try again in a moment", {**RETRY, "Connection": "close"})
        if self._key is None:
            # This blocks DNS rebinding: a web page whose name resolves to this machine.
            if not is_loopback(_name(headers.get("host", ""))):
                raise Refused(421, "without a key this server answers to localhost only; start it with --api-key-file")
        elif path not in OPEN and not path.startswith(ASSETS) and not self._has_key(headers):
            wanted = "send it in the header X-API-Key, or as Authorization: Bearer"
            raise Refused(401, f"the API key is missing or wrong; {wanted}", {"WWW-Authenticate": "Bearer"})

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        given = headers.get("x-api-key") or (bearer.strip() if kind.lower() == "bearer" else "")
        return self._key is not None and hmac.compare_digest(given.encode("latin-1"), self._key)

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, answer: "_Answer") -> None:
        """Let the application answer, unless the client leaves before the answer begins: then nothing is computed."""
        answering = asyncio.ensure_future(self._app(scope, _replay(body, receive), answer.send))
        leaving = asyncio.ensure_future(receive())  # the body has been read: all that can come is the end
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and not answer.status:
                raise ClientDisconnect
            await answering
        finally:
            answering.cancel()
            leaving.cancel()

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        most = self._limits.body_bytes
        too_large = Refused(413, f"wanted a body of at most {most} bytes; send the texts in parts")
        if int(headers.get("content-length", "0")) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.request_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    body += message.get("body", b"")
                    if len(body) > most:  # of a body in chunks, whose length is not announced
                        raise too_large
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError as error:
            seconds = f"{self._limits.request_seconds:g}"
            raise Refused(408, f"the request had not arrived after {seconds} seconds; send it again") from error


class _Answer:
    """What is sent, with the headers that every answer has."""

    def __init__(self, send: Send, gate: Gate) -> None:
        self._send, self._gate, self.status = send, gate, 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            if self._gate.draining:
                headers["Connection"] = "close"
        await self._send(message)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Receive the body, which has been read, once more; then whatever comes."""
    rest: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return rest.pop() if rest else await receive()

    return again


def _name(host: str) -> str:
    """The name in a Host header, without its port; empty unless the whole header has that form.

    >>> [_name(host) for host in ("localhost:80", "[::1]", "[::1]evil.example", "127.0.0.1:80@evil.example")]
    ['localhost', '::1', '', '']
    """
    found = _HOST.fullmatch(host)
    return (found["address"] or found["name"]) if found else ""


def is_loopback(name: str) -> bool:
    """Does a name or an address mean this machine, seen from itself?

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("example.org")
    (True, True, True, False)
    """
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
