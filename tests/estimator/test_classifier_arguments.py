"""What the estimator's arguments do: settings, seeds, what is held out, weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import planted
from support.tiny_classifier import LABELS, TEXTS, same, tiny

from routepool import TextClassifier
from routepool.errors import InputError
from routepool.estimator.arguments import preset_of
from routepool.settings import default_preset, preset
from routepool.training import Objective, Task, Trainer, fit

# Settings


def test_settings_are_those_of_the_preset_unless_named() -> None:
    usual = default_preset()
    named = TextClassifier(epochs=2, capsules=3, iterations=2, settings={"patience": 2, "average": False})
    chosen = preset_of(named.get_params(), TEXTS, seed=7)
    assert chosen.model.aggregator_options == {
        **usual.model.aggregator_options,
        "average": False,
        "capsules": 3,
        "iterations": 2,
    }
    assert (chosen.training.epochs, chosen.training.patience, chosen.training.seed) == (2, 2, 7)
    assert chosen.training.learning_rate == usual.training.learning_rate
    paper, flat = (TextClassifier(preset="paper", aggregator=name).get_params() for name in (None, "mean"))
    assert preset_of(paper, TEXTS, seed=0).training.learning_rate == 3e-4
    assert preset_of(flat, ["A word. " * 31], seed=0).model.depth == 1


def test_numbers_of_numpy_are_numbers() -> None:
    drawn: dict[str, Any] = {"epochs": np.int64(2), "dropout": np.float32(0.25)}
    given = TextClassifier(**drawn, settings={"sparse": np.bool_(False)}).get_params()
    settled = preset_of(given, TEXTS, seed=0)
    assert (settled.training.epochs, settled.model.dropout, settled.training.sparse) == (2, 0.25, False)


def test_vectors_are_those_that_are_installed_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def watch(task: Task, preset: Any, **options: Any) -> Any:
        seen.append(task.vectors)
        raise InputError("seen")

    monkeypatch.setattr("routepool.estimator.classifier.fit", watch)
    for installed, vectors in (("wordllama", None), (None, None), ("wordllama", "none"), (None, "a.txt")):
        monkeypatch.setattr("routepool.estimator.arguments.installed", lambda found=installed: found)
        with pytest.raises(InputError, match="seen"):
            tiny(vectors=vectors).fit(TEXTS, LABELS)
    assert seen == ["wordllama", None, None, "a.txt"]


def test_the_same_number_gives_the_same_model_and_another_another() -> None:
    assert same(tiny().fit(TEXTS, LABELS), tiny().fit(TEXTS, LABELS))
    assert not same(tiny().fit(TEXTS, LABELS), tiny(random_state=1).fit(TEXTS, LABELS))
    states = [np.random.RandomState(7) for _ in range(2)]
    one, other = (tiny(random_state=state).fit(TEXTS, LABELS) for state in states)
    assert same(one, other)
    assert not same(one, tiny(random_state=states[0]).fit(TEXTS, LABELS))  # its next number
    assert not same(tiny(random_state=None).fit(TEXTS, LABELS), tiny(random_state=None).fit(TEXTS, LABELS))


def test_random_numbers_and_threads_of_the_user_stay_as_they_are() -> None:
    torch.manual_seed(1)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    tiny(threads=2).fit(TEXTS, LABELS)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


# What decides the end


class Seen:
    """The task that training was given."""

    task: Task


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    noted = Seen()

    def watch(task: Task, preset: Any, **options: Any) -> Any:
        noted.task = task
        return fit(task, preset, **options)

    monkeypatch.setattr("routepool.estimator.classifier.fit", watch)
    return noted


def test_a_part_is_held_out_by_label_and_by_seed(seen: Seen) -> None:
    held = []
    for seed in (0, 0, 1):
        tiny(validation_fraction=0.25, epochs=1, random_state=seed).fit(TEXTS, LABELS)
        held.append([example.text for example in seen.task.dev])
        assert sorted(example.labels or () for example in seen.task.dev) == [("glad",)] * 5 + [("sad",)] * 5
        assert not set(held[-1]) & {example.text for example in seen.task.train}
    assert held[0] == held[1] != held[2]


def test_a_dev_set_of_ones_own_decides(seen: Seen) -> None:
    dev = planted.planted(10, seed=4)
    fitted = tiny(validation_fraction=0.25).fit(
        TEXTS, LABELS, dev=([one.text for one in dev], [(one.labels or ("",))[0] for one in dev])
    )
    assert (len(seen.task.train), len(seen.task.dev)) == (40, 10)
    assert fitted.validation_score_ == fitted.score(
        [one.text for one in dev], [(one.labels or ("",))[0] for one in dev]
    )
    assert 1 <= fitted.n_iter_ <= 3


def test_without_a_part_every_text_is_learned(seen: Seen) -> None:
    fitted = tiny().fit(TEXTS, LABELS)
    assert seen.task.dev is seen.task.train
    assert fitted.predictor_.temperature == 1
    assert fitted.validation_score_ == fitted.score(TEXTS, LABELS)


# Weights


def test_a_weighted_loss_is_the_loss_of_repeated_texts() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    weights = np.array([3, 1, 2, 2])
    mean_of_one = torch.tensor(weights * 4 / 8)
    for objective, targets in (
        (Objective(("a", "b", "c")), torch.tensor([0, 1, 2, 1])),
        (Objective(("a", "b", "c"), multi_label=True), torch.tensor([[1, 0, 0], [1, 1, 1], [0, 0, 0], [0, 1, 0]])),
    ):
        rows = torch.from_numpy(np.repeat(np.arange(4), weights))
        expected = objective.loss(logits[rows], targets[rows])
        torch.testing.assert_close(objective.loss(logits, targets, mean_of_one).float(), expected)


def test_a_heavy_text_is_learned_before_its_contradictions() -> None:
    """The same text with both labels: the heavier one wins."""
    texts = ["one text"] * 10 + ["another text"] * 10
    labels = ["yes", "no"] * 5 + ["other"] * 10
    for heavy in ("yes", "no"):
        weights = [5.0 if label == heavy else 1.0 for label in labels]
        assert tiny(epochs=10).fit(texts, labels, sample_weight=weights).predict(["one text"]) == [heavy]


def test_balanced_weights_count_a_text_as_often_as_it_weighs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    begin = Trainer.__init__

    def watch(self: Trainer, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        seen.append(self.objective.weights)

    monkeypatch.setattr(Trainer, "__init__", watch)
    tiny(class_weight="balanced", epochs=1).fit(["a", "b", "c"], [0, 0, 1], sample_weight=[1, 1, 2])
    tiny(class_weight={1: 3}, epochs=1).fit(["a", "b", "c"], [0, 0, 1])
    assert seen[0].tolist() == pytest.approx([1, 1])  # two texts that weigh one against one that weighs two
    assert seen[1].tolist() == [1, 3]


def test_a_preset_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "best.toml"
    file.write_text('base = "paper-sst2"\n[training]\nepochs = 3\n', encoding="utf-8")
    given = TextClassifier(preset=str(file), dropout=0.25).get_params()
    chosen = preset_of(given, ["a text"], seed=1)
    assert (chosen.training.epochs, chosen.training.learning_rate) == (3, preset("paper-sst2").training.learning_rate)
    assert (chosen.model.dropout, chosen.training.seed) == (0.25, 1)
