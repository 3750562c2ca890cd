"""Labelled texts -> a model ready to save: vocabulary, vectors, training, calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from routepool import vectors as word_vectors
from routepool.datasets import Example, split
from routepool.errors import InputError
from routepool.model import Classifier
from routepool.persistence import Checkpoint, SavedModel
from routepool.scoring.probabilities import fit_temperature, probabilities, tune_thresholds
from routepool.scoring.torch_backend import logits_of
from routepool.settings import OF_LEARNING, PRETRAINED, ModelConfig, Preset, change, split_source
from routepool.text import TextReader, Tokenizer, Truncation
from routepool.training.hooks import Hook, StartReport
from routepool.training.loop import DivergedError, Examples, Trainer
from routepool.training.objective import Objective, balanced_weights, is_labelled
from routepool.training.optimizer import embedding_of
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
        weights: of the training texts in the loss, above 0; only their ratios count. None for all alike, or for the
            setting `phrase_weight` where some are phrases.
        class_weights: of the labels in the loss, 1 for one that is not named; they win over the setting `class_weight`.
        teacher_logits: (N, K) what the model is to answer to the training texts, in the order of `labels`, see
            `routepool.training.teaching`; these texts need no labels then. None to learn from labels.
    """

    train: Sequence[Example]
    dev: Sequence[Example]
    labels: tuple[str, ...]
    multi_label: bool = False
    vectors: str | None = None
    weights: Sequence[float] | None = None
    class_weights: Mapping[str, float] | None = None
    teacher_logits: NDArray[np.float32] | None = None


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
    start: SavedModel | None = None,
    device: str = "cpu",
) -> Fitted:
    """Train a model.

    Everything but the checkpoint is a function of the task and the preset, so a resumed run starts here again.

    Args:
        task: the data.
        preset: the settings; the size of the vectors, where there are some, wins over `embedding_size`.
        hooks: watch the training.
        run: where checkpoints go.
        checkpoint: where to take training up.
        columns: of the data, for the model to remember.
        provenance: likewise.
        start: a trained model of the task's labels to go on with; it stays as it is. Its weights, words and shape are
            taken, and of the preset only what concerns learning.
        device: where to compute.

    Raises:
        DivergedError: the loss is no longer a number; its `fitted` is the best model before, None if there is none.
        InterruptedTrainingError: Ctrl-C or SIGTERM; there is a checkpoint in `run`.
    """
    torch.manual_seed(preset.training.seed)
    new = _new(task, preset) if start is None else _continued(task, preset, start)
    data = _data(task, preset, new)
    parts = (new.model, data.train, data.dev, data.objective)
    trainer = Trainer(*parts, preset.training, known=new.known, hooks=hooks, run=run, device=device)
    _say_start(hooks, new, data)
    remembered = {"columns": columns, "training": preset.training, "provenance": provenance or {}}
    try:
        trainer.fit(checkpoint)
    except DivergedError as error:
        error.fitted = _fitted(new, data, trainer.progress, **remembered) if trainer.progress.best_epoch >= 0 else None
        raise
    return _fitted(new, data, trainer.progress, **remembered)


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


def _say_start(hooks: Sequence[Hook], new: _Untrained, data: _Data) -> None:
    apart = 0 if data.held is data.dev else len(data.held.encoded)
    report = StartReport(new.coverage, Truncation.of(data.train.encoded), len(data.dev.encoded), apart)
    for hook in hooks:
        hook.on_start(report)


def _fitted(new: _Untrained, data: _Data, progress: Progress, **remembered: Any) -> Fitted:
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
        **remembered,
    )
    return Fitted(saved, progress, Truncation.of(data.train.encoded), new.coverage)


def _vocabulary(task: Task, preset: Preset) -> Tokenizer:
    number = preset.training.extra_words
    extra = word_vectors.frequent(task.vectors, number) if task.vectors and number else []
    return Tokenizer.build(
        (example.text for example in task.train),
        config=preset.text,
        min_frequency=preset.training.min_frequency,
        extra_words=extra,
    )


def _new(task: Task, preset: Preset) -> _Untrained:
    if split_source(preset.model.encoder)[1]:
        return _pretrained(task, preset)
    tokenizer = _vocabulary(task, preset)
    sizes = {"vocabulary_size": len(tokenizer.words), "classes": len(task.labels)}
    if task.vectors is None:
        model = Classifier.build(preset.model, **sizes, sparse=preset.training.sparse)
        return _Untrained(model, tokenizer, preset.model)
    loaded = word_vectors.load_vectors(task.vectors, tokenizer.words, counts=tokenizer.counts)
    config = change(preset.model, embedding_size=loaded.table.shape[1])
    model = Classifier.build(config, **sizes, sparse=preset.training.sparse)
    known = torch.from_numpy(loaded.known)
    embedding = embedding_of(model)
    assert embedding is not None
    embedding.load_vectors(torch.from_numpy(loaded.table), known)
    return _Untrained(model, tokenizer, config, known, loaded.coverage)


def _pretrained(task: Task, preset: Preset) -> _Untrained:
    """A new model on an encoder that comes with a tokenizer and weights; word vectors have no place in it."""
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
    """What a model can answer, for an error."""
    return f"{'any number' if multi_label else 'one'} of the labels {', '.join(labels[:20])}"


def _data(task: Task, preset: Preset, new: _Untrained) -> _Data:
    if preset.training.word_dropout and not isinstance(new.tokenizer, Tokenizer):
        raise InputError("word_dropout needs a model of words, this one reads the pieces of a pre-trained encoder")
    objective = Objective(task.labels, task.multi_label, label_weight=preset.training.label_weight)

    def examples(of: Sequence[Example], *, labelled: bool = True) -> Examples:
        return _examples(of, new.tokenizer, objective, new.config.depth, labelled=labelled)

    stopping, calibrating = dev_parts(task.dev, preset)
    train, dev = examples(task.train, labelled=task.teacher_logits is None), examples(stopping)
    held = dev if calibrating is stopping else examples(calibrating)
    train = replace(train, teacher_logits=task.teacher_logits)
    weights_of_texts = _weights_of_phrases(task.train, preset) if task.weights is None else task.weights
    if weights_of_texts is not None:
        train = replace(train, weights=mean_of_one(weights_of_texts))
    if task.class_weights is not None:
        weights = torch.tensor([float(task.class_weights.get(label, 1)) for label in task.labels])
        objective = replace(objective, weights=weights)
    elif preset.training.class_weight == "balanced":
        known = is_labelled(train.targets)
        weights_of_known = None if train.weights is None else train.weights[known]
        balanced = balanced_weights(train.targets[known], len(task.labels), weights_of_known)
        objective = replace(objective, weights=balanced)
    return _Data(train, dev, held, objective)


def _weights_of_phrases(examples: Sequence[Example], preset: Preset) -> list[float] | None:
    weight = preset.training.phrase_weight
    if weight == 1 or not any(example.is_phrase for example in examples):
        return None
    return [weight if example.is_phrase else 1.0 for example in examples]


def mean_of_one(weights: Sequence[float]) -> NDArray[np.float32]:
    """The same ratios, so that an epoch's loss is that of a set in which each text stands as often as it weighs."""
    values = np.asarray(weights, dtype=np.float64)
    values = np.ldexp(values, -np.frexp(values.max())[1])  # exact; the sum of very large ones would not be finite
    scaled: NDArray[np.float32] = (values * (len(values) / values.sum())).astype(np.float32)
    return scaled


def dev_parts(dev: Sequence[Example], preset: Preset) -> tuple[Sequence[Example], Sequence[Example]]:
    """Texts to stop by and texts to calibrate on: different ones, unless all of dev is to do both."""
    if not dev:
        raise InputError("training needs a dev set to know when to stop, got an empty one")
    share = preset.training.calibration
    if share == 0 or len(dev) < 20:
        return dev, ()
    if share == 1:
        return dev, dev
    parts = split(dev, held=share, seed=preset.training.seed)
    return [dev[place] for place in parts.kept], [dev[place] for place in parts.held]


def _examples(
    examples: Sequence[Example], tokenizer: TextReader, objective: Objective, depth: int, *, labelled: bool
) -> Examples:
    encoded = tokenizer.encode([example.text for example in examples], depth)
    nothing = () if labelled else None  # a text without labels is an error, unless teachers answer for it
    return Examples(encoded, objective.targets([nothing if e.labels is None else e.labels for e in examples]))


def _calibrate(model: Classifier, held: Examples, multi_label: bool) -> tuple[float, tuple[float, ...] | None]:
    if not held.encoded:
        return 1.0, None
    logits = logits_of(model, held.encoded)
    temperature = fit_temperature(logits, held.targets, multi_label=multi_label)
    if not multi_label:
        return temperature, None
    shares = probabilities(logits, temperature=temperature, multi_label=True)
    return temperature, tune_thresholds(shares, held.targets)
