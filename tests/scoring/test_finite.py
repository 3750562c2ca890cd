"""No probability, vector or explanation that is not finite is ever given: the text is named instead."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli_runs import call, refused
from support.model_folders import overflowing, tiny_model

from routepool.errors import InputError, NotFiniteError
from routepool.persistence import save_model
from routepool.scoring.predictor import Predictor, of_saved
from routepool.scoring.probabilities import probabilities
from routepool.settings import ModelConfig, TextConfig, TrainingConfig
from routepool.settings.declarations import COLDEST, HOTTEST
from routepool.training import Teacher, teacher_logits

TEXTS = ["fresh bread", "warm soup", "warm bread"]  # soup is more than 32 bits can hold


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return of_saved(overflowing())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("overflowing") / "run"
    save_model(run, overflowing(), card={})
    return run


METHODS = ["predict", "predict_proba", "logits", "encode", "predictions", "explain"]


@pytest.mark.parametrize("method", [*METHODS, "stream", "stream_vectors", "stream_encodings"])
def test_an_answer_that_is_not_finite_is_an_error_that_names_the_text(predictor: Predictor, method: str) -> None:
    ask: Callable[[list[str]], Any] = getattr(predictor, method)
    with pytest.raises(
        NotFiniteError, match=r"answer to texts\[1\] is not a finite number.*; copy the model folder"
    ) as caught:
        list(ask(TEXTS))
    assert caught.value.place == 1
    assert len(list(ask([TEXTS[0], TEXTS[2]]))) == 2


def test_a_stream_gives_what_comes_before(predictor: Predictor) -> None:
    stream: Iterator[Any] = predictor.stream(TEXTS)
    assert np.isfinite(next(stream).probabilities).all()
    with pytest.raises(NotFiniteError):
        next(stream)


@pytest.mark.parametrize("command", [["predict"], ["encode", "--out", "v.npy"], ["explain"], ["evaluate"]])
def test_the_command_line_names_the_row(
    command: list[str], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{text},warm\n" for text in TEXTS)
    (tmp_path / "x.csv").write_text("review,stars\n" + rows, encoding="utf-8")
    name, *options = command
    assert "answer to x.csv, row 3 is not a finite number" in refused(name, run, "x.csv", *options)
    assert "nan" not in call(name, run, "x.csv", *options).out
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_a_teacher_whose_answers_are_not_finite_teaches_nobody(run: Path, tmp_path: Path) -> None:
    teacher = Teacher.read(str(run))
    with pytest.raises(InputError, match="the teacher's answers are not finite numbers; take another teacher"):
        teacher_logits([teacher], TEXTS, ("cold", "warm"), folder=tmp_path)


@pytest.mark.parametrize("temperature", [COLDEST, HOTTEST])
def test_no_temperature_that_is_taken_makes_nan_of_finite_logits(temperature: float) -> None:
    logits = np.array([[3e38, -3e38], [1e-45, 0]], dtype=np.float32)
    for several in (False, True):
        assert np.isfinite(probabilities(logits, temperature=temperature, multi_label=several)).all()


@pytest.mark.parametrize("temperature", [5e-324, 1e-9, 1e300, math.inf, math.nan, 0.0, -1.0, True, "1"])
def test_a_temperature_out_of_all_proportion_is_refused(temperature: Any) -> None:
    with pytest.raises(InputError, match=r"temperature must be a number from 0\.001 to 1000, got"):
        tiny_model(temperature=temperature)
    saved = tiny_model()
    with pytest.raises(InputError, match="temperature must be a number"):
        Predictor(saved.tokenizer, of_saved(saved).backend, saved.labels, temperature=temperature)


@pytest.mark.parametrize("thresholds", [(math.nan, 0.5), (0.5, math.inf), (0.5,), (True, 0.5), "ab"])
def test_thresholds_are_shares_one_for_each_label(thresholds: Any) -> None:
    with pytest.raises(InputError, match="thresholds must be null or 2 numbers from 0 to 1, one for each label, got"):
        tiny_model(multi_label=True, thresholds=thresholds)
    saved = tiny_model()
    with pytest.raises(InputError, match="thresholds must be null or 2 numbers"):
        Predictor(saved.tokenizer, of_saved(saved).backend, saved.labels, multi_label=True, thresholds=thresholds)


FLOATS = [
    (group, name)
    for group in (TrainingConfig, ModelConfig, TextConfig)
    for name, value in group().to_dict().items()
    if isinstance(value, float)
]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400])
@pytest.mark.parametrize(("group", "name"), FLOATS)
def test_every_setting_is_finite(group: Any, name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"^{name} must be"):
        group(**{name: value})


def test_weights_of_texts_however_large_keep_their_ratios() -> None:
    from routepool.training.fitting import mean_of_one

    np.testing.assert_array_equal(mean_of_one([1e308, 1e308, 1e308, 5e307]), mean_of_one([2, 2, 2, 1]))
