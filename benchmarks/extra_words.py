"""What to do with the vectors of words never seen in training, once those of the seen ones have moved. Dev only.

python benchmarks/extra_words.py sst2 glove.6B.100d.txt RUN...     rewrites the table of its note in docs/decisions

Each RUN was trained on the set with those vectors: `routepool train sst2 --preset paper --vectors FILE --seed N`.
"""

import sys
from collections.abc import Sequence
from typing import NamedTuple

import measure
import numpy as np
import torch
from numpy.typing import NDArray

from routepool.datasets import load_named
from routepool.persistence import SavedModel, load_model
from routepool.scoring.torch_backend import logits_of
from routepool.text import UNKNOWN, Encoded, Tokenizer
from routepool.vectors import load_vectors

Floats = NDArray[np.float32]
PENALTIES = (1.0, 100.0, 1000.0)  # of the map's ridge regression; the best on dev is shown, to its advantage


class Words(NamedTuple):
    """The vocabulary of a trained model."""

    given: Floats  # (V, D) vectors before training
    tuned: Floats  # (V, D) and after
    counts: NDArray[np.int64]  # (V,) occurrences in training
    seen: NDArray[np.bool_]  # with a vector
    unseen: NDArray[np.bool_]


def words_of(saved: SavedModel, source: str) -> Words:
    assert isinstance(saved.tokenizer, Tokenizer)  # a model on words, not on a pre-trained encoder's pieces
    loaded = load_vectors(source, saved.tokenizer.words, counts=saved.tokenizer.counts)
    counts = np.array(saved.tokenizer.counts)
    special = np.arange(len(counts)) <= UNKNOWN
    weight = saved.classifier.get_parameter("levels.0.embedding.weight")
    return Words(
        loaded.table,
        weight.detach().numpy().copy(),
        counts,
        loaded.known & (counts > 0),
        loaded.known & (counts == 0) & ~special,
    )


def mapped(words: Words, penalty: float) -> Floats:
    """The unseen words moved as a linear map, learned from the seen ones, says of their vectors."""
    inputs = np.c_[words.given, np.ones(len(words.given))]
    weight = np.sqrt(np.minimum(words.counts[words.seen], 20))[:, None]  # rare words have hardly moved
    known = inputs[words.seen] * weight
    moved = (words.tuned - words.given)[words.seen] * weight
    matrix = np.linalg.solve(known.T @ known + penalty * np.eye(known.shape[1]), known.T @ moved)
    table = words.tuned.copy()
    table[words.unseen] += (inputs[words.unseen] @ matrix).astype(np.float32)
    return table


def compare(name: str, source: str, run: str) -> list[str]:
    saved = load_model(run)
    words = words_of(saved, source)
    examples = load_named(name).dev.examples
    truth = np.array([saved.labels.index((example.labels or ("",))[0]) for example in examples])
    encoded = saved.tokenizer.encode([example.text for example in examples], saved.model_config.depth)
    without = [text._replace(ids=np.where(words.unseen[text.ids], np.int32(UNKNOWN), text.ids)) for text in encoded]

    def score(table: Floats, texts: Sequence[Encoded]) -> float:
        with torch.no_grad():
            saved.classifier.get_parameter("levels.0.embedding.weight").copy_(torch.from_numpy(table))
        return 100 * float((logits_of(saved.classifier, texts).argmax(1) == truth).mean())

    touched = sum(bool(words.unseen[text.ids].any()) for text in encoded)
    moved = np.linalg.norm(words.tuned - words.given, axis=1)[words.seen].mean()
    size = np.linalg.norm(words.given, axis=1)[words.seen].mean()
    scores = {
        "unknown": score(words.tuned, without),
        "as they are": score(words.tuned, encoded),
        "mapped": max(score(mapped(words, penalty), encoded) for penalty in PENALTIES),
    }
    print(run, scores, flush=True)
    return [
        str(saved.training.seed if saved.training else ""),
        f"{moved:.2f} of {size:.2f}",
        f"{touched} of {len(encoded)}",
        *(f"{value:.1f}" for value in scores.values()),
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    data_set, file, *runs = sys.argv[1:]
    header = ["seed", "seen words moved by", "dev texts with an unseen word", "unknown", "as they are", "mapped"]
    table = measure.table(header, [compare(data_set, file, run) for run in runs])
    measure.write_section("extra-words", table, page="decisions/2026-11-16-words-never-seen.md")
