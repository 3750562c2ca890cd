"""Settings and tensors -> a classifier, with nothing built before its size is known to be that of the file."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from routepool.errors import InputError, RoutepoolError
from routepool.model import Classifier
from routepool.persistence.description import Description
from routepool.persistence.tensors import check_tensors
from routepool.text import TextReader, Tokenizer

Tensors = Mapping[str, Tensor]

TABLE, BIAS = "levels.0.embedding.weight", "head.output.bias"  # a row for each word, a number for each label
FEWEST = 2  # words: that of padding and the unknown one
_NEVER_TOO_LARGE = 1000  # for a setting, however few weights the model has


def blank(description: Description, tensors: Tensors) -> Classifier:
    """A model so described that takes no memory; settings out of proportion to its number of weights are refused.

    Args:
        description: the settings.
        tensors: of the model, their values do not matter; they tell how many words there are.
    """
    weights = sum(tensor.numel() for tensor in tensors.values())
    most = max(_NEVER_TOO_LARGE, weights)
    largest = _largest(description.model_config.to_dict())
    if largest > most:
        raise InputError(f"the settings must fit a model of {weights} weights, got a size of {largest}")
    with torch.device("meta"):  # shapes only
        return _build(description, _words(tensors))


def check_weights(model: Classifier, tensors: Tensors, description: Description) -> None:
    """Refuse tensors that are not those of the model."""
    source = f"for the settings and {len(description.labels)} labels of config.json"
    check_tensors(tensors, model.state_dict(), source=source)


def check_words(tokenizer: TextReader, model: Classifier) -> None:
    """Refuse a tokenizer that is not the model's: each of its words has a row, of pieces there may be fewer."""
    words = len(tokenizer.words)
    if words > model.rows or (isinstance(tokenizer, Tokenizer) and words < model.rows):
        raise InputError(f"the model must have a row for each of the {words} words of its tokenizer, got {model.rows}")


def fill(model: Classifier, tensors: Tensors, description: Description) -> Classifier:
    """The classifier with these weights, checked."""
    check_weights(model, tensors, description)
    if any(name not in tensors for name, _ in model.named_buffers()):
        with torch.random.fork_rng(devices=[]):  # loading must not disturb the user's random numbers
            model = _build(description, model.rows)  # a registered class computes a table that it does not save
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def _words(tensors: Tensors) -> int:
    """How many words the table has; a pre-trained encoder has its own, of a size that its settings give."""
    table = tensors.get(TABLE)
    return FEWEST if table is None or not table.ndim else max(FEWEST, len(table))


def _build(description: Description, words: int) -> Classifier:
    classes = len(description.labels)
    try:
        # float: a saved model does not depend on torch's default type.
        return Classifier.build(description.model_config, vocabulary_size=words, classes=classes).float()
    except RoutepoolError:
        raise
    except Exception as error:  # a registered class may fail as it likes
        raise InputError(f"no model can be built from these settings ({error!s:.200})") from error


def _largest(value: Any) -> int:
    if isinstance(value, Mapping):
        return max(map(_largest, value.values()), default=0)
    if isinstance(value, list | tuple):
        return max(map(_largest, value), default=0)
    return value if isinstance(value, int) else 0
