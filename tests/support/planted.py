"""Made-up tasks whose answer is a planted word, and tiny models that learn them in a second."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from routepool.datasets import Example
from routepool.persistence import SavedModel, latest_checkpoint
from routepool.settings import ModelConfig, Preset, TrainingConfig
from routepool.training import EpochReport, Examples, Fitted, Hook, Objective, StepReport, Task, Trainer, fit

WORDS = "the a cup of tea and some bread on our old table by this window while it rains outside"
FILLER = WORDS.split()
CUES = {"glad": ("merry", "sunny"), "sad": ("gloomy", "bitter")}
LABELS = tuple(CUES)


def planted(number: int, *, seed: int = 0, sentences: int = 1) -> list[Example]:
    """Texts of filler words with one cue each; the labels take turns."""
    random = np.random.default_rng(seed)
    examples = []
    for row in range(number):
        label = LABELS[row % len(LABELS)]
        parts = [list(random.choice(FILLER, random.integers(2, 8))) for _ in range(sentences)]
        chosen = parts[random.integers(sentences)]
        chosen.insert(random.integers(1, len(chosen) + 1), str(random.choice(CUES[label])))
        text = " ".join(f"{' '.join(words).capitalize()}." for words in parts)
        examples.append(Example(row + 1, text, (label,)))
    return examples


def several(number: int, *, seed: int = 0) -> list[Example]:
    """Texts with any number of cues, none included, and the labels of those."""
    random = np.random.default_rng(seed)
    examples = []
    for row in range(number):
        labels = tuple(label for label in LABELS if random.random() < 0.5)
        words = [*random.choice(FILLER, 4), *(str(random.choice(CUES[label])) for label in labels)]
        examples.append(Example(row + 1, " ".join(random.permutation(words)), labels))
    return examples


def tiny(**values: Any) -> Preset:
    """Small settings: of the model where it has that name, else of the training."""
    routing = "routing" in values.get("aggregator", "routing")
    of_model = {
        "embedding_size": 16,
        "hidden_size": 8,
        "head_size": 8,
        "aggregator_options": {"capsules": 2, "capsule_size": 8} if routing else {},
        **{name: value for name, value in values.items() if hasattr(ModelConfig, name)},
    }
    of_training: dict[str, Any] = {
        "epochs": 3,
        "batch_size": 8,
        "smallest_batch": 2,
        "window": 16,
        "replacement": False,
    }
    of_training |= {"learning_rate": 0.01} | {name: value for name, value in values.items() if name not in of_model}
    return Preset(ModelConfig(**of_model), TrainingConfig(**of_training))


def quick(**values: Any) -> Preset:
    """Settings that learn a planted word in a few steps."""
    steps = {"epochs": 8, "patience": 8, "batch_size": 16, "smallest_batch": 16, "window": 60, "learning_rate": 0.02}
    return tiny(**{**steps, "dropout": 0.0, "l2": 0.0, **values})


def task(*, train: int = 60, dev: int = 24, sentences: int = 1) -> Task:
    learned, scored = (planted(number, seed=seed, sentences=sentences) for number, seed in ((train, 0), (dev, 1)))
    return Task(learned, scored, LABELS)


def train(preset: Preset | None = None, *, of: Task | None = None, **options: Any) -> Fitted:
    return fit(of or task(), preset or tiny(), **options)


def trainer(
    model: SavedModel,
    config: TrainingConfig,
    *,
    of: Task | None = None,
    objective: Objective | None = None,
    **options: Any,
) -> Trainer:
    """A trainer of a model in memory, for tests that look inside."""
    of = of or task()
    objective = objective or Objective(of.labels, of.multi_label)
    train, dev = (
        Examples(
            model.tokenizer.encode([one.text for one in part], model.model_config.depth),
            objective.targets([one.labels or () for one in part]),
        )
        for part in (of.train, of.dev)
    )
    return Trainer(model.classifier, train, dev, objective, config, **options)


def weights(fitted: Fitted | SavedModel) -> dict[str, Tensor]:
    saved = fitted.saved if isinstance(fitted, Fitted) else fitted
    return {name: tensor.clone() for name, tensor in saved.classifier.state_dict().items()}


def identical(one: Fitted | SavedModel, other: Fitted | SavedModel) -> bool:
    """To the last bit."""
    of_one, of_other = weights(one), weights(other)
    return of_one.keys() == of_other.keys() and all(torch.equal(of_one[name], of_other[name]) for name in of_one)


def folders(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").iterdir())


class Failing(Hook):
    """A user's hook with a bug."""

    def __init__(self, *, step: int = -1, epoch: int = -1) -> None:
        self.step, self.epoch = step, epoch

    def on_step(self, report: StepReport) -> None:
        if report.step == self.step:
            raise ZeroDivisionError

    def on_epoch(self, report: EpochReport) -> None:
        if report.epoch == self.epoch:
            raise ZeroDivisionError


def resumed(run: Path, **settings: float | str) -> Fitted:
    return train(tiny(**settings), run=run, checkpoint=latest_checkpoint(run))
