"""The one path from text to labels: complete, in order, and the same by every door."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import planted

from routepool.errors import InputError
from routepool.persistence import SavedModel, save_model
from routepool.scoring.predictor import Predictor, load, of_saved
from routepool.scoring.probabilities import chosen, probabilities
from routepool.scoring.torch_backend import logits_of

TEXTS = [example.text for example in planted.planted(300, seed=3)]


@pytest.fixture(scope="module")
def saved() -> SavedModel:
    return replace(planted.train(planted.tiny(epochs=2)).saved, temperature=1.7)


@pytest.fixture(scope="module")
def predictor(saved: SavedModel) -> Predictor:
    return of_saved(saved)


def test_probabilities_are_those_of_the_logits_and_the_temperature(saved: SavedModel, predictor: Predictor) -> None:
    logits = logits_of(saved.classifier, saved.tokenizer.encode(TEXTS))
    shares = probabilities(logits, temperature=1.7)
    np.testing.assert_array_equal(predictor.predict_proba(TEXTS), shares)
    assert predictor.predict(TEXTS) == [label for (label,) in chosen(shares, planted.LABELS)]


def test_rows_keep_their_order_whatever_the_batches(predictor: Predictor) -> None:
    """Long and short texts in turn: each row is that of its text alone."""
    texts = [" ".join(TEXTS[place : place + length]) for place, length in enumerate([1, 9, 2, 30, 1, 5])]
    together = predictor.predict_proba(texts)
    alone = np.concatenate([predictor.predict_proba([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert len(set(together[:, 0].round(6))) == len(texts)


def test_a_stream_gives_the_same_in_the_same_order(predictor: Predictor) -> None:
    streamed = list(predictor.stream(iter(TEXTS)))
    np.testing.assert_allclose([one.probabilities for one in streamed], predictor.predict_proba(TEXTS), atol=1e-6)
    assert [one.labels[0] for one in streamed] == predictor.predict(TEXTS)


def test_a_stream_answers_before_its_end_is_read(predictor: Predictor) -> None:
    read = 0

    def endless() -> Any:
        nonlocal read
        while True:
            read += 1
            yield "a merry cup of tea"

    assert len(list(islice(predictor.stream(endless()), 10))) == 10
    assert read < 10_000


def test_vectors_are_as_long_as_the_last_aggregator_makes_them(predictor: Predictor) -> None:
    assert predictor.encode(TEXTS[:5]).shape == (5, 2 * 8)


def test_no_texts_and_empty_texts_have_their_rows(predictor: Predictor) -> None:
    assert predictor.predict([]) == []
    assert predictor.predict_proba([]).shape == (0, 2)
    assert list(predictor.stream([])) == []
    shares = predictor.predict_proba(["", "   ", "\ud800"])
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(1), 1)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "encode", "stream"])
def test_one_string_is_not_a_list_of_texts(predictor: Predictor, method: str) -> None:
    with pytest.raises(InputError, match="got one string; put it in a list"):
        getattr(predictor, method)("a merry cup of tea")


@pytest.mark.parametrize("wrong", [None, 3.5, b"bytes", ["a", "list"], float("nan")])
@pytest.mark.parametrize("method", ["predict", "stream"])
def test_what_is_no_text_is_refused(predictor: Predictor, method: str, wrong: object) -> None:
    with pytest.raises(InputError, match="a text must be a string, got"):
        list(getattr(predictor, method)(["fine", wrong]))


def test_a_predictor_from_a_folder_agrees(saved: SavedModel, predictor: Predictor, tmp_path: Path) -> None:
    save_model(tmp_path, saved, card={})
    np.testing.assert_array_equal(load(tmp_path).predict_proba(TEXTS), predictor.predict_proba(TEXTS))


def test_a_model_of_several_labels_uses_its_thresholds_and_a_half_without(saved: SavedModel) -> None:
    several = of_saved(replace(saved, multi_label=True, thresholds=(0.0, 1.0)))
    assert set(several.predict(TEXTS[:20])) == {("glad",)}
    assert several.stream(TEXTS[:1]).__next__().labels == ("glad",)
    halves = of_saved(replace(saved, multi_label=True, thresholds=None))
    expected = chosen(halves.predict_proba(TEXTS), planted.LABELS, (0.5, 0.5))
    assert halves.predict(TEXTS) == expected
    sigmoids = probabilities(
        logits_of(saved.classifier, saved.tokenizer.encode(TEXTS)), temperature=1.7, multi_label=True
    )
    np.testing.assert_array_equal(halves.predict_proba(TEXTS), sigmoids)


def test_documents_are_read_as_documents() -> None:
    fitted = planted.train(planted.tiny(depth=2, epochs=1), of=planted.task(sentences=3))
    documents = [example.text for example in planted.planted(30, seed=4, sentences=3)]
    predictor = of_saved(fitted.saved)
    logits = logits_of(fitted.saved.classifier, fitted.saved.tokenizer.encode(documents, depth=2))
    np.testing.assert_array_equal(predictor.predict_proba(documents), probabilities(logits))
    streamed = [one.probabilities for one in predictor.stream(documents)]
    np.testing.assert_allclose(streamed, predictor.predict_proba(documents), atol=1e-6)
