"""What a server refuses: malformed bodies, and who has no key. Always 4xx, in a sentence, and no text is logged."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli_runs import train_tiny

pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')

from support.serving import KEY, Running, parsed, serving

SECRET = "unspeakable"  # in every text that must not be logged


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("refusals"))


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[Running]:
    with serving(run) as running:
        yield running
        assert running.post("/predict", {"text": "a great film"}).status == 200  # after all that was done to it
        code, _, err = running.stop()
        assert (code, err) == (0, "")


@pytest.fixture(scope="module")
def guarded(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    file = tmp_path_factory.mktemp("key") / "key"
    file.write_text(KEY + "\n", encoding="utf-8")
    with serving(run, "--api-key-file", file, "--host", "0.0.0.0") as running:
        yield running


# Malformed

BODIES = {
    "nothing": b"",
    "not JSON": b"text=great",
    "cut off": b'{"text": "gre',
    "null": b"null",
    "a list": b'["great"]',
    "a string": b'"great"',
    "a number": b"3",
    "NaN": b"NaN",
    "no field": b"{}",
    "text NaN": b'{"text": NaN}',
    "text Infinity": b'{"text": -Infinity}',
    "text null": b'{"text": null}',
    "text a number": b'{"text": 3}',
    "text a huge number": b'{"text": 1e999}',
    "text a long integer": b'{"text": ' + b"9" * 100_000 + b"}",
    "text true": b'{"text": true}',
    "text a list": b'{"text": ["great"]}',
    "texts a string": b'{"texts": "great"}',
    "texts with null": b'{"texts": ["great", null]}',
    "texts with NaN": b'{"texts": ["great", NaN]}',
    "texts nested": b'{"texts": [["great"]]}',
    "both": b'{"text": "a", "texts": ["b"]}',
    "unknown field": b'{"text": "a", "txet": "b"}',
    "unknown field, half a pair": b'{"text": "a", "\\ud800": "b"}',
    "lone surrogate": b'{"text": "gre\\ud800at"}',
    "lone low surrogate": b'{"texts": ["a", "\\udc00"]}',
    "bytes not UTF-8": b'{"text": "\xff\xfe"}',
    "surrogate as UTF-8": b'{"text": "\xed\xa0\x80"}',
    "a zero byte": b'{"text": "a\x00b"}',
    "deep list": b"[" * 500_000,
    "deep text": b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep object": b'{"text":' * 50_000,
    "rounds a string": b'{"text": "a", "rounds": "yes"}',
    "rounds a number": b'{"text": "a", "rounds": 1}',
    "unknown method": b'{"text": "a", "method": "guessing"}',
    "unknown label": b'{"text": "a", "label": "ugly"}',
    "method half a pair": b'{"text": "a", "method": "\\ud800"}',
    "method a number": b'{"text": "a", "method": 1}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("path", ["/predict", "/explain", "/encode"])
def test_a_malformed_body_is_told_in_a_sentence(server: Running, path: str, body: bytes) -> None:
    answer = server.post(path, body)
    assert 400 <= answer.status < 500
    assert answer.error
    assert "\n" not in answer.error


def test_what_is_wrong_is_named_by_its_place(server: Running) -> None:
    for body, told in (
        ({"texts": ["a", 3]}, "texts[1]: Input should be a valid string"),
        ({"text": 3}, "text: Input should be a valid string"),
        ({}, "wanted either text, a string, or texts, a list of strings"),
        ({"text": "a", "txet": "b"}, "txet: Extra inputs are not permitted"),
        ({"text": "a\ud800"}, "text: wanted Unicode text, got half of a surrogate pair; correct the escapes"),
    ):
        assert server.post("/predict", body).error == told
    assert server.post("/explain", {"text": "a", "label": "goood"}).error == (
        "unknown label 'goood', did you mean 'good'? Known: bad, good"
    )
    assert server.post("/explain", {"text": "a", "method": "gradeint"}).error.startswith(
        "unknown method 'gradeint', did you mean 'gradient'?"
    )


def test_only_json_is_read(server: Running) -> None:
    """A form of a web page elsewhere cannot send that type without asking."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "nonsense", ""):
        answer = server.post("/predict", {"text": "a"}, Content_Type=kind)
        assert answer.status == 422
        assert "Content-Type: application/json" in answer.error


def test_unknown_addresses_and_methods_are_errors(server: Running) -> None:
    assert (server.get("/nowhere").status, server.get("/nowhere").error) == (404, "Not Found")
    answer = server.get("/predict")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert server.ask("PUT", "/predict", b"{}").status == 405


@pytest.mark.parametrize("path", ["/predict/", "/labels/", "/docs/", "/assets/page.css/", "//localhost/predict/"])
def test_nobody_is_sent_elsewhere(server: Running, guarded: Running, path: str) -> None:
    """A redirection would lead to the address in the Host header, which the sender of a link may choose."""
    for running, headers in ((server, {}), (guarded, {"Host": "evil.example", "X_API_Key": KEY})):
        answer = running.get(path, **headers)
        assert (answer.status, answer.error) == (404, "Not Found")
        assert "location" not in answer.headers


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nConnection: close\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"\r\n" * 100 + b"\x00",
    ],
)
def test_what_is_not_http_is_refused(server: Running, raw: bytes) -> None:
    answer = server.send_raw(raw)
    assert answer == b"" or 400 <= parsed(answer).status < 500


# Who


@pytest.mark.parametrize("path", ["/predict", "/explain", "/encode", "/reload"])
def test_the_key_is_wanted(guarded: Running, path: str) -> None:
    for headers in (
        {},
        {"X_API_Key": ""},
        {"X_API_Key": KEY[:-1]},
        {"X_API_Key": KEY + "x"},
        {"X_API_Key": "ümlaut-key-of-some-length"},
        {"Authorization": KEY},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": "Bearer"},
    ):
        answer = guarded.post(path, {"text": "a"}, **headers)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer"), headers
        assert "X-API-Key" in answer.error


def test_the_key_opens(guarded: Running) -> None:
    assert guarded.post("/predict", {"text": "a"}, X_API_Key=KEY).status == 200
    assert guarded.post("/predict", {"text": "a"}, Authorization=f"bearer {KEY}").status == 200
    assert guarded.post("/reload", b"", X_API_Key=KEY).json == {"status": "reloaded"}
    for path in ("/labels", "/metrics", "/nowhere"):
        assert guarded.get(path).status == 401
    assert guarded.get("/labels", X_API_Key=KEY, Host="models.example").status == 200


def test_the_page_state_and_description_need_no_key(guarded: Running) -> None:
    for path in ("/", "/docs", "/openapi.json", "/assets/page.css", "/live", "/ready"):
        assert guarded.get(path).status == 200


def test_without_a_key_only_loopback_names_are_answered(server: Running) -> None:
    """A web page whose name was made to lead here is not answered."""
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", ""):
        assert server.get("/labels", Host=host).status == 421, host
    for host in ("localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:8000", "[0:0::1]", "127.1.2.3"):
        assert server.get("/labels", Host=host).status == 200, host


@pytest.mark.parametrize(
    "host",
    [
        "[::1]evil.example", "[::1]:evil", "[::1].evil.example:80", "[::1", "[::1]]", "[[::1]]", "[::1%25lo]",
        "[127.0.0.1]", "[localhost]", "localhost:evil", "localhost:80:evil", "127.0.0.1:80@evil.example",
        "evil.example@localhost", "localhost:80/evil", "127.0.0.1:80,evil.example", "localhost:٨٠", "[]", ":80",
    ],
)  # fmt: skip
def test_a_name_that_only_begins_like_a_loopback_one_is_not_answered(server: Running, host: str) -> None:
    answer = parsed(server.send_raw(b"GET /labels HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n\r\n" % host.encode()))
    assert answer.status in (400, 421)


def test_a_server_without_a_key_is_not_reloaded_over_the_net(server: Running) -> None:
    answer = server.post("/reload", b"")
    assert answer.status == 403
    assert "SIGHUP" in answer.error


@pytest.mark.parametrize("verbose", [False, True])
def test_texts_are_never_logged(run: Path, verbose: bool) -> None:
    with serving(run, "--max-body-bytes", 2000, verbose=verbose) as server:
        for path in ("/predict", "/explain", "/encode"):
            server.post(path, {"text": SECRET})
            server.post(path, {"text": SECRET, SECRET: SECRET})
            server.post(path, {"texts": [SECRET, 3]})
            server.post(path, {"text": SECRET * 1000})
            server.post(path, json.dumps({"text": SECRET}).encode()[:-1])
            server.post(path, {"text": SECRET}, Host="evil.example")
        server.post("/explain", {"text": "a", "label": SECRET})
        server.get(f"/{SECRET}?{SECRET}", Authorization=SECRET)
        _, out, err = server.stop()
        assert SECRET not in out + err
