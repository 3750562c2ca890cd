"""Requests of every kind made from the OpenAPI description: no 5xx, and no answer that it does not name."""

import json
from pathlib import Path

import pytest
from support.cli_runs import train_tiny

pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')
pytest.importorskip("schemathesis", reason="needs pip install schemathesis")

from support.serving import KEY, run_schemathesis, serving


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("openapi"))


def test_no_generated_request_gets_an_undocumented_answer(run: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY, encoding="utf-8")
    with serving(run, "--api-key-file", tmp_path / "key") as server:
        report = run_schemathesis(server, tmp_path, 4, "--exclude-path", "/reload")
        code, _, err = server.stop()
        assert (code, err) == (0, "")
    assert report["test_cases"]["generated"] > 100
    assert (report["failures"], report["errors"]) == ([], [])


def test_the_description_names_every_refusal(run: Path) -> None:
    with serving(run) as server:
        description = json.loads(server.get("/openapi.json").body)
    for path in ("/predict", "/explain", "/encode"):
        answers = description["paths"][path]["post"]["responses"]
        assert set(answers) == {"200", "400", "408", "413", "421", "422", "500", "503", "504"}
        for status, answer in answers.items():
            schema = answer["content"]["application/json"]["schema"]["$ref"]
            assert (schema == "#/components/schemas/Problem") == (status != "200")
