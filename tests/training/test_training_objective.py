"""What is learned: class weights, several labels, and probabilities calibrated on texts that decided nothing else."""

import logging
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from support import planted

from routepool.datasets import Example
from routepool.errors import InputError
from routepool.scoring.predictor import of_saved
from routepool.scoring.probabilities import probabilities
from routepool.scoring.torch_backend import logits_of
from routepool.training import Objective, Task, Trainer, balanced_weights, fitting


def test_balanced_weights_are_inverse_to_the_frequency_and_average_to_one_over_the_texts() -> None:
    targets = np.array([0] * 6 + [1] * 3 + [2])
    weights = balanced_weights(targets, 3)
    torch.testing.assert_close(weights, torch.tensor([10 / 3 / 6, 10 / 3 / 3, 10 / 3 / 1]))
    assert weights[targets].mean() == pytest.approx(1)


def test_an_extreme_weight_is_capped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="routepool"):
        weights = balanced_weights(np.array([0] * 99 + [1]), 2)
    assert weights.tolist() == [pytest.approx(100 / 2 / 99), 10.0]  # 100 / 2 / 1 = 50
    assert "rarest class has 1 of 100 texts: its weight of 50 is capped at 10" in caplog.text


def test_weights_that_are_not_extreme_are_not_talked_about(caplog: pytest.LogCaptureFixture) -> None:
    balanced_weights(np.array([0] * 9 + [1]), 2)
    assert not caplog.records


def test_for_several_labels_a_positive_weighs_as_much_as_the_negatives_of_its_class() -> None:
    targets = np.array([[1, 0], [1, 0], [1, 1], [0, 0]])
    torch.testing.assert_close(balanced_weights(targets, 2), torch.tensor([1 / 3, 3 / 1]))


def test_the_weighted_loss_is_the_mean_of_the_weighted_losses() -> None:
    logits, targets = torch.tensor([[0.0, 0.0], [math.log(3), 0.0]]), torch.tensor([0, 1])
    objective = Objective(("a", "b"), weights=torch.tensor([0.5, 4.0]))
    expected = (0.5 * math.log(2) + 4.0 * math.log(4)) / 2  # probabilities 1/2 and 1/4
    assert float(objective.loss(logits, targets)) == pytest.approx(expected)
    assert float(Objective(("a", "b")).loss(logits, targets)) == pytest.approx((math.log(2) + math.log(4)) / 2)


def test_balanced_training_is_told_the_weights_of_the_training_set(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Objective] = []
    begin = Trainer.__init__

    def watch(self: Trainer, *args: object, **options: object) -> None:
        begin(self, *args, **options)  # type: ignore[arg-type]
        seen.append(self.objective)

    monkeypatch.setattr(Trainer, "__init__", watch)
    uneven = planted.planted(60)[::2] + planted.planted(20)[1::2]  # 30 of the first label, 10 of the second
    planted.train(planted.tiny(epochs=1, class_weight="balanced"), of=Task(uneven, planted.planted(8), planted.LABELS))
    assert seen[0].weights is not None
    assert seen[0].weights.tolist() == pytest.approx([40 / 2 / 30, 40 / 2 / 10])


@pytest.mark.parametrize(
    ("labels", "told"),
    [([("glad",), ()], "text 2 must have one label, got 0"), ([("glad", "sad")], "text 1 must have one label, got 2")],
)
def test_a_text_without_its_one_label_is_refused(labels: Sequence[tuple[str, ...]], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Objective(planted.LABELS).targets(labels)


@pytest.mark.parametrize("multi_label", [False, True])
def test_an_unknown_label_is_named(multi_label: bool) -> None:
    with pytest.raises(InputError, match="unknown label 'angry'; the model knows glad, sad"):
        Objective(planted.LABELS, multi_label).targets([("angry",)])


def test_the_score_of_several_labels_is_micro_f1() -> None:
    logits = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, -1.0]], np.float32)
    targets = np.array([[1, 1], [0, 1], [0, 0]])
    assert Objective(planted.LABELS, True).score(logits, targets) == pytest.approx(2 * 2 / (3 + 3))


def test_a_model_of_several_labels_learns_planted_words_and_empty_sets() -> None:
    task = Task(planted.several(160), planted.several(60, seed=1), planted.LABELS, multi_label=True)
    settings = planted.quick(epochs=12, calibration=0.5)
    fitted = planted.train(settings, of=task)
    assert fitted.progress.best_score > 0.95
    assert fitted.saved.thresholds is not None
    assert len(fitted.saved.thresholds) == 2
    test = planted.several(80, seed=2)
    predicted = of_saved(fitted.saved).predict([example.text for example in test])
    right = [set(labels) == set(example.labels or ()) for labels, example in zip(predicted, test, strict=True)]
    assert np.mean(right) > 0.9
    assert () in predicted


def parts_of_dev(share: float, dev: list[Example]) -> tuple[list[str], list[str]]:
    stopping, held = fitting.dev_parts(dev, planted.tiny(calibration=share))
    return [example.text for example in stopping], [example.text for example in held]


def test_texts_that_calibrate_are_not_those_that_stop() -> None:
    dev = [*planted.planted(40, seed=1), *planted.planted(6, seed=1)]  # some texts twice
    stopping, held = parts_of_dev(0.5, dev)
    assert not set(stopping) & set(held)
    assert sorted(stopping + held) == sorted(example.text for example in dev)
    assert 0.3 < len(held) / len(dev) < 0.7


def test_all_of_dev_may_both_stop_and_calibrate() -> None:
    dev = planted.planted(40, seed=1)
    stopping, held = parts_of_dev(1.0, dev)
    assert stopping == held == [example.text for example in dev]


@pytest.mark.parametrize(("share", "number"), [(0.0, 40), (0.5, 19), (1.0, 19)])
def test_without_a_share_or_with_few_texts_nothing_is_held_and_the_temperature_is_one(
    share: float, number: int
) -> None:
    dev = planted.planted(number, seed=1)
    assert parts_of_dev(share, dev) == ([example.text for example in dev], [])
    fitted = planted.train(planted.tiny(epochs=1, calibration=share), of=planted.task(dev=number))
    assert (fitted.saved.temperature, fitted.saved.thresholds) == (1.0, None)


def test_the_temperature_improves_held_out_likelihood() -> None:
    """A model that learned clean labels is too sure of itself where a quarter of them are wrong."""
    random = np.random.default_rng(0)

    def noisy(number: int, seed: int) -> list[Example]:
        return [
            Example(one.row, one.text, (planted.LABELS[random.integers(2)],) if random.random() < 0.5 else one.labels)
            for one in planted.planted(number, seed=seed)
        ]

    task = Task(planted.planted(120), noisy(200, 1), planted.LABELS)
    saved = planted.train(planted.quick(calibration=0.7), of=task).saved
    fresh = noisy(300, 2)
    logits = logits_of(saved.classifier, saved.tokenizer.encode([one.text for one in fresh]))
    targets = Objective(planted.LABELS).targets([one.labels or () for one in fresh])

    def cost(temperature: float) -> float:
        return float(-np.log(probabilities(logits, temperature=temperature)[np.arange(len(fresh)), targets]).mean())

    assert saved.temperature > 1
    assert cost(saved.temperature) < cost(1.0)
