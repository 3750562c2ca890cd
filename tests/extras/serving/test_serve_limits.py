"""What is too much or too slow for a server: it says so, closes what dawdles, and goes on."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli_runs import train_tiny

pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')

from support.serving import Answer, Client, Running, parsed, read_all, serving, until

BODY_BYTES, HEADER_SECONDS = 4000, 1.0
POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("limits"))


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[Running]:
    options = {
        "--max-body-bytes": BODY_BYTES,
        "--max-texts": 4,
        "--max-characters": 1000,
        "--max-explain-texts": 2,
        "--max-explain-characters": 200,
        "--max-header-seconds": HEADER_SECONDS,
        "--max-request-seconds": 2,
        "--max-connections": 20,
    }
    with serving(run, *(part for pair in options.items() for part in pair)) as running:
        yield running
        assert running.post("/predict", {"text": "a great film"}).status == 200  # after all that was done to it
        code, _, err = running.stop()
        assert code == 0
        assert err == ""


# How much


def test_a_list_or_a_text_that_is_too_long_is_refused(server: Running) -> None:
    assert server.post("/predict", {"texts": ["a"] * 4}).status == 200
    assert server.post("/predict", {"text": "a" * 1000}).status == 200
    for path, body, told in (
        ("/predict", {"texts": ["a"] * 5}, "wanted at most 4 texts in a request, got 5"),
        ("/encode", {"text": "a" * 1001}, "text: wanted at most 1000 characters, got 1001"),
        ("/predict", {"texts": ["a", "b" * 1001]}, "texts[1]: wanted at most 1000 characters"),
        ("/explain", {"texts": ["a"] * 3}, "wanted at most 2 texts"),
        ("/explain", {"text": "a" * 201}, "text: wanted at most 200 characters"),
    ):
        answer = server.post(path, body)
        assert answer.status == 422
        assert told in answer.error


def test_a_large_body_is_refused_before_it_is_read(server: Running) -> None:
    answer = server.post("/predict", b"[" * (BODY_BYTES + 1))
    assert (answer.status, answer.error) == (413, "wanted a body of at most 4000 bytes; send the texts in parts")
    with server.connect() as connection:  # the answer comes before the body
        connection.sendall(POST + b"Content-Length: 100000000\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 413"
    with server.connect() as connection:  # nobody is asked to go on
        connection.sendall(POST + b"Expect: 100-continue\r\nContent-Length: 100000000\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 413"


def test_a_large_body_in_chunks_is_refused(server: Running) -> None:
    chunk = b"3e8\r\n" + b"[" * 1000 + b"\r\n"
    sent = POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 5
    with server.connect() as connection:
        connection.sendall(sent)
        assert connection.recv(12) == b"HTTP/1.1 413"
        assert b"HTTP/1.1" not in read_all(connection)  # closed although the body has no end
    whole = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b'{"text": "gr', b'eat"}')) + b"0\r\n\r\n"
    raw = server.send_raw(POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + whole)
    assert parsed(raw).status == 200


def test_a_client_that_sends_all_of_a_large_body_sees_the_refusal(server: Running) -> None:
    for _ in range(5):
        answer = server.post("/predict", b" " * 3_000_000)
        assert answer.status == 413


def test_a_length_that_lies_harms_nobody(server: Running) -> None:
    body = json.dumps({"text": "great"}).encode()
    short = server.send_raw(
        POST + b"Content-Length: 5\r\n\r\n" + body + b"\r\n\r\n"
    )  # the rest is taken for another request
    assert short.startswith(b"HTTP/1.1 422")
    assert b"HTTP/1.1 400" in short
    long = server.send_raw(POST + b"Content-Length: 999\r\n\r\n" + body)
    assert parsed(long).status == 408
    for length in (b"-5", b"1e3", b"0x10", b"", b"99999999999999999999999", b"5, 6"):
        raw = server.send_raw(POST + b"Content-Length: " + length + b"\r\n\r\n")
        assert parsed(raw).status in (400, 413), length


# How slow


def test_a_header_that_does_not_end_is_not_waited_for(server: Running) -> None:
    for beginning in (b"", b"POST /pre", POST):
        with server.connect() as connection:
            begun = time.monotonic()
            connection.sendall(beginning)
            assert read_all(connection) == b""
            assert HEADER_SECONDS * 0.9 < time.monotonic() - begun < HEADER_SECONDS + 5


def drip(connection: socket.socket) -> None:
    for _ in range(1000):
        connection.sendall(b"X-Slow: 1\r\n")
        time.sleep(0.05)


def test_a_header_that_comes_in_drops_is_not_waited_for(server: Running) -> None:
    with server.connect() as connection:
        begun = time.monotonic()
        connection.sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            drip(connection)
        assert time.monotonic() - begun < HEADER_SECONDS + 5


def test_a_second_header_on_a_kept_connection_is_not_waited_for_either(server: Running) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        begun = time.monotonic()
        connection.sendall(b"GET /li")
        read_all(connection)
        assert time.monotonic() - begun < HEADER_SECONDS + 3  # sooner than an idle one


def test_many_half_sent_headers_keep_nobody_out(server: Running) -> None:
    held = [server.connect() for _ in range(30)]
    try:
        for connection in held:
            connection.sendall(b"GET / HT")
        answers = []

        def is_answered() -> bool:
            answers.append(server.get("/live").status)
            return answers[-1] == 200

        until(is_answered)
        assert set(answers) <= {200, 503}
    finally:
        for connection in held:
            connection.close()


def test_too_many_connections_are_told_to_come_again(server: Running) -> None:
    def is_quiet() -> bool:
        return b"routepool_connections 1.0" in server.get("/metrics").body

    until(is_quiet)
    held = [server.connect() for _ in range(20)]
    answer = server.get("/live")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "too many connections" in answer.error
    for connection in held:
        connection.close()
    until(lambda: server.get("/live").status == 200)


def test_a_reader_who_does_not_read_is_left(run: Path) -> None:
    with serving(run, "--max-request-seconds", 1) as server, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        body = json.dumps({"texts": ["great"] * 256}).encode()
        head = POST.replace(b"/predict", b"/encode") + b"Content-Length: %d\r\n\r\n" % len(body)
        connection.sendall((head + body) * 200)  # the answers are more than any buffer between the two holds
        until(lambda: b'{path="/encode",status="200"}' in server.get("/metrics").body)
        until(lambda: b"routepool_connections 1.0" in server.get("/metrics").body)  # only this one


def test_an_answer_that_takes_too_long_is_given_up(run: Path) -> None:
    options = ("--max-request-seconds", 0.2, "--max-explain-characters", 20_000, "--max-explain-cost", 10**9)
    with serving(run, *options) as server:
        answer = server.post("/explain", {"texts": ["great " * 3000] * 16, "method": "leave-one-out"})
        assert answer.status == 504
        assert "not ready within 0.2 seconds" in answer.error
        assert server.post("/predict", {"text": "great"}).status == 200  # explanations hold up no prediction


def test_more_than_the_queue_holds_is_told_to_come_again(run: Path) -> None:
    async def flood(port: int) -> list[Answer]:
        async def one() -> Answer:
            async with Client(port) as client:
                return await client.post("/predict", {"texts": ["a great film " * 20] * 8})

        return await asyncio.gather(*(one() for _ in range(60)))

    with serving(run, "--max-queue", 8) as server:
        answers = asyncio.run(flood(server.port))
        assert {answer.status for answer in answers} == {200, 503}
        refused = next(answer for answer in answers if answer.status == 503)
        assert refused.headers["retry-after"] == "1"
        assert "too many texts are waiting" in refused.error
        assert server.post("/predict", {"text": "great"}).status == 200
