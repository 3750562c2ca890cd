"""Settings that belong together: of the paper, of its code, of a baseline it cites, and what does best on SST."""

from dataclasses import replace
from typing import Any

from routepool.errors import unknown
from routepool.settings.declarations import ModelConfig, Preset, TrainingConfig, change

# Table 2, and for `released` the settings files shipped with the code. The shared rows of the table (embedding 300,
# hidden 200, 5 capsules of 200, 3 iterations) are the defaults of the settings and of the routing layer.
_TABLE_2: dict[str, dict[str, Any]] = {
    "yelp2013": {"l2": 1e-5, "learning_rate": 1e-4, "decay": 0.9, "decay_steps": 1000},
    "yelp2014": {"l2": 1e-5, "learning_rate": 2e-4, "decay": 0.9, "decay_steps": 1000},
    "imdb": {"l2": 1e-6, "learning_rate": 1e-4, "decay": 0.95, "decay_steps": 1000},
    "sst1": {"l2": 1e-6, "learning_rate": 1e-4, "decay": 0.95, "decay_steps": 500},
    "sst2": {"l2": 1e-5, "learning_rate": 3e-4, "decay": 0.95, "decay_steps": 500},
}
_RELEASED: dict[str, dict[str, Any]] = {
    **_TABLE_2,
    "imdb": {"l2": 1e-6, "learning_rate": 2e-4, "decay": 0.9, "decay_steps": 1000},
    "sst2": {"l2": 1e-6, "learning_rate": 3e-4, "decay": 0.9, "decay_steps": 1000},
}


def _paper(dataset: str) -> Preset:
    document = not dataset.startswith("sst")
    return Preset(
        ModelConfig(depth=2 if document else 1, dropout=0.5 if dataset == "sst2" else 0.2),
        TrainingConfig(batch_size=32 if document else 64, smallest_batch=32 if document else 16, **_TABLE_2[dataset]),
    )


def _released(dataset: str) -> Preset:
    paper = _paper(dataset)
    table = _RELEASED[dataset]
    return Preset(
        change(
            paper.model,
            aggregator_options={"capsule_size": 400, "messages": "tanh"},
            # Dropout on the word vectors and after every aggregator: a second level's input is dropped once, not twice.
            dropout_places=("embedding", "aggregator", "tanh"),
        ),
        change(
            paper.training,
            **{**table, "l2": table["l2"] / 2},  # its l2_loss is half the sum of squares
            l2_on="weights",
            patience=8,
            frozen_rows="unknown",
        ),
    )


def _cnn(dataset: str) -> Preset:
    """CNN-non-static of Kim 2014, which the paper's table 3 cites, with the paper's head and training."""
    kim: dict[str, Any] = {"encoder": "cnn", "hidden_size": 100, "dropout": 0.5, "dropout_places": ("aggregator",)}
    paper = _paper(dataset)
    return replace(paper, model=change(paper.model, aggregator="max", **kim))


def _best(**options: bool) -> Preset:
    """What does best on SST with its labelled phrases: chosen on dev, docs/reproduction.md has the search."""
    steps: dict[str, Any] = {"epochs": 3, "patience": 3, "smallest_batch": 64, "window": 256, "replacement": False}
    rate: dict[str, Any] = {"schedule": "linear", "learning_rate": 1e-3, "lowest_rate": 0.0}
    return Preset(
        ModelConfig(dropout=0.5, aggregator_options=options),
        TrainingConfig(**steps, **rate, l2=1e-6, frozen_epochs=0, average_weights=0.999),
    )


PRESETS: dict[str, Preset] = {
    "best-sst1": _best(),
    "best-sst2": _best(learned_length=True),
    **{f"cnn-{dataset}": _cnn(dataset) for dataset in ("sst1", "sst2")},
    **{f"paper-{dataset}": _paper(dataset) for dataset in _TABLE_2},
    **{f"released-{dataset}": _released(dataset) for dataset in _TABLE_2},
}


def preset(name: str) -> Preset:
    """The settings of that name.

    `paper-SET` follows the text and table 2, `released-SET` the authors' code, `best-SET` what does best on dev, and
    `cnn-SET` is the convolution that the paper compares with.

    >>> preset("paper-sst2").training.learning_rate
    0.0003
    """
    if name not in PRESETS:
        raise unknown("preset", name, sorted(PRESETS))
    return PRESETS[name]
