"""Locked dropout drops the same features at every word of a text, whatever it is padded to or batched with."""

from pathlib import Path

import pytest
import torch
from support import planted
from torch import Tensor, nn

from routepool.errors import InputError
from routepool.layers.blocks import LockedDropout
from routepool.model import Classifier
from routepool.persistence import load_model, save_model
from routepool.settings import ModelConfig

SHARE = 0.4


def model(*, depth: int = 1) -> Classifier:
    torch.manual_seed(0)
    config = ModelConfig(
        depth=depth, embedding_size=200, hidden_size=50, aggregator="mean", dropout=SHARE, dropout_kind="locked"
    )
    return Classifier.build(config, vocabulary_size=20, classes=2).train()


def seen_by_encoder(classifier: Classifier, ids: Tensor, *, level: int = 0) -> list[Tensor]:
    """What the encoder of a level is given, group by group."""
    seen: list[Tensor] = []
    encoder = classifier.levels[level].encoder
    handle = encoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach()))  # type: ignore[union-attr]
    torch.manual_seed(1)
    classifier(ids, ids != 0)
    handle.remove()
    return seen


def test_the_features_dropped_are_those_of_the_row_at_every_word() -> None:
    (states,) = seen_by_encoder(model(), torch.randint(1, 20, (3, 7)))
    dropped = states == 0
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert not torch.equal(dropped[0], dropped[1])
    assert dropped.float().mean().item() == pytest.approx(SHARE, abs=0.08)


def test_what_is_kept_is_scaled_so_that_the_mean_stays() -> None:
    classifier = model()
    ids = torch.randint(1, 20, (3, 7))
    (states,) = seen_by_encoder(classifier, ids)
    vectors = classifier.levels[0].embedding(ids)  # type: ignore[operator]
    torch.testing.assert_close(states, torch.where(states == 0, states, vectors / (1 - SHARE)))


def test_padding_changes_nothing_of_what_is_dropped() -> None:
    ids = torch.randint(1, 20, (3, 7))
    padded = nn.functional.pad(ids, (0, 5))
    for grouped in (True, False):
        torch.manual_seed(2)
        short = model()
        torch.manual_seed(3)
        one = short(ids, ids != 0, grouped=grouped)
        torch.manual_seed(3)
        other = short(padded, padded != 0, grouped=grouped)
        torch.testing.assert_close(one, other)


def test_sentences_of_a_document_lose_the_same_features() -> None:
    (states,) = seen_by_encoder(model(depth=2), torch.randint(1, 20, (2, 4, 5)), level=1)
    dropped = states == 0
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert dropped.float().mean().item() == pytest.approx(SHARE, abs=0.1)


def test_nothing_is_dropped_in_prediction() -> None:
    states = torch.randn(2, 3, 5)
    layer = LockedDropout(SHARE).eval()
    assert torch.equal(layer(states), states)
    assert LockedDropout(SHARE)(torch.empty(0, 3, 5)).shape == (0, 3, 5)


def test_each_value_by_itself_is_still_the_default() -> None:
    level = Classifier.build(ModelConfig(), vocabulary_size=5, classes=2).levels[0]
    assert isinstance(level.before_encoder, nn.Dropout)


def test_the_kind_is_saved_with_the_model(tmp_path: Path) -> None:
    fitted = planted.train(planted.tiny(dropout_kind="locked", epochs=1))
    save_model(tmp_path / "run", fitted.saved, card={})
    assert load_model(tmp_path / "run").model_config.dropout_kind == "locked"
    with pytest.raises(InputError, match="dropout_kind must be one of each, locked, got 'variational'"):
        planted.tiny(dropout_kind="variational")
