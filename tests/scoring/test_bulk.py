"""From Python as from the command line: a file of texts in, a file of predictions or vectors out, whatever computes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.cli_runs import succeed
from support.model_folders import tiny_model

from routepool.errors import InputError, NotFiniteError
from routepool.persistence import save_model
from routepool.scoring import Encoding, Prediction, RowLayout, encode_file, predict_file
from routepool.scoring.predictor import load
from routepool.text import Reading

LINES = ["stars,review", "3,warm soup", "2,warm bread and cold soup", "1,qqq"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("bulk") / "run"
    save_model(run, tiny_model(), card={})
    return run


@pytest.fixture
def new(tmp_path: Path) -> str:
    path = tmp_path / "new.csv"
    path.write_text("\n".join([*LINES, "one,two,three", ""]), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("of_folder", [True, False])
def test_a_file_is_that_of_the_command(of_folder: bool, run: Path, new: str, tmp_path: Path) -> None:
    model = run if of_folder else load(run)
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    layout = RowLayout(format="jsonl", top=2, every_label=True, keep=True)
    predict_file(model, new, ours, layout, on_error="skip")
    asked = ("--format", "jsonl", "-k", 2, "--prob", "--keep", "--on-error", "skip")
    succeed("predict", run, new, "--out", theirs, *asked)
    assert Path(ours).read_bytes() == Path(theirs).read_bytes()
    encode_file(model, new, f"{ours}.npy", on_error="skip")
    succeed("encode", run, new, "--out", f"{theirs}.npy", "--on-error", "skip")
    assert Path(f"{ours}.npy").read_bytes() == Path(f"{theirs}.npy").read_bytes()


def test_what_there_is_to_say_of_the_file_is_handed_back(run: Path, new: str, tmp_path: Path) -> None:
    done = predict_file(run, new, str(tmp_path / "out.csv"), on_error="skip")
    assert [one.row for one in done.reader.skipped] == [5]
    unknown = "texts without a word that the model knows: 1 of 3, their results mean nothing (row 4)"
    assert done.unread.lines() == [unknown]


def test_results_can_be_watched_on_their_way(run: Path, new: str, tmp_path: Path) -> None:
    passed: list[Any] = []

    def watch(results: Iterable[Any]) -> Iterator[Any]:
        for result in results:
            passed.append(result)
            yield result

    for write, out in ((predict_file, "out.csv"), (encode_file, "out.npy")):
        passed.clear()
        write(run, new, str(tmp_path / out), on_error="skip", watch=watch)
        assert [example.row for example, _ in passed] == [2, 3, 4]


def test_an_output_that_is_there_is_kept_unless_forced(run: Path, new: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="there is such a file already"):
        predict_file("no such run", new, str(out))
    with pytest.raises(InputError, match="3 fields"):
        predict_file(run, new, str(out), force=True)
    assert out.read_text("utf-8") == "mine"
    predict_file(run, new, str(out), force=True, on_error="skip")
    assert len(out.read_text("utf-8").splitlines()) == 4


def test_a_layout_that_cannot_be_is_refused(run: Path, new: str) -> None:
    with pytest.raises(InputError, match="must be csv or jsonl, got 'xml'"):
        predict_file(run, new, layout=RowLayout(format="xml"))
    with pytest.raises(InputError, match="must be at most 2, the labels of the model, got 3"):
        predict_file(run, new, layout=RowLayout(top=3))


class Elsewhere:
    """An engine that is no predictor: texts are counted in pairs, as if by others."""

    labels: tuple[str, ...] = ("even", "odd")
    multi_label = False
    columns: Mapping[str, Any] | None = {"text": "review", "header": True}

    def __init__(self, broken: str = "") -> None:
        self._broken = broken

    def stream(self, texts: Iterable[str]) -> Iterator[Prediction]:
        for place, text in enumerate(texts):
            if text == self._broken:
                raise NotFiniteError(place)
            odd = len(text) % 2
            yield Prediction((self.labels[odd],), np.array([1.0 - odd, odd]), Reading(0, 1))

    def stream_encodings(self, texts: Iterable[str], *, capsules: bool = False) -> Iterator[Encoding]:
        for text in texts:
            yield Encoding(np.array([len(text)], dtype=np.float32), Reading(0, 1))

    def encode(self, texts: Sequence[str], *, capsules: bool = False) -> NDArray[np.float32]:
        return np.array([[len(text)] for text in texts], dtype=np.float32).reshape(-1, 1)


def test_any_engine_shares_reading_rows_and_writing(new: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    predict_file(Elsewhere(), new, str(out), on_error="skip")
    assert out.read_text("utf-8") == "row,label,probability\n2,odd,1.0\n3,even,1.0\n4,odd,1.0\n"
    encode_file(Elsewhere(), new, str(tmp_path / "out.npy"), on_error="skip")
    assert np.load(tmp_path / "out.npy").tolist() == [[9.0], [24.0], [3.0]]


def test_an_engine_names_the_text_and_the_file_its_row(new: str, tmp_path: Path) -> None:
    with pytest.raises(NotFiniteError, match=r"answer to .*new\.csv, row 3 is not a finite number") as caught:
        predict_file(Elsewhere(broken="warm bread and cold soup"), new, str(tmp_path / "out.csv"))
    assert caught.value.place == 1
    assert not (tmp_path / "out.csv").exists()
