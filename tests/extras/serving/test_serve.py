"""`routepool serve`: every address answers, as `routepool predict` and `explain` do, and what cannot start says why."""

import csv
import io
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from support.cli_runs import call, refused, sentences, succeed, train_tiny, write_csv
from support.model_folders import overflowing, tiny_model

pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')

from support.serving import KEY, Running, serving

from routepool.explaining import METHODS
from routepool.extras.serving.models import load_model
from routepool.persistence import save_model
from routepool.scoring.predictor import Predictor, load
from routepool.settings import ModelConfig

TEXTS = [text for text, _ in sentences(40)] + ["", "great " * 300, "nothing known here", "schön 好 🙂"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("serve"))


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[Running]:
    with serving(run) as running:
        yield running


@pytest.fixture(scope="module")
def model(run: Path) -> Predictor:
    return load(run)


def close(values: list[float]) -> Any:
    return pytest.approx(values, abs=1e-5)


def test_predictions_are_those_of_the_command_line(server: Running, run: Path, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "new.csv", [(text, "good") for text in TEXTS])
    rows = list(csv.DictReader(io.StringIO(succeed("predict", run, data, "--prob").out)))
    for given in ([{"texts": TEXTS}], [{"text": text} for text in TEXTS]):
        answers = [server.post("/predict", body) for body in given]
        assert {answer.status for answer in answers} == {200}
        results = [result for answer in answers for result in answer.json["results"]]
        assert [result["labels"] for result in results] == [[row["label"]] for row in rows]
        for label in ("good", "bad"):
            assert [result["probabilities"][label] for result in results] == close(
                [float(row[f"p({label})"]) for row in rows]
            )


def test_vectors_are_those_of_the_model(server: Running, model: Predictor) -> None:
    results = server.post("/encode", {"texts": TEXTS}).json["results"]
    for got, wanted in zip(results, model.encode(TEXTS).tolist(), strict=True):
        assert got["vector"] == close(wanted)


@pytest.mark.parametrize("method", METHODS.names())
def test_explanations_are_those_of_the_model(server: Running, model: Predictor, method: str) -> None:
    texts = TEXTS[:5]
    body = {"texts": texts, "method": method, "label": "bad", "rounds": True}
    results = server.post("/explain", body).json["results"]
    expected = model.explain(texts, method=method, label="bad", iterations=True)
    for got, wanted in zip(results, expected, strict=True):
        values = json.loads(wanted.to_json())
        (level,), (wanted_level,) = got.pop("levels"), values.pop("levels")
        assert {**got, "probabilities": close(list(got["probabilities"].values()))} == {
            **values,
            "probabilities": list(values["probabilities"].values()),
        }
        for span, other in zip(level["spans"], wanted_level["spans"], strict=True):
            assert (span["start"], span["end"], span["parent"]) == (other["start"], other["end"], other["parent"])
            assert [*span["weights"], span["score"]] == close([*other["weights"], other["score"]])
            assert len(span["rounds"]) == 3


def test_a_plain_explanation_has_the_usual_method_and_no_rounds(server: Running) -> None:
    (result,) = server.post("/explain", {"text": "a great film"}).json["results"]
    assert (result["method"], result["label"]) == ("integrated-gradients", "good")
    assert result["levels"][0]["spans"][1]["rounds"] == []


def test_no_texts_have_no_results(server: Running) -> None:
    for path in ("/predict", "/explain", "/encode"):
        assert server.post(path, {"texts": []}).json == {"results": []}


def test_labels_tell_what_the_model_is(server: Running) -> None:
    told = server.get("/labels").json
    assert (told["model"], told["labels"], told["multi_label"]) == ("run", ["bad", "good"], False)
    assert (told["aggregator"], told["capsules"], told["iterations"], told["depth"]) == ("routing", 2, 3, 1)
    assert (told["part"], told["share_of"]) == ("capsule", "word")
    assert told["methods"] == METHODS.names()
    assert told["default_method"] in told["methods"]
    assert {"body_bytes", "text_characters", "texts"} <= told["limits"].keys()


def test_several_labels_are_served(tmp_path: Path) -> None:
    config = ModelConfig(embedding_size=3, hidden_size=2, head_size=3, aggregator="max")
    save_model(tmp_path / "run", tiny_model(config=config, multi_label=True, thresholds=(0.3, 0.4)), card={})
    expected = load(tmp_path / "run").predict(TEXTS)
    with serving(tmp_path / "run") as server:
        results = server.post("/predict", {"texts": TEXTS}).json["results"]
        assert [tuple(result["labels"]) for result in results] == expected
        assert server.get("/labels").json["iterations"] == 1
        assert "there are no rounds to show" in server.post("/explain", {"text": "a", "rounds": True}).error


def test_a_model_on_a_pretrained_encoder_has_only_the_methods_that_work_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers", reason='needs pip install "routepool[hf]"')
    from support import tiny_encoder

    monkeypatch.setenv("ROUTEPOOL_CACHE", str(tmp_path / "cache"))
    encoder = tiny_encoder.write_encoder(tmp_path / "encoder")
    data = write_csv(tmp_path / "reviews.csv", sentences(40))
    quick = ("--set", "epochs=1", "--set", "head_size=8", "--set", "capsules=2")
    succeed("train", data, "--encoder", f"hf:{encoder}", "--out", tmp_path / "run", *quick)
    loaded = load_model(str(tmp_path / "run"))
    assert set(METHODS.names()) - set(loaded.description["methods"]) == {"gradient", "integrated-gradients"}
    assert loaded.description["default_method"] == "leave-one-out"
    models = loaded.predictors
    assert models[1].predict_proba(TEXTS) == pytest.approx(models[0].predict_proba(TEXTS), abs=1e-6)
    classifiers = [one.saved.classifier for one in models if one.saved is not None]
    assert len(set(map(id, classifiers))) == 3  # a thread each
    ours, theirs, shared = ({parameter.data_ptr() for parameter in one.parameters()} for one in classifiers)
    assert ours
    assert not ours & theirs
    assert shared == theirs  # a third needs no memory


def test_an_answer_says_how_much_of_the_text_was_read_and_known(tmp_path: Path) -> None:
    with serving(train_tiny(tmp_path, "--set", "max_words=6")) as server:
        for path in ("/predict", "/explain", "/encode"):
            results = server.post(path, {"texts": ["a great film", "great " * 9, "qqq zzz", ""]}).json["results"]
            assert [(result["unread"], result["known"]) for result in results] == [(0, 3), (3, 6), (0, 0), (0, 0)]
        _, _, err = server.stop()
    assert err == ""  # no warning of Python, which nobody would read


def test_an_answer_that_is_not_finite_is_a_sentence_that_names_the_text_and_spoils_no_other(tmp_path: Path) -> None:
    save_model(tmp_path / "run", overflowing(), card={})
    with serving(tmp_path / "run") as server:
        for path in ("/predict", "/encode", "/explain"):
            answer = server.post(path, {"texts": ["fresh bread", "warm soup"]})
            assert answer.status == 500
            assert answer.error.startswith("the model's answer to texts[1] is not a finite number, so its weights are")
            assert server.post(path, {"text": "fresh bread"}).status == 200


def test_a_model_that_cannot_answer_at_all_is_not_served(tmp_path: Path) -> None:
    saved = tiny_model()
    saved.classifier.load_state_dict({n: torch.full_like(w, 3e38) for n, w in saved.classifier.state_dict().items()})
    save_model(tmp_path / "run", saved, card={})
    told = refused("serve", tmp_path / "run", "--port", 0)
    assert told.startswith(f"{tmp_path / 'run'}: the model's answer to a text it was tried with is not a finite number")


def test_state_and_metrics_are_told(server: Running) -> None:
    assert server.get("/live").json == {"status": "live"}
    assert server.get("/ready").json == {"status": "ready"}
    server.post("/predict", {"texts": ["a", "b"]})
    server.get("/nowhere/at/all")
    answer = server.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = answer.body.decode().splitlines()
    assert any(line.startswith('routepool_requests_total{path="/predict",status="200"} ') for line in lines)
    assert any(line.startswith('routepool_requests_total{path="other",status="404"} ') for line in lines)
    assert any(line.startswith('routepool_batch_texts_count{lane="answers"} ') for line in lines)
    assert 'routepool_waiting_texts{lane="answers"} 0.0' in lines
    assert b"nowhere" not in answer.body


def test_every_answer_has_the_security_headers(server: Running) -> None:
    answers = [
        *(server.get(path) for path in ("/", "/docs", "/labels", "/nowhere", "/openapi.json", "/assets/page.css")),
        server.post("/predict", {"text": "a"}),
        server.post("/predict", b"?"),
        server.ask("DELETE", "/predict"),
    ]
    for answer in answers:
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_the_page_and_its_files_are_served_and_nothing_else_is(server: Running) -> None:
    page = server.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert server.get("/assets/page.css").headers["content-type"].startswith("text/css")
    for name in ("server.py", "..", "../server.py", "..%2Fserver.py", "%2e%2e/server.py", "", ".", "page.css/"):
        assert server.get(f"/assets/{name}").status == 404, name


def test_the_reference_needs_nothing_from_elsewhere(server: Running) -> None:
    page = server.get("/docs").body.decode()
    assert "<script" not in page
    assert "//" not in page.replace("<!doctype html>", "")
    for path in ("/predict", "/explain", "/encode", "/labels", "/reload", "/metrics", "/live", "/ready"):
        assert f"<code>{path}</code>" in page
    assert server.get("/assets/reference.css").status == 200


def test_a_taken_port_is_one_line_before_the_model_is_read(server: Running, tmp_path: Path) -> None:
    told = refused("serve", tmp_path / "no-model-here", "--port", server.port)
    assert told.startswith(f"port {server.port} of 127.0.0.1 cannot be had (Address already in use)")
    assert "choose another --port, or 0" in told


def test_what_cannot_be_served_is_one_line(tmp_path: Path) -> None:
    assert "wanted the folder of a model" in refused("serve", tmp_path, "--port", 0)
    assert "no such address" in refused("serve", tmp_path, "--host", "no.such.host.invalid")
    assert call("serve", tmp_path, "--port", 99_999).code == 2
    assert call("serve", tmp_path, "--max-texts", 0).code == 2
    assert call("serve", tmp_path, "--threads", 10**11).code == 2


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_without_a_key_only_loopback_is_served(host: str, run: Path) -> None:
    if host == "::" and not socket.has_ipv6:
        pytest.skip("needs IPv6")
    assert "can be reached by others; give a key" in refused("serve", run, "--host", host, "--port", 0)


def test_a_weak_key_is_refused(run: Path, tmp_path: Path) -> None:
    for content in (b"", b"short", b"with a space in between", "schlüssel-mit-umlaut".encode(), b"two-lines\nof-a-key"):
        (tmp_path / "key").write_bytes(content)
        told = refused("serve", run, "--api-key-file", tmp_path / "key")
        assert "wanted a key of 16 or more" in told
        assert not content or content.decode() not in told
    assert "No such file" in refused("serve", run, "--api-key-file", tmp_path / "none")
    (tmp_path / "key").write_text(KEY + "\n", encoding="utf-8")


def test_help_teaches() -> None:
    shown = succeed("serve", "--help").out
    for part in (
        "routepool serve runs/reviews",
        "curl",
        "--api-key-file",
        "--max-queue",
        "--max-explain-cost",
        "SIGTERM",
    ):
        assert part in shown
