"""Labelled texts -> a model ready to save: vocabulary, vectors, training, calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from routepool import vectors as word_vectors
from routepool.config import ModelConfig, Preset, change
from routepool.datasets import Example, split
from routepool.embedding import Embedding
from routepool.errors import InputError
from routepool.inference import logits_of
from routepool.model import Classifier
from routepool.persistence import Checkpoint, SavedModel
from routepool.probabilities import fit_temperature, probabilities, tune_thresholds
from routepool.text import Tokenizer, Truncation
from routepool.training.hooks import Hook
from routepool.training.loop import Examples, Trainer
from routepool.training.objective import Objective, balanced_weights
from routepool.training.progress import Progress


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned.

    Args:
        train: labelled texts.
        dev: labelled texts that decide when to stop.
        labels: every label, in the order of the logits.
        multi_label: a text may have any number of labels.
        vectors: where pre-trained vectors come from, see `routepool.vectors`; None for random ones.
    """

    train: Sequence[Example]
    dev: Sequence[Example]
    labels: tuple[str, ...]
    multi_label: bool = False
    vectors: str | None = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and what is to be told of its training."""

    saved: SavedModel
    progress: Progress
    truncation: Truncation
    coverage: tuple[word_vectors.Coverage, ...] = field(default=())


def fit(
    task: Task,
    preset: Preset,
    *,
    hooks: Sequence[Hook] = (),
    run: Path | None = None,
    checkpoint: Checkpoint | None = None,
    columns: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Fitted:
    """Train a model.

    Everything but the checkpoint is a function of the task and the preset, so a resumed run starts here again.

    Args:
        task: the data.
        preset: the settings; the size of the vectors, where there are some, wins over `embedding_size`.
        hooks: watch the training.
        run: where checkpoints go.
        checkpoint: where to take training up.
        columns: to be remembered by the model.
        provenance: to be remembered by the model.
    """
    tokenizer = _vocabulary(task, preset)
    torch.manual_seed(preset.training.seed)
    model, config, known, coverage = _model(task, preset, tokenizer)
    objective = Objective(task.labels, task.multi_label)
    stopping, held = _dev_parts(task.dev, preset)
    train = _examples(task.train, tokenizer, objective, config.depth)
    if preset.training.class_weight == "balanced":
        objective = replace(objective, weights=balanced_weights(train.targets, len(task.labels)))
    dev = _examples(stopping, tokenizer, objective, config.depth)
    trainer = Trainer(model, train, dev, objective, preset.training, known=known, hooks=hooks, run=run)
    progress = trainer.fit(checkpoint)
    temperature, thresholds = _calibrate(model, _examples(held, tokenizer, objective, config.depth), task.multi_label)
    saved = SavedModel(
        classifier=model,
        tokenizer=tokenizer,
        model_config=config,
        labels=task.labels,
        multi_label=task.multi_label,
        temperature=temperature,
        thresholds=thresholds,
        columns=columns,
        training=preset.training,
        provenance=provenance or {},
    )
    return Fitted(saved, progress, Truncation.of(train.encoded), coverage)


def _vocabulary(task: Task, preset: Preset) -> Tokenizer:
    number = preset.training.extra_words
    extra = word_vectors.frequent(task.vectors, number) if task.vectors and number else []
    return Tokenizer.build(
        (example.text for example in task.train),
        config=preset.text,
        min_frequency=preset.training.min_frequency,
        extra_words=extra,
    )


def _model(
    task: Task, preset: Preset, tokenizer: Tokenizer
) -> tuple[Classifier, ModelConfig, torch.Tensor | None, tuple[word_vectors.Coverage, ...]]:
    sizes = {"vocabulary_size": len(tokenizer.words), "classes": len(task.labels)}
    if task.vectors is None:
        return Classifier.build(preset.model, **sizes, sparse=preset.training.sparse), preset.model, None, ()
    loaded = word_vectors.load(task.vectors, tokenizer.words, counts=tokenizer.counts)
    config = change(preset.model, embedding_size=loaded.table.shape[1])
    model = Classifier.build(config, **sizes, sparse=preset.training.sparse)
    embedding = model.get_submodule("levels.0.embedding")
    assert isinstance(embedding, Embedding)
    known = torch.from_numpy(loaded.known)
    embedding.load_vectors(torch.from_numpy(loaded.table), known)
    return model, config, known, loaded.coverage


def _dev_parts(dev: Sequence[Example], preset: Preset) -> tuple[Sequence[Example], Sequence[Example]]:
    """Texts to stop by and texts to calibrate on: never the same ones."""
    if not dev:
        raise InputError("training needs a dev set to know when to stop, got an empty one")
    share = preset.training.calibration
    if share == 0 or len(dev) < 20:
        return dev, ()
    parts = split(dev, held=share, seed=preset.training.seed)
    return [dev[place] for place in parts.kept], [dev[place] for place in parts.held]


def _examples(examples: Sequence[Example], tokenizer: Tokenizer, objective: Objective, depth: int) -> Examples:
    encoded = tokenizer.encode([example.text for example in examples], depth)
    return Examples(encoded, objective.targets([example.labels or () for example in examples]))


def _calibrate(model: Classifier, held: Examples, multi_label: bool) -> tuple[float, tuple[float, ...] | None]:
    if not held.encoded:
        return 1.0, None
    logits = logits_of(model, held.encoded)
    temperature = fit_temperature(logits, held.targets, multi_label=multi_label)
    if not multi_label:
        return temperature, None
    shares = probabilities(logits, temperature=temperature, multi_label=True)
    return temperature, tune_thresholds(shares, held.targets)
