"""The search for the preset `best`: what was tried on SST with all that is at hand, scored on dev alone."""

from typing import Any

VECTORS = "vectors/glove.6B.100d.f16.npz,wordllama"
PHRASES = ("sst2-phrases", "sst1-phrases")
# Where the search begins.
BASE: dict[str, Any] = {
    "aggregator": "routing",
    "average": False,
    "epochs": 4,
    "patience": 4,
    "batch_size": 64,
    "smallest_batch": 64,
    "learning_rate": 5e-4,
    "dropout": 0.5,
    "word_dropout": 0.0,
    "min_frequency": 1,
    "average_weights": 0.999,
}
TRIALS: dict[str, dict[str, Any]] = {
    "base": {},
    "last-weights": {"average_weights": 0.0},
    "phrase-weight-0.5": {"phrase_weight": 0.5},
    "locked": {"dropout_kind": "locked"},
    "word-dropout-0.1": {"word_dropout": 0.1},
    "average": {"average": True},
    "dropout-0.4": {"dropout": 0.4},
    "rate-1e-3": {"learning_rate": 1e-3},
    "batch-128": {"batch_size": 128, "smallest_batch": 128},
}
