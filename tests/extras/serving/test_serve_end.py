"""The end of a server: exit code 0 within the drain, whatever it computes or loads, and whatever its model raises."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.cli_runs import train_tiny

pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')

from support.serving import Running, serving, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("end"))


def _long(words: int = 400) -> dict[str, Any]:
    """A request that costs 2.5 million words read: many turns of the thread that explains."""
    return {"texts": ["great " * words] * 16, "method": "leave-one-out"}


def _is_explaining(server: Running) -> bool:
    """Has the first turn of a long explanation begun?"""
    return b'routepool_batch_texts_count{lane="long explanations"}' in server.get("/metrics").body


def test_a_long_explanation_holds_up_neither_a_short_one_nor_the_end(run: Path) -> None:
    with serving(run, "--max-explain-cost", 10**9) as server, ThreadPoolExecutor(1) as pool:
        long = pool.submit(server.post, "/explain", _long())
        until(lambda: _is_explaining(server))
        assert server.post("/explain", {"text": "a great film"}).status == 200
        assert not long.done()
        code, _, err = server.stop()
        assert (code, err) == (0, "")
        assert long.result().status in (200, 504)


def test_the_dearest_explanation_that_is_taken_holds_up_no_short_one(run: Path) -> None:
    """With the usual limits: what costs more is refused before it is begun, by what it costs and what is wanted."""
    with serving(run) as server, ThreadPoolExecutor(1) as pool:
        refused = server.post("/explain", _long())
        assert refused.status == 422
        assert "by leave-one-out costs as much as predicting 2566400 words, wanted at most 1000000" in refused.error
        long = pool.submit(server.post, "/explain", _long(249))  # 16 x 249 x 250 = 996,000
        until(lambda: _is_explaining(server) or long.done())
        assert server.post("/explain", {"text": "a great film"}).status == 200
        assert server.stop()[0] == 0
        assert long.result().status in (200, 504)


def test_the_end_waits_for_no_late_answer(run: Path) -> None:
    """Requests that were told 504 long ago, and a queue full of them, are computed no further."""
    with serving(run, "--max-explain-cost", 10**9, "--max-request-seconds", 0.5) as server:
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: server.post("/explain", _long(2000 // 3)), range(6)))
        assert {answer.status for answer in answers} <= {503, 504}
        code, _, err = server.stop()
        assert (code, err) == (0, "")


UNSTOPPABLE = """
import torch
from routepool.extras.serving import models
own = models.compute
def compute(model, question, texts, *rest):
    while "for ever" in texts:  # as compiled code that asks nobody
        torch.mm(torch.ones(300, 300), torch.ones(300, 300))
    return own(model, question, texts, *rest)
models.compute = compute
"""


@pytest.mark.parametrize("path", ["/predict", "/explain", "/encode"])
def test_a_computation_that_cannot_be_stopped_does_not_stop_the_end(run: Path, path: str) -> None:
    with serving(run, "--max-request-seconds", 0.5, before=UNSTOPPABLE) as server:
        assert server.post(path, {"text": "for ever"}).status == 504
        code, _, err = server.stop()
        assert (code, err) == (0, "")


HANGING = """
import threading
from routepool.extras.serving import models, server
own, calls = models.load_model, []
def load_model(run):
    calls.append(run)
    if len(calls) > 1:
        threading.Event().wait()
    return own(run)
models.load_model = server.load_model = load_model
"""


def test_a_folder_that_does_not_load_does_not_stop_the_end(run: Path) -> None:
    with serving(run, before=HANGING) as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.post("/predict", {"text": "a"}).status == 200
        code, _, err = server.stop()
        assert (code, err) == (0, "")


PANICKING = """
from routepool.text import TextReader
own = TextReader.stream
class Panic(BaseException):
    pass
def stream(self, texts, depth=1):
    read = list(texts)
    if "panic" in read:
        raise Panic("panic")
    return own(self, read, depth)
TextReader.stream = stream
"""


def test_a_panic_of_compiled_code_fails_one_request_and_is_counted_and_logged(run: Path) -> None:
    with serving(run, before=PANICKING) as server:
        for path in ("/predict", "/explain", "/encode"):
            answer = server.post(path, {"text": "panic"})
            assert (answer.status, answer.error.partition(";")[0]) == (500, "the model failed on this request")
            assert server.post(path, {"text": "a"}).status == 200
            counted = f'routepool_requests_total{{path="{path}",status="500"}} 1.0'
            assert counted.encode() in server.get("/metrics").body
        assert server.get("/ready").status == 200
        code, _, err = server.stop()
        assert (code, err.count("error: the model failed with Panic")) == (0, 3)


def test_control_c_twice_waits_for_nobody(run: Path) -> None:
    with serving(run, "--max-explain-cost", 10**9) as server, ThreadPoolExecutor(1) as pool:
        long = pool.submit(server.post, "/explain", _long())
        until(lambda: _is_explaining(server))
        server.process.send_signal(signal.SIGINT)
        until(lambda: server.process.poll() is not None or not _listens(server))
        code, _, err = server.stop(signal.SIGINT)
        assert (code, err) == (0, "")
        assert long.result().status in (200, 503)


def _listens(server: Running) -> bool:
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return False
    return True
