"""A server process on loopback, and clients that see exactly what it does: bytes in, bytes out."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

KEY = "a-key-for-these-tests"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The one sentence of a refusal."""
        values = self.json
        assert list(values) == ["error"], values
        return str(values["error"])


class Running:
    """A server that was started, and its address."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    def ask(self, method: str, path: str, body: bytes | None = None, /, **headers: str) -> Answer:
        """One request on a connection of its own; `X_API_Key` stands for X-API-Key."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            response = connection.getresponse()
            content = response.read()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)
        finally:
            connection.close()

    def post(self, path: str, values: Any, **headers: str) -> Answer:
        body = values if isinstance(values, bytes) else json.dumps(values).encode()
        return self.ask("POST", path, body, **{"Content_Type": "application/json", **headers})

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def send_raw(self, content: bytes) -> bytes:
        """All that comes back for some bytes, until the server closes."""
        with self.connect() as connection:
            connection.sendall(content)
            return read_all(connection)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, standard output and error of the server after a signal."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def parsed(raw: bytes) -> Answer:
    """Status and body of an answer as it came."""
    head, _, body = raw.partition(b"\r\n\r\n")
    return Answer(int(head.split()[1]), {}, body)


def read_all(connection: socket.socket) -> bytes:
    received = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return received
        if not part:
            return received
        received += part


@contextmanager
def serving(
    run: Path, *options: object, verbose: bool = False, core: int | None = None, before: str = ""
) -> Iterator[Running]:
    """`routepool serve` in a process of its own, on a free port, from its being ready on.

    Args:
        run: the model folder.
        options: of the command.
        verbose: show what it does in detail.
        core: of the processor, to which the server is bound.
        before: Python that the process runs first, to change a part of it.
    """
    arguments = ["serve", run, "--port", 0, *options]
    start = ["-c", f"{before}\nfrom routepool.cli import main\nmain()"] if before else ["-m", "routepool"]
    command = [sys.executable, *start, *(["--verbose"] if verbose else []), *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    try:
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        assert process.stdout is not None
        line = process.stdout.readline()
        if "http://" not in line:
            raise AssertionError(process.communicate()[1])
        yield Running(process, int(line.rpartition(":")[2]))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


class Client:
    """One connection that is kept, for many requests: quick, and it tells a lost answer from a refused one."""

    def __init__(self, port: int, key: str | None = None) -> None:
        self._port, self._key = port, key
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def post(self, path: str, values: Any) -> Answer:
        """An answer; ConnectionRefusedError if there is no server, any other error if one was lost."""
        body = json.dumps(values).encode()
        key = f"X-API-Key: {self._key}\r\n" if self._key else ""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{key}Content-Type: application/json\r\n"
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        assert self._reader is not None
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        content = await self._reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        return Answer(int(lines[0].split()[1]), headers, content)


class Question(NamedTuple):
    """Texts and the probabilities that a model gives them offline."""

    texts: Sequence[str]
    expected: Sequence[Sequence[float]]

    @property
    def body(self) -> dict[str, Any]:
        return {"text": self.texts[0]} if len(self.texts) == 1 else {"texts": self.texts}

    def is_answered_by(self, answer: Answer) -> bool:
        """Are the probabilities those of offline, to 1e-5?"""
        given = [list(result["probabilities"].values()) for result in answer.json["results"]]
        return len(given) == len(self.expected) and all(
            abs(one - other) < 1e-5
            for got, wanted in zip(given, self.expected, strict=True)
            for one, other in zip(got, wanted, strict=True)
        )


class Outcome(NamedTuple):
    """What became of a request: its status, or wrong, lost or refused (nobody listens); and how long that took."""

    result: str
    seconds: float


async def ask_all(port: int, questions: Iterable[Question], concurrency: int, *, kept: bool = True) -> list[Outcome]:
    """Ask over so many connections at once, kept or a new one each time; a client that is refused one stops."""
    outcomes: list[Outcome] = []
    shared = iter(questions)

    async def work() -> None:
        async with Client(port) as client:
            for question in shared:
                begun = time.monotonic()
                result = await _result(client, question)
                outcomes.append(Outcome(result, time.monotonic() - begun))
                if result == "refused":
                    return
                if not kept:
                    client.close()

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return outcomes


async def _result(client: Client, question: Question) -> str:
    try:
        answer = await client.post("/predict", question.body)
    except ConnectionRefusedError:
        return "refused"
    except (OSError, EOFError):
        client.close()
        return "lost"
    if answer.status == 200 and not question.is_answered_by(answer):
        return "wrong"
    return str(answer.status)


def questions_of(texts: Sequence[str], expected: Sequence[Sequence[float]], size: int = 1) -> list[Question]:
    """The texts in requests of `size`."""
    starts = range(0, len(texts), size)
    return [Question(texts[start : start + size], expected[start : start + size]) for start in starts]


def until(condition: Any, seconds: float = 20) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def run_schemathesis(server: Running, folder: Path, examples: int, *options: str) -> Any:
    """Generated requests to every address of a server with a key; the report.

    Left out is one check, that what fits the description is taken: a random method or label fits it, and is refused.
    """
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{server.port}/openapi.json",
        "--header", f"X-API-Key: {KEY}", "--checks", "all", "--exclude-checks", "positive_data_acceptance",
        "--phases", "examples,coverage,fuzzing", "--max-examples", str(examples), "--seed", "0",
        "--report", "json", "--report-json-path", str(folder / "report.json"), *options,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    report = folder / "report.json"
    assert report.exists(), done.stdout + done.stderr
    return json.loads(report.read_text("utf-8"))
