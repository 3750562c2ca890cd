"""Do the scores of words agree with what people said of the same words? SST has labels of single words."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from routepool.datasets import load_dataset
from routepool.explaining import METHODS, Subject, explain

FILE = "sst_phrases/fine.phrases.train.tsv.gz"
NEUTRAL, POSITIVE = 2, "1"
DRAWS = 200


def word_labels() -> dict[str, bool]:
    """Every single word that people found not neutral, and whether they found it positive."""
    data = load_dataset(Path(os.environ["ROUTEPOOL_DATA"]) / FILE, header=False, label_column="1", text_column="2")
    labels = {one.text: int((one.labels or ("2",))[0]) for one in data.examples if " " not in one.text}
    return {word: label > NEUTRAL for word, label in labels.items() if label != NEUTRAL}


def agreement(subject: Subject, texts: Sequence[str], labels: dict[str, bool]) -> dict[str, Any]:
    """How often a word found positive has a higher score for that label than one found negative, with its interval."""
    found = {}
    for method in METHODS.names():
        by_text = [
            [(one.score, labels[word]) for one in shown.words if (word := shown.of(one).lower()) in labels]
            for shown in explain(subject, texts, method=method, label=POSITIVE)
        ]
        value = _area(by_text)
        generator = np.random.default_rng(0)
        drawn = [_area([by_text[i] for i in generator.integers(len(by_text), size=len(by_text))]) for _ in range(DRAWS)]
        low, high = np.quantile(drawn, [0.025, 0.975])
        found[method] = {"value": value, "low": float(low), "high": float(high), "words": sum(map(len, by_text))}
    return found


def _area(by_text: list[list[tuple[float, bool]]]) -> float:
    pairs: NDArray[Any] = np.array([pair for of_text in by_text for pair in of_text], dtype=np.float64)
    return float(roc_auc_score(pairs[:, 1], pairs[:, 0]))
