"""Averaged weights: the plain moving average of every step, scored and kept, and exact across a resumed run."""

from pathlib import Path
from typing import Any

import pytest
import torch
from support import planted
from support.planted import Failing, resumed
from torch import Tensor

from routepool.errors import InputError
from routepool.model import Classifier
from routepool.scoring.predictor import of_saved
from routepool.training import Hook, StepReport, averaging

DECAY = 0.8


class Watching(Hook):
    """Keeps the weights after every step."""

    def __init__(self, model: Classifier) -> None:
        self.model, self.seen = model, [_copy(model)]

    def on_step(self, report: StepReport) -> None:
        self.seen.append(_copy(self.model))


def _copy(model: Classifier) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def watched(*, sparse: bool = True, **settings: Any) -> tuple[list[dict[str, Tensor]], dict[str, Tensor]]:
    """The weights after every step of a training, and those that it keeps."""
    preset = planted.tiny(epochs=2, dropout=0.0, sparse=sparse, **settings)
    untrained = planted.train(planted.tiny(epochs=1, learning_rate=1e-9, sparse=sparse)).saved
    watching = Watching(untrained.classifier)
    planted.trainer(untrained, preset.training, hooks=[watching]).fit()
    return watching.seen, _copy(untrained.classifier)


def plain_average(seen: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    average = seen[0]
    for step, weights in enumerate(seen[1:]):
        decay = min(DECAY, (1 + step) / (10 + step))
        average = {name: decay * average[name] + (1 - decay) * weights[name] for name in average}
    return average


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("rescale", [1e-3, 0.5])
def test_what_is_kept_is_the_plain_average_of_every_step(
    sparse: bool, rescale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(averaging, "RESCALE", rescale)
    seen, kept = watched(sparse=sparse, average_weights=DECAY)
    assert len(seen) == 17  # two epochs of eight steps, so the best epoch may be either
    candidates = [plain_average(seen[:9]), plain_average(seen)]
    assert any(all(torch.allclose(kept[name], one[name], atol=2e-6) for name in kept) for one in candidates)
    assert not torch.allclose(kept["head.output.weight"], seen[-1]["head.output.weight"], atol=1e-3)


def test_averaging_changes_nothing_of_what_is_learned() -> None:
    """Within the first epoch: the score of dev, which decides the next batch size, is another."""
    with_average, without = (watched(average_weights=decay)[0][8] for decay in (DECAY, 0.0))
    assert all(torch.equal(with_average[name], without[name]) for name in without)


def test_dev_scores_the_averaged_weights() -> None:
    fitted = planted.train(planted.quick(average_weights=0.9))
    texts, labels = zip(*((one.text, *(one.labels or ())) for one in planted.task().dev), strict=True)
    predicted = of_saved(fitted.saved).predict(texts)
    right = sum(one == label for one, label in zip(predicted, labels, strict=True))
    assert right / len(labels) == fitted.progress.best_score
    assert fitted.progress.best_score > 0.8


@pytest.mark.parametrize("every", [0, 3])
@pytest.mark.parametrize("failing", [{"step": 0}, {"epoch": 0}, {"step": 13}, {"epoch": 2}], ids=str)
@pytest.mark.parametrize("sparse", [True, False])
def test_a_resumed_run_has_the_same_average_to_the_last_bit(
    failing: dict[str, int], every: int, sparse: bool, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"average_weights": DECAY, "sparse": sparse}
    whole = planted.train(planted.tiny(**settings))
    with pytest.raises(ZeroDivisionError):
        planted.train(planted.tiny(**settings, checkpoint_steps=every), run=tmp_path, hooks=[Failing(**failing)])
    again = resumed(tmp_path, **settings, checkpoint_steps=every)
    assert planted.identical(again, whole)
    assert again.progress == whole.progress


def test_a_decay_that_never_moves_is_refused() -> None:
    with pytest.raises(InputError, match=r"average_weights must be at most 0\.99999, got 1\.0"):
        planted.tiny(average_weights=1.0)
