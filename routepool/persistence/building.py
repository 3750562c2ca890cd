"""Settings and tensors -> a classifier, with nothing built before its size is known to be that of the file."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from routepool.errors import InputError
from routepool.model import Classifier
from routepool.persistence.description import Description
from routepool.persistence.tensors import check_tensors
from routepool.text import TextReader

Tensors = Mapping[str, Tensor]

_NEVER_TOO_LARGE = 1000  # for a setting, however few weights the model has


def blank(description: Description, tokenizer: TextReader, *, weights: int) -> Classifier:
    """A model so described that takes no memory; settings out of proportion to its number of weights are refused."""
    most = max(_NEVER_TOO_LARGE, weights)
    largest = _largest(description.model_config.to_dict())
    if largest > most:
        raise InputError(f"the settings must fit a model of {weights} weights, got a size of {largest}")
    with torch.device("meta"):  # shapes only
        return _build(description, tokenizer)


def check_weights(model: Classifier, tensors: Tensors, description: Description, tokenizer: TextReader) -> None:
    """Refuse tensors that are not those of the model."""
    labels, words = len(description.labels), len(tokenizer.words)
    source = f"for the settings and {labels} labels of config.json and the {words} words of tokenizer.json"
    check_tensors(tensors, model.state_dict(), source=source)


def fill(model: Classifier, tensors: Tensors, description: Description, tokenizer: TextReader) -> Classifier:
    """The classifier with these weights, checked."""
    check_weights(model, tensors, description, tokenizer)
    if any(name not in tensors for name, _ in model.named_buffers()):
        with torch.random.fork_rng(devices=[]):  # loading must not disturb the user's random numbers
            model = _build(description, tokenizer)  # a registered class computes a table that it does not save
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def count(tensors: Tensors) -> int:
    """The number of weights."""
    return sum(tensor.numel() for tensor in tensors.values())


def _build(description: Description, tokenizer: TextReader) -> Classifier:
    words, labels = len(tokenizer.words), len(description.labels)
    try:
        # float: a saved model does not depend on torch's default type.
        return Classifier.build(description.model_config, vocabulary_size=words, classes=labels).float()
    except (TypeError, AttributeError, RuntimeError, OverflowError) as error:
        raise InputError(f"no model can be built from these settings ({error!s:.200})") from error


def _largest(value: Any) -> int:
    if isinstance(value, Mapping):
        return max(map(_largest, value.values()), default=0)
    if isinstance(value, list | tuple):
        return max(map(_largest, value), default=0)
    return value if isinstance(value, int) else 0
