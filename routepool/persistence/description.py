"""What a model folder holds: config.json, its part that is neither words nor weights, as checked values."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import torch
from torch import Tensor

from routepool.errors import InputError, MissingPackageError, RoutepoolError, UnknownNameError, unknown
from routepool.model import Classifier
from routepool.registry import AGGREGATORS, ENCODERS, PRETRAINED, origin_of
from routepool.settings import ModelConfig, TrainingConfig
from routepool.settings.declarations import check_calibration
from routepool.text import TextReader

Values = dict[str, Any]
Tensors = Mapping[str, Tensor]

FORMAT_VERSION = 1  # of model folders and checkpoints
_TABLE = "levels.0.embedding.weight"  # a row for each word
_FEWEST = 2  # words: that of padding and the unknown one
_NEVER_TOO_LARGE = 1000  # for a setting, however few weights the model has
# Version -> what turns its config.json into one of the next version; tests/fixtures has a folder of each.
MIGRATIONS: dict[int, Callable[[Values], Values]] = {}


@dataclass(frozen=True, kw_only=True)
class Description:
    """The checked values of a model folder.

    >>> Description(model_config=ModelConfig(), labels=("good", "good"))
    Traceback (most recent call last):
    routepool.errors.InputError: labels must be different strings, at least one, got ('good', 'good')
    """

    model_config: ModelConfig
    labels: tuple[str, ...]
    multi_label: bool = False
    temperature: float = 1.0
    thresholds: tuple[float, ...] | None = None
    columns: Mapping[str, Any] | None = None
    training: TrainingConfig | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        distinct = isinstance(self.labels, tuple) and len({label for label in self.labels if isinstance(label, str)})
        _check("labels", "different strings, at least one", self.labels, distinct and distinct == len(self.labels))
        _check("multi_label", "true or false", self.multi_label, isinstance(self.multi_label, bool))
        check_calibration(self.temperature, self.thresholds, len(self.labels))
        _check("columns", "null or a table", self.columns, self.columns is None or isinstance(self.columns, Mapping))
        _check("provenance", "a table", self.provenance, isinstance(self.provenance, Mapping))

    def to_config(self) -> Values:
        """The content of config.json. NaN and infinity, which JSON lacks, become null."""
        values = {item.name: _plain(getattr(self, item.name)) for item in fields(Description)}
        if plugins := plugins_of(self.model_config):
            values["provenance"] = {**values["provenance"], "plugins": plugins}
        return {"format_version": FORMAT_VERSION, **values}

    @classmethod
    def from_config(cls, values: Values) -> Self:
        """Read what `to_config` of this or any earlier version wrote."""
        for version in range(values["format_version"], FORMAT_VERSION):
            values = MIGRATIONS[version](values)
        # The backend is for whoever chose a loader: routepool.scoring.backends.
        values = {key: value for key, value in values.items() if key not in ("format_version", "backend")}
        known = [item.name for item in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown("key", key, known)
        if missing := [name for name in known if name not in values]:
            raise InputError(f"wanted the key {missing[0]}, got none")
        for name, kind in (("model_config", ModelConfig), ("training", TrainingConfig)):
            if values[name] is not None or name == "model_config":
                _check(name, "a table", values[name], isinstance(values[name], dict))
                values[name] = kind.from_dict(values[name])
        for name in ("labels", "thresholds"):
            values[name] = tuple(values[name]) if isinstance(values[name], list) else values[name]
        return cls(**values)

    def blank(self, tensors: Tensors) -> Classifier:
        """Build the model without memory; settings out of proportion to its weights are refused.

        Args:
            tensors: the weights. Only their shapes matter, which give the number of words.
        """
        weights = sum(tensor.numel() for tensor in tensors.values())
        largest = _largest(vars(self.model_config))
        if largest > max(_NEVER_TOO_LARGE, weights):
            raise InputError(f"the settings must fit a model of {weights} weights, got a size of {largest}")
        table = tensors.get(_TABLE)  # a pre-trained encoder has its own, of a size that its settings give
        words = _FEWEST if table is None or not table.ndim else max(_FEWEST, len(table))
        with torch.device("meta"):  # shapes only
            return self.build(words)

    def build(self, words: int) -> Classifier:
        """Build the model, untrained, for so many words."""
        try:
            # float: a saved model does not depend on torch's default type.
            return Classifier.build(self.model_config, vocabulary_size=words, classes=len(self.labels)).float()
        except UnknownNameError as error:
            plugins = self.provenance.get("plugins")
            if not isinstance(plugins, Mapping):
                raise
            brought = ", ".join(map(str, plugins.values()))
            raise MissingPackageError(
                f"{error}. It was trained with {brought:.200}: install it, or name its module with --plugin MODULE"
            ) from error
        except RoutepoolError:
            raise
        except Exception as error:  # a registered class may fail as it likes
            raise InputError(f"no model can be built from these settings ({error!s:.200})") from error


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedModel(Description):
    """All that is needed to predict with a model, and how it was made.

    Args:
        classifier: built from `model_config`, with a row for each word and a logit for each label.
        tokenizer: text -> ids.
        model_config: the shape of the model.
        labels: names of the classes, in the order of the logits.
        multi_label: a text may have any number of labels.
        temperature: divides the logits, so that probabilities are calibrated.
        thresholds: with `multi_label`, the probability from which each label is given.
        columns: where text and labels stood in the training data, for reading more such data.
        training: how the model was trained.
        provenance: anything JSON can hold: data and its hash, versions, scores, seed.
    """

    classifier: Classifier
    tokenizer: TextReader


def plugins_of(config: ModelConfig) -> dict[str, str]:
    """Where those of a model's classes come from that are not routepool's: setting -> class and package.

    >>> plugins_of(ModelConfig(aggregator="max"))
    {}
    """
    encoder = PRETRAINED if config.encoder in PRETRAINED.names() else ENCODERS
    used = {"aggregator": AGGREGATORS[config.aggregator], "encoder": encoder[config.encoder]}
    if config.upper_encoder:
        used["upper_encoder"] = ENCODERS[config.upper_encoder]
    return {setting: origin for setting, cls in used.items() if (origin := origin_of(cls)) is not None}


def _check(name: str, wanted: str, value: Any, right: object) -> None:
    if not right:
        raise InputError(f"{name} must be {wanted}, got {value!r:.80}")


def _plain(value: Any) -> Any:
    if isinstance(value, ModelConfig | TrainingConfig):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _largest(value: Any) -> int:
    if isinstance(value, Mapping):
        return max(map(_largest, value.values()), default=0)
    if isinstance(value, list | tuple):
        return max(map(_largest, value), default=0)
    return value if isinstance(value, int) else 0
