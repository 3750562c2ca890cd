"""The estimator's arguments -> a seed, a preset and a task, all checked.

`fit` calls this: by scikit-learn's rule nothing is checked before, so that a search can set anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from routepool.datasets import Example, split
from routepool.errors import InputError
from routepool.estimator.inputs import Labels, Material, read_dev
from routepool.settings import Changes, Preset, change
from routepool.text import is_document
from routepool.training import Task
from routepool.vectors import installed

LARGEST_SEED = 2**32 - 1
# Arguments that are settings by the same name.
SETTINGS = (
    *("aggregator", "encoder", "depth", "embedding_size", "hidden_size", "capsules", "capsule_size", "iterations"),
    *("dropout", "epochs", "batch_size", "learning_rate"),
)


def seed_of(random_state: Any) -> int:
    """The seed: `random_state` if it is a number, else a number drawn from it, or from NumPy's generator for None.

    >>> seed_of(7)
    7
    """
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if not 0 <= random_state <= LARGEST_SEED:
            raise InputError(f"random_state must be from 0 to {LARGEST_SEED}, got {random_state}")
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except ValueError as error:
        raise InputError(f"random_state must be a number, a RandomState or None, got {random_state!r:.80}") from error


def preset_of(given: Mapping[str, Any], texts: Sequence[str], seed: int) -> Preset:
    """The settings that the arguments ask for on these texts.

    >>> given = {"preset": "default", "epochs": 3, "settings": None, "class_weight": None, "validation_fraction": 0.1}
    >>> preset_of(given, ["a short text"], seed=7).training.epochs
    3
    """
    name = given["preset"]
    if not isinstance(name, str):
        raise InputError(f"preset must be a name, got {name!r:.80}")
    values = {key: plain(value) for key, value in _settings(given).items()}
    preset = Changes.of(name, values | {"seed": seed}).preset(document=is_document(texts))
    if given["validation_fraction"] is None:
        preset = replace(preset, training=change(preset.training, calibration=0.0))
    return preset


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: given[name] for name in SETTINGS if given.get(name) is not None}
    if isinstance(given["class_weight"], str):
        values["class_weight"] = given["class_weight"]
    more = {} if given["settings"] is None else given["settings"]
    if not isinstance(more, Mapping):
        raise InputError(f"settings must be a table such as {{'patience': 3}}, got {more!r:.80}")
    for name in more:
        if name in values or name == "seed":
            other = "random_state" if name == "seed" else f"the argument {name}"
            raise InputError(f"{name} is given twice, in settings and by {other}; drop it from settings")
    return {**values, **more}


def task_of(given: Mapping[str, Any], material: Material, preset: Preset, dev: tuple[Any, Any] | None) -> Task:
    """What to learn, and what decides when to stop: `dev`, else a part of the texts, else all of them."""
    labels, weights = material.labels, material.weights
    train = _examples(material)
    if dev is not None:
        held = _examples(read_dev(dev, labels.form))
    elif given["validation_fraction"] is None:
        held = train
    else:
        share = plain(given["validation_fraction"])
        if not isinstance(share, float) or not 0 < share < 1:
            raise InputError(f"validation_fraction must be above 0 and below 1, or None, got {share!r:.80}")
        parts = split(train, held=share, seed=preset.training.seed)
        if not parts.held:
            raise InputError("too few different texts to hold some out; give dev, or validation_fraction=None")
        train, held = [train[place] for place in parts.kept], [train[place] for place in parts.held]
        weights = None if weights is None else weights[list(parts.kept)]
    return Task(
        train,
        held,
        labels.names,
        labels.form != "one",
        _vectors(given["vectors"], preset),
        weights=None if weights is None else weights.tolist(),
        class_weights=_class_weights(given["class_weight"], labels),
    )


def _examples(material: Material) -> list[Example]:
    pairs = zip(material.texts, material.labels.of_texts, strict=True)
    return [Example(row, text, labels) for row, (text, labels) in enumerate(pairs, 1)]


def _vectors(given: Any, preset: Preset) -> str | None:
    if given is None:  # a pre-trained encoder has its own
        return None if preset.model.is_pretrained else installed()
    if not isinstance(given, str):
        raise InputError(f"vectors must be a file, a name, 'none' or None, got {given!r:.80}")
    return None if given == "none" else given


def _class_weights(given: Any, labels: Labels) -> dict[str, float] | None:
    if given is None or isinstance(given, str):
        return None
    if not isinstance(given, Mapping):
        raise InputError(f"class_weight must be 'balanced', a table or None, got {given!r:.80}")
    weights = {str(plain(label)): plain(weight) for label, weight in given.items()}
    for name, weight in weights.items():
        if name not in labels.names:
            raise InputError(f"class_weight names the label {name!r}, got only {', '.join(labels.names[:20])}")
        if not isinstance(weight, int | float) or not 0 <= weight < np.inf:
            raise InputError(f"class_weight of {name!r} must be a finite number from 0, got {weight!r:.80}")
    return weights


def plain(value: Any) -> Any:
    """Make a plain Python value of a NumPy one, such as a search draws.

    >>> plain(np.float64(0.5))
    0.5
    """
    return value.item() if isinstance(value, np.generic) else value
