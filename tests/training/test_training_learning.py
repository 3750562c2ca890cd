"""Models that learn: every aggregator, words and documents, pre-trained vectors, half precision, further training."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support import planted

from routepool.errors import InputError
from routepool.layers.blocks import LockedDropout
from routepool.persistence import SavedModel, load_model, save_model
from routepool.settings import AGGREGATORS, OF_LEARNING, change
from routepool.training import Fitted, Task

BUILT_IN = ("max", "mean", "attention", "structured-attention", "multi-hop", "routing", "reverse-routing")


def learned(aggregator: str, *, sentences: int = 1, **settings: str) -> Fitted:
    preset = planted.quick(aggregator=aggregator, depth=min(sentences, 2), **settings)
    return planted.train(preset, of=planted.task(train=120, dev=40, sentences=sentences))


def test_every_registered_aggregator_is_tried_here() -> None:
    assert set(BUILT_IN) <= set(AGGREGATORS.names())


@pytest.mark.parametrize("sentences", [1, 3], ids=["words", "documents"])
@pytest.mark.parametrize("aggregator", BUILT_IN)
def test_a_model_learns_planted_words(aggregator: str, sentences: int) -> None:
    assert learned(aggregator, sentences=sentences).progress.best_score > 0.95


def test_half_precision_learns_and_keeps_full_weights() -> None:
    fitted = learned("routing", precision="bf16")
    assert fitted.progress.best_score > 0.95
    assert {tensor.dtype for tensor in planted.weights(fitted).values()} == {torch.float32}
    assert not planted.identical(fitted, learned("routing"))


def test_full_precision_after_half_is_full() -> None:
    before = planted.train()
    planted.train(planted.tiny(precision="bf16"))
    assert planted.identical(planted.train(), before)


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InputError, match="precision must be one of full, bf16, got 'fp16'"):
        planted.tiny(precision="fp16")


def test_known_words_start_from_their_vectors_which_freezing_keeps(tmp_path: Path) -> None:
    words = {
        "merry": [1.0, 0.0, 2.0],
        "gloomy": [-1.0, 0.5, 0.0],
        "never-seen": [0.0, 0.0, 1.0],
        "tea": [0.5, 0.5, 0.5],
    }
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in words.items()))
    task = replace(planted.task(), vectors=str(path))
    fitted = planted.train(planted.tiny(epochs=2, frozen_epochs=2), of=task)
    saved = fitted.saved
    assert saved.model_config.embedding_size == 3
    table = saved.classifier.get_parameter("levels.0.embedding.weight")
    for word in ("merry", "gloomy", "tea"):
        assert table[saved.tokenizer.words.index(word)].tolist() == words[word]
    assert fitted.coverage
    moved = planted.train(planted.tiny(epochs=1, frozen_epochs=0), of=task).saved.classifier
    assert (
        moved.get_parameter("levels.0.embedding.weight")[saved.tokenizer.words.index("merry")].tolist()
        != words["merry"]
    )


@pytest.fixture(scope="module")
def trained() -> SavedModel:
    return planted.train().saved


def test_a_trained_model_goes_on_from_its_weights_with_its_words(trained: SavedModel) -> None:
    before = planted.weights(trained)
    new = Task(planted.planted(40, seed=5), planted.planted(20, seed=6), planted.LABELS)
    fitted = planted.train(planted.tiny(epochs=1, learning_rate=1e-6, lowest_rate=1e-6), of=new, start=trained)
    assert fitted.saved.tokenizer == trained.tokenizer
    assert fitted.saved.model_config == trained.model_config
    after = planted.weights(fitted)
    assert all(torch.allclose(after[name], before[name], atol=1e-4) for name in before)
    assert not planted.identical(fitted, trained)
    assert all(torch.equal(planted.weights(trained)[name], before[name]) for name in before)  # the old one stays


@pytest.mark.parametrize("sparse", [True, False])
def test_a_saved_model_goes_on_with_any_kind_of_update(trained: SavedModel, sparse: bool, tmp_path: Path) -> None:
    save_model(tmp_path, trained, card={})
    settings = planted.tiny(sparse=sparse)
    again = [planted.train(settings, start=start) for start in (trained, load_model(tmp_path))]
    assert planted.identical(*again)


def test_a_trained_model_goes_on_with_the_dropout_of_the_new_settings(trained: SavedModel) -> None:
    settings = planted.tiny(epochs=1, dropout=0.6, dropout_kind="locked", dropout_places=("encoder",), hidden_size=9)
    saved = planted.train(settings, start=trained).saved
    asked = {name: getattr(settings.model, name) for name in OF_LEARNING}
    assert saved.model_config == change(trained.model_config, **asked)  # and the size stays that of the trained one
    (level,) = saved.classifier.levels
    assert isinstance(level.before_encoder, LockedDropout)
    assert level.before_encoder.dropout == 0.6
    assert not planted.identical(saved, planted.train(planted.tiny(epochs=1), start=trained))


def test_going_on_with_other_labels_is_refused(trained: SavedModel) -> None:
    other = Task(planted.planted(8), planted.planted(8), ("glad", "sad", "tired"))
    with pytest.raises(InputError, match=r"one of the labels glad, sad; .* got one of the labels glad, sad, tired"):
        planted.train(of=other, start=trained)
    with pytest.raises(InputError, match="got any number of the labels glad, sad"):
        planted.train(of=replace(planted.task(), multi_label=True), start=trained)


def test_texts_cut_short_are_counted() -> None:
    settings = planted.tiny(epochs=1)
    cut = planted.train(replace(settings, text=replace(settings.text, max_words=4))).truncation
    lengths = np.array([len(one.text.rstrip(".").split()) + 1 for one in planted.task().train])
    assert (cut.texts, cut.words) == ((lengths > 4).sum(), (lengths - 4).clip(0).sum())
