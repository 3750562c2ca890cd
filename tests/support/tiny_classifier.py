"""A small estimator and texts that it learns in a moment."""

from typing import Any

from routepool import TextClassifier
from routepool.persistence import SavedModel
from support import planted

EXAMPLES = planted.planted(40)
TEXTS = [example.text for example in EXAMPLES]
LABELS = [(example.labels or ("",))[0] for example in EXAMPLES]


def tiny(**values: Any) -> TextClassifier:
    settings = {"head_size": 8, "word_dropout": 0.0, **values.pop("settings", {})}
    usual: dict[str, Any] = {
        "aggregator": "mean", "encoder": "none", "vectors": "none", "embedding_size": 8, "hidden_size": 8,
        "epochs": 3, "batch_size": 16, "learning_rate": 0.05, "dropout": 0.0, "validation_fraction": None,
        "random_state": 0,
    }  # fmt: skip
    return TextClassifier(**{**usual, **values}, settings=settings)


def saved(model: TextClassifier) -> SavedModel:
    assert model.predictor_.saved is not None
    return model.predictor_.saved


def same(one: TextClassifier, other: TextClassifier) -> bool:
    """To the last bit."""
    return planted.identical(saved(one), saved(other))
