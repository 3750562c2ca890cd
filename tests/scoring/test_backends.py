"""A folder says what computes it; whatever that is, it sees texts a buffer at a time, and a predictor does the rest."""

import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.cli_runs import refused, succeed
from support.model_folders import TEXTS, change_config, tiny_model

from routepool import load
from routepool.batching.padding import BUFFER
from routepool.errors import NotFiniteError, UnknownNameError
from routepool.persistence import save_model
from routepool.scoring import Encoding, Prediction, Predictor
from routepool.text import Encoded, TextReader, Tokenizer

# A runtime of its own for exported models, as a file of routepool.extras is written: the weights are not read at all.
MODULE = """
import json
from pathlib import Path

import numpy as np

from routepool.persistence.description import Description
from routepool.scoring import BACKENDS, Predictor
from routepool.text import read_tokenizer


class Lengths:
    depth, parts = 1, 1

    def logits(self, encoded):
        return np.array([[0, len(text.ids)] for text in encoded], dtype=np.float32).reshape(-1, 2)

    vectors = logits


@BACKENDS.register("lengths")
def load(folder):
    config = Description.from_config(json.loads((Path(folder) / "config.json").read_text()))
    tokenizer = read_tokenizer((Path(folder) / "tokenizer.json").read_text())
    return Predictor(tokenizer, Lengths(), config.labels, temperature=config.temperature, columns=config.columns)
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose config.json names the backend of a module that has been imported."""
    folder = tmp_path_factory.mktemp("backends")
    (folder / "lengths_backend.py").write_text(MODULE, encoding="utf-8")
    run = folder / "run"
    save_model(run, tiny_model(temperature=2.0), card={})
    change_config(run, backend="lengths")
    (run / "model.safetensors").unlink()
    sys.path.insert(0, str(folder))
    try:
        import lengths_backend  # type: ignore[import-not-found]  # noqa: F401
    finally:
        sys.path.remove(str(folder))
    return run


def test_an_exported_model_is_not_explained(exported: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text,label\na warm day,warm\na cold night,cold\n", encoding="utf-8")
    for question in (["a warm day"], ["--audit", data], ["--capsules", data]):
        err = refused("explain", exported, *question)
        assert "an exported model cannot be explained; load the folder it was exported from" in err
        assert len(err.splitlines()) == 1


def test_a_folder_is_loaded_by_the_backend_that_it_names(exported: Path) -> None:
    predictor = load(exported)
    assert predictor.labels == ("cold", "warm")
    logits = [[0, len(text.ids)] for text in predictor.tokenizer.encode(TEXTS)]
    np.testing.assert_array_equal(predictor.logits(TEXTS), logits)
    np.testing.assert_allclose(predictor.predict_proba(["soup soup"]), [[1 / (1 + np.e), np.e / (1 + np.e)]])
    assert predictor.encode(TEXTS, capsules=True).shape == (3, 1, 2)


def test_the_command_line_uses_it_too(exported: Path) -> None:
    out = succeed("predict", exported, "--format", "jsonl", stdin=b"soup soup\n").out
    assert out == '{"row": 1, "label": "warm", "probability": 0.731059, "unread": 0, "known": 2}\n'


def test_a_folder_that_names_no_backend_is_one_of_torch(tmp_path: Path) -> None:
    save_model(tmp_path / "run", tiny_model(), card={})
    assert b'"backend"' not in (tmp_path / "run" / "config.json").read_bytes()
    expected = load(tmp_path / "run").predict_proba(TEXTS)
    change_config(tmp_path / "run", backend="torch")
    np.testing.assert_array_equal(load(tmp_path / "run").predict_proba(TEXTS), expected)


@pytest.mark.parametrize("name", ["os.path", 3, ["torch"], None])
def test_a_name_that_is_not_in_the_table_is_refused(name: object, tmp_path: Path) -> None:
    save_model(tmp_path / "run", tiny_model(), card={})
    change_config(tmp_path / "run", backend=name)
    with pytest.raises(UnknownNameError, match=r"unknown backend .* Known: .*torch"):
        load(tmp_path / "run")
    assert "unknown backend" in refused("predict", tmp_path / "run", "-")


class Recording:
    """The length of each text in words; what it was asked at once is kept."""

    depth, parts = 1, 1

    def __init__(self, broken: int = -1) -> None:
        self.asked: list[int] = []
        self._broken = broken

    def logits(self, encoded: Sequence[Encoded]) -> NDArray[np.float32]:
        self.asked.append(len(encoded))
        lengths = np.array([[0, len(text.ids)] for text in encoded], dtype=np.float32)
        lengths[lengths[:, 1] == self._broken] = np.nan
        return lengths

    vectors = logits


def tokenizer() -> TextReader:
    return Tokenizer.build(["a"])


def words_of(result: Prediction | Encoding) -> int:
    return round(float(result.vector[1])) if isinstance(result, Encoding) else result.reading.known


def test_a_stream_hands_whole_buffers_to_the_backend_and_gives_results_in_order() -> None:
    texts = ["a " * (number * 7 % 11) for number in range(BUFFER + 100)]
    for method in ("stream", "stream_encodings"):
        backend = Recording()
        results = getattr(Predictor(tokenizer(), backend, ("x", "y")), method)(iter(texts))
        assert [words_of(result) for result in results] == [number * 7 % 11 for number in range(len(texts))]
        assert backend.asked == [BUFFER, 100]


def test_no_more_is_read_than_a_buffer() -> None:
    read = 0

    def endless() -> object:
        nonlocal read
        while True:
            read += 1
            yield "a"

    results = Predictor(tokenizer(), Recording(), ("x", "y")).stream(endless())  # type: ignore[arg-type]
    list(islice(results, BUFFER))
    assert read == BUFFER


def test_the_first_text_that_is_not_finite_is_named_after_all_before_it() -> None:
    backend = Recording(broken=3)
    texts = ["a"] * (BUFFER + 300) + ["a a a"] + ["a"] * 9 + ["a a a"]
    given: list[Prediction] = []
    with pytest.raises(NotFiniteError) as caught:
        given.extend(Predictor(tokenizer(), backend, ("x", "y")).stream(texts))
    assert len(given) == caught.value.place == BUFFER + 300
