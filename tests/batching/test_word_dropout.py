"""Word dropout: real words only, a pure function of the batch's place, off unless asked for."""

from pathlib import Path

import numpy as np
import pytest
from support import planted, tiny_encoder

from routepool.batching import Batch, forget_words
from routepool.errors import InputError
from routepool.text import UNKNOWN

MASK = np.arange(50) < np.arange(10, 50)[:, None]
BATCH = Batch(np.arange(40), np.where(MASK, 7, 0), MASK)


def test_the_share_of_real_words_is_forgotten_and_padding_stays() -> None:
    ids = forget_words(BATCH, 0.3, seed=0, epoch=0, index=0).ids
    assert set(ids[MASK].tolist()) == {7, UNKNOWN}
    assert (ids[~MASK] == 0).all()
    words = MASK.sum()
    assert abs((ids[MASK] == UNKNOWN).mean() - 0.3) < 3 * np.sqrt(0.3 * 0.7 / words)


def test_a_batch_depends_on_its_place_alone() -> None:
    place = {"seed": 3, "epoch": 2, "index": 5}
    once = forget_words(BATCH, 0.3, **place).ids
    forget_words(BATCH, 0.3, seed=0, epoch=0, index=0)
    np.testing.assert_array_equal(forget_words(BATCH, 0.3, **place).ids, once)
    wider = Batch(BATCH.rows, np.pad(BATCH.ids, ((0, 0), (0, 3))), np.pad(MASK, ((0, 0), (0, 3))))
    np.testing.assert_array_equal(forget_words(wider, 0.3, **place).ids[:, :50], once)
    for changed in ({"seed": 4}, {"epoch": 3}, {"index": 6}):
        assert (forget_words(BATCH, 0.3, **{**place, **changed}).ids != once).any()


def test_training_uses_it_and_learns_the_unknown_word() -> None:
    plain, forgetful = (planted.train(planted.tiny(epochs=1, word_dropout=share)) for share in (0.0, 0.2))
    assert planted.identical(plain, planted.train(planted.tiny(epochs=1)))
    assert planted.identical(forgetful, planted.train(planted.tiny(epochs=1, word_dropout=0.2)))
    rows = [planted.weights(one)["levels.0.embedding.weight"][UNKNOWN] for one in (plain, forgetful)]
    assert (rows[0] != rows[1]).any()


def test_pieces_of_a_pre_trained_encoder_are_not_forgotten(tmp_path: Path) -> None:
    folder = tiny_encoder.write_encoder(tmp_path)
    with pytest.raises(InputError, match="word_dropout needs a model of words"):
        planted.train(planted.tiny(encoder=f"hf:{folder}", word_dropout=0.1))
