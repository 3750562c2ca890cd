"""The life of a server: batches across clients, a drain that loses nothing, a new model without a pause."""

import asyncio
import json
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from support.cli_runs import sentences, train_tiny

pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')

from support.model_folders import tiny_model
from support.serving import KEY, Client, Question, Running, ask_all, questions_of, serving, until

from routepool.persistence import save_model
from routepool.scoring.predictor import load

TEXTS = [text for text, _ in sentences(50)]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("life"))


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def questions(run: Path) -> list[Question]:
    return questions_of(TEXTS, load(run).predict_proba(TEXTS).tolist())


def test_many_clients_share_batches_and_each_gets_its_own_answers(run: Path) -> None:
    with serving(run) as server:
        outcomes = asyncio.run(ask_all(server.port, questions(run) * 8, 32))
        assert Counter(one.result for one in outcomes) == {"200": 400}
        lines = server.get("/metrics").body.decode().splitlines()
        numbers = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        assert float(numbers['routepool_batch_texts_sum{lane="answers"}']) == 400
        assert float(numbers['routepool_batch_texts_count{lane="answers"}']) < 200


@pytest.mark.parametrize("kept", [True, False], ids=["kept connections", "new connections"])
def test_a_drain_answers_what_was_accepted_and_ends_well(run: Path, kept: bool) -> None:
    with serving(run) as server:

        def asked() -> Iterator[Question]:
            for number, question in enumerate(cycle(questions(run))):
                if number == 80:  # 16 clients, each of which waits for its answer: 64 have come by now
                    server.process.send_signal(signal.SIGTERM)
                yield question

        outcomes = asyncio.run(ask_all(server.port, asked(), 16, kept=kept))
        _, err = server.process.communicate(timeout=30)
        assert (server.process.returncode, err) == (0, "")
    results = Counter(one.result for one in outcomes)
    assert set(results) <= {"200", "503", "refused"}, results
    assert results["200"] >= 64
    assert results["refused"] == 16


def test_a_drain_waits_for_a_long_answer_and_refuses_new_requests(run: Path) -> None:
    with serving(run, "--max-explain-characters", 20_000, "--max-explain-cost", 10_000_000) as server:
        body = json.dumps({"texts": ["great " * 1000] * 2, "method": "leave-one-out"}).encode()
        head = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with server.connect() as busy, server.connect() as idle, server.connect() as late:
            busy.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            for each in (idle, late):
                each.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert each.recv(12) == b"HTTP/1.1 200"
                time.sleep(0.05)
                each.recv(65536)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.4)
            late.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")  # it was on its way
            refused = late.recv(65536).lower()
            assert refused.startswith(b"http/1.1 503")
            assert b"\r\nconnection: close\r\n" in refused
            assert b"\r\nretry-after: 1\r\n" in refused
            with pytest.raises(ConnectionRefusedError):
                server.connect()
            assert idle.recv(100) == b""  # told to go
            busy.settimeout(60)
            assert busy.recv(12) == b"HTTP/1.1 200"
            received = b""
            while part := busy.recv(1 << 20):
                received += part
            assert len(json.loads(received.partition(b"\r\n\r\n")[2])["results"]) == 2
        assert server.process.wait(30) == 0


def test_control_c_drains_too(run: Path) -> None:
    with serving(run) as server:
        code, _, err = server.stop(signal.SIGINT)
        assert (code, err) == (0, "")


def test_a_new_model_is_taken_without_a_failed_request(run: Path, tmp_path: Path) -> None:
    """The model is replaced again and again while clients ask; every answer is that of one of the two models."""
    first, second = load(run).saved, tiny_model(seed=3)
    assert first is not None
    models = [{"good", "bad"}, {"cold", "warm"}]
    seen: Counter[str] = Counter()

    async def work(port: int, stop: asyncio.Event) -> None:
        async with Client(port, KEY) as client:
            while not stop.is_set():
                answer = await client.post("/predict", {"texts": TEXTS[:3]})
                assert answer.status == 200, answer
                kinds = {frozenset(result["probabilities"]) for result in answer.json["results"]}
                assert len(kinds) == 1  # never two models in one answer
                (kind,) = kinds
                assert kind in models
                seen["|".join(sorted(kind))] += 1

    async def swap(server: Running, stop: asyncio.Event) -> None:
        async with Client(server.port, KEY) as client:
            for number in range(6):
                await asyncio.to_thread(save_model, run, [second, first][number % 2], card={}, force=True)
                answer = await client.post("/reload", None)
                assert answer.json == {"status": "reloaded"}, answer
                told = await asyncio.to_thread(server.get, "/labels", X_API_Key=KEY)
                assert set(told.json["labels"]) == models[1 - number % 2]
        stop.set()

    async def both(server: Running) -> None:
        stop = asyncio.Event()
        await asyncio.gather(swap(server, stop), *(work(server.port, stop) for _ in range(8)))

    file = tmp_path / "key"
    file.write_text(KEY, encoding="utf-8")
    with serving(run, "--api-key-file", file) as server:
        asyncio.run(both(server))
        assert len(seen) == 2
        assert b'routepool_reloads_total{outcome="loaded"} 6.0' in server.get("/metrics", X_API_Key=KEY).body


def test_a_bad_model_leaves_the_old_one(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY, encoding="utf-8")
    with serving(run, "--api-key-file", file) as server:
        before = server.post("/predict", {"texts": TEXTS}, X_API_Key=KEY).json
        weights = run / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
        answer = server.post("/reload", b"", X_API_Key=KEY)
        assert answer.status == 409
        assert "the old model stays: " in answer.error
        assert "model.safetensors" in answer.error
        shutil.rmtree(run)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: b'{outcome="kept"} 2.0' in server.get("/metrics", X_API_Key=KEY).body)
        assert server.post("/predict", {"texts": TEXTS}, X_API_Key=KEY).json == before
        code, _, err = server.stop()
        assert code == 0
        assert err.count("warning: the old model stays: ") == 2


def test_a_reload_goes_on_though_its_client_leaves(run: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY, encoding="utf-8")
    with serving(run, "--api-key-file", tmp_path / "key") as server:
        save_model(run, tiny_model(seed=5), card={}, force=True)
        with server.connect() as connection:
            head = f"POST /reload HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {KEY}\r\nContent-Length: 0\r\n\r\n"
            connection.sendall(head.encode())
        until(lambda: server.get("/labels", X_API_Key=KEY).json["labels"] == ["cold", "warm"])
        code, _, err = server.stop()
        assert (code, err) == (0, "")


def test_sighup_loads_the_folder_again(run: Path) -> None:
    with serving(run) as server:
        save_model(run, tiny_model(seed=5), card={}, force=True)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: server.get("/labels").json["labels"] == ["cold", "warm"])
        wanted = load(run).predict_proba(["warm soup"])[0].tolist()
        (result,) = server.post("/predict", {"text": "warm soup"}).json["results"]
        assert list(result["probabilities"].values()) == pytest.approx(wanted, abs=1e-5)
