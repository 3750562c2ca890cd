"""Labelled texts -> a model ready to save: vocabulary, vectors, training, calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from routepool import vectors as word_vectors
from routepool.arrays import Floats32
from routepool.datasets import Example, split
from routepool.errors import InputError
from routepool.model import Classifier
from routepool.persistence import Checkpoint, SavedModel
from routepool.scoring.probabilities import fit_temperature, probabilities, tune_thresholds
from routepool.scoring.torch_backend import logits_of
from routepool.settings import OF_LEARNING, PRETRAINED, ModelConfig, Preset, change, split_source
from routepool.text import TextReader, Tokenizer, Truncation
from routepool.training.hooks import Hook, StartReport
from routepool.training.loop import DivergedError, Progress, Trainer
from routepool.training.objective import Examples, Objective, balanced_weights, is_labelled
from routepool.training.optimizer import embedding_of


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned.

    Args:
        train: labelled texts.
        dev: labelled texts that decide when to stop.
        labels: every label, in the order of the logits.
        multi_label: a text may have any number of labels.
        vectors: where pre-trained vectors come from, see `routepool.vectors`; None for random ones.
        weights: of the training texts in the loss, above 0; only their ratios count. None for all alike, except
            phrases, which have the setting `phrase_weight`.
        class_weights: of the labels in the loss, 1 for a label that is not named; the setting `class_weight` is then
            ignored.
        teacher_logits: (N, K) what the model is to answer to the training texts, in the order of `labels`, see
            `routepool.training.teaching`; these texts need no labels. None to learn from labels.
    """

    train: Sequence[Example]
    dev: Sequence[Example]
    labels: tuple[str, ...]
    multi_label: bool = False
    vectors: str | None = None
    weights: Sequence[float] | None = None
    class_weights: Mapping[str, float] | None = None
    teacher_logits: Floats32 | None = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and how its training went."""

    saved: SavedModel
    progress: Progress
    truncation: Truncation
    coverage: tuple[word_vectors.Coverage, ...] = ()


def fit(
    task: Task,
    preset: Preset,
    *,
    hooks: Sequence[Hook] = (),
    run: Path | None = None,
    checkpoint: Checkpoint | None = None,
    start: SavedModel | None = None,
    device: str = "cpu",
) -> Fitted:
    """Train a model.

    Everything but the checkpoint is a function of the task and the preset, so a resumed run starts here again.

    Args:
        task: the data.
        preset: the settings; the size of the word vectors, if there are some, replaces `embedding_size`.
        hooks: watch the training.
        run: where checkpoints go.
        checkpoint: where training resumes.
        start: a trained model of the task's labels to go on with; it is not changed. Its weights, words and shape are
            taken, and from the preset only what concerns learning.
        device: where to compute.

    Raises:
        DivergedError: the loss is no longer a number; its `fitted` is the best model before, None if there is none.
        InterruptedTrainingError: Ctrl-C or SIGTERM; there is a checkpoint in `run`.
    """
    torch.manual_seed(preset.training.seed)
    new = _new(task, preset) if start is None else _continued(task, preset, start)
    data = _data(task, preset, new)
    learned = (new.model, data.train, data.dev, data.objective)
    trainer = Trainer(*learned, preset.training, known=new.known, hooks=hooks, run=run, device=device)
    _report_start(hooks, new, data)
    try:
        trainer.fit(checkpoint)
    except DivergedError as error:
        error.fitted = _fitted(new, data, trainer) if trainer.progress.best_epoch >= 0 else None
        raise
    return _fitted(new, data, trainer)


class _Untrained(NamedTuple):
    """What training starts from."""

    model: Classifier
    tokenizer: TextReader
    config: ModelConfig
    known: torch.Tensor | None = None  # (V,) words with a pre-trained vector
    coverage: tuple[word_vectors.Coverage, ...] = ()


class _Data(NamedTuple):
    """A task as numbers."""

    train: Examples
    dev: Examples
    held: Examples  # to calibrate on
    objective: Objective
    truncation: Truncation  # of the training texts


def _report_start(hooks: Sequence[Hook], new: _Untrained, data: _Data) -> None:
    apart = 0 if data.held is data.dev else len(data.held.encoded)
    report = StartReport(new.coverage, data.truncation, len(data.dev.encoded), apart)
    for hook in hooks:
        hook.on_start(report)


def _fitted(new: _Untrained, data: _Data, trainer: Trainer) -> Fitted:
    objective = data.objective
    temperature, thresholds = _calibrate(new.model, data.held, objective.multi_label)
    saved = SavedModel(
        classifier=new.model,
        tokenizer=new.tokenizer,
        model_config=new.config,
        labels=objective.labels,
        multi_label=objective.multi_label,
        temperature=temperature,
        thresholds=thresholds,
        training=trainer.config,
    )
    return Fitted(saved, trainer.progress, data.truncation, new.coverage)


def _new(task: Task, preset: Preset) -> _Untrained:
    training = preset.training
    if preset.model.is_pretrained:
        return _pretrained(task, preset)
    number = training.extra_words
    tokenizer = Tokenizer.build(
        (example.text for example in task.train),
        config=preset.text,
        min_frequency=training.min_frequency,
        extra_words=word_vectors.frequent(task.vectors, number) if task.vectors and number else (),
    )
    sizes = {"vocabulary_size": len(tokenizer.words), "classes": len(task.labels)}
    if task.vectors is None:
        model = Classifier.build(preset.model, **sizes, sparse=training.sparse)
        return _Untrained(model, tokenizer, preset.model)
    loaded = word_vectors.load_vectors(task.vectors, tokenizer.words, counts=tokenizer.counts)
    config = change(preset.model, embedding_size=loaded.table.shape[1])
    model = Classifier.build(config, **sizes, sparse=training.sparse)
    known = torch.from_numpy(loaded.known)
    embedding = embedding_of(model)
    assert embedding is not None
    embedding.load_vectors(torch.from_numpy(loaded.table), known)
    return _Untrained(model, tokenizer, config, known, loaded.coverage)


def _pretrained(task: Task, preset: Preset) -> _Untrained:
    """A new model on an encoder that has a tokenizer and weights of its own, and no word vectors."""
    kind, source = split_source(preset.model.encoder)
    if task.vectors is not None:
        raise InputError(
            f"encoder {kind}:... has word vectors of its own, got others as well ({task.vectors}); drop them"
        )
    found = PRETRAINED[kind].read(source, preset.text)
    options = {**found.options, **preset.model.encoder_options}
    config = change(preset.model, encoder=kind, encoder_options=options)
    model = Classifier.build(config, vocabulary_size=len(found.tokenizer.words), classes=len(task.labels))
    model.levels[0].encoder.load_state_dict(found.weights)  # type: ignore[union-attr]
    return _Untrained(model, found.tokenizer, config)


def _continued(task: Task, preset: Preset, start: SavedModel) -> _Untrained:
    if (task.labels, task.multi_label) != (start.labels, start.multi_label):
        raise InputError(
            f"the model to go on with has {labels_in_words(start.labels, start.multi_label)}; "
            f"the new data must have the same, got {labels_in_words(task.labels, task.multi_label)}"
        )
    config = change(start.model_config, **{name: getattr(preset.model, name) for name in OF_LEARNING})
    sizes = {"vocabulary_size": len(start.tokenizer.words), "classes": len(start.labels)}
    model = Classifier.build(config, **sizes, sparse=preset.training.sparse)
    model.load_state_dict(start.classifier.state_dict())
    return _Untrained(model, start.tokenizer, config)


def labels_in_words(labels: Sequence[str], multi_label: bool) -> str:
    """The labels of a model, for an error."""
    return f"{'any number' if multi_label else 'one'} of the labels {', '.join(labels[:20])}"


def _data(task: Task, preset: Preset, new: _Untrained) -> _Data:
    training = preset.training
    if training.word_dropout and not isinstance(new.tokenizer, Tokenizer):
        raise InputError("word_dropout needs a model of words, this one reads the pieces of a pre-trained encoder")
    objective = Objective(task.labels, task.multi_label, label_weight=training.label_weight)

    def examples(of: Sequence[Example], missing: tuple[str, ...] | None = ()) -> Examples:
        encoded = new.tokenizer.encode([one.text for one in of], new.config.depth)
        return Examples(encoded, objective.targets([missing if one.labels is None else one.labels for one in of]))

    stopping, calibrating = dev_parts(task.dev, preset)
    # A text without labels is an error, unless teachers answer it.
    train, dev = examples(task.train, () if task.teacher_logits is None else None), examples(stopping)
    held = dev if calibrating is stopping else examples(calibrating)
    weights = task.weights
    if weights is None and training.phrase_weight != 1 and any(one.is_phrase for one in task.train):
        weights = [training.phrase_weight if one.is_phrase else 1.0 for one in task.train]
    of_texts = None if weights is None else mean_of_one(weights)
    train = replace(train, weights=of_texts, teacher_logits=task.teacher_logits)
    if task.class_weights is not None:
        of_labels = torch.tensor([float(task.class_weights.get(label, 1)) for label in task.labels])
        objective = replace(objective, weights=of_labels)
    elif training.class_weight == "balanced":
        known = is_labelled(train.targets)
        of_known = None if of_texts is None else of_texts[known]
        balanced = balanced_weights(train.targets[known], len(task.labels), of_known)
        objective = replace(objective, weights=balanced)
    return _Data(train, dev, held, objective, Truncation.of(train.encoded))


def mean_of_one(weights: Sequence[float]) -> Floats32:
    """Scale weights to a mean of 1: an epoch's loss is that of a set in which a text of weight 2 stands twice."""
    values = np.asarray(weights, dtype=np.float64)
    values = np.ldexp(values, -np.frexp(values.max())[1])  # exact; the sum of very large ones would not be finite
    scaled: Floats32 = (values * (len(values) / values.sum())).astype(np.float32)
    return scaled


def dev_parts(dev: Sequence[Example], preset: Preset) -> tuple[Sequence[Example], Sequence[Example]]:
    """The texts of dev that decide when to stop, and those that calibrate; the same only if `calibration` is 1."""
    if not dev:
        raise InputError("training needs a dev set to know when to stop, got an empty one")
    share = preset.training.calibration
    if share == 0 or len(dev) < 20:
        return dev, ()
    if share == 1:
        return dev, dev
    parts = split(dev, held=share, seed=preset.training.seed)
    return [dev[place] for place in parts.kept], [dev[place] for place in parts.held]


def _calibrate(model: Classifier, held: Examples, multi_label: bool) -> tuple[float, tuple[float, ...] | None]:
    if not held.encoded:
        return 1.0, None
    logits = logits_of(model, held.encoded)
    temperature = fit_temperature(logits, held.targets, multi_label=multi_label)
    if not multi_label:
        return temperature, None
    likely = probabilities(logits, temperature=temperature, multi_label=True)
    return temperature, tune_thresholds(likely, held.targets)
