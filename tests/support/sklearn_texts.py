"""Texts for scikit-learn's estimator checks, and what they compare."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from routepool import TextClassifier
from support.planted import FILLER

METHODS = ("predict", "transform", "decision_function", "predict_proba")
CUES = ("merry", "gloomy", "sleepy", "hungry", "windy")


def words(number: int, classes: int = 2, *, seed: int = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Texts of filler words with the cue of their class; the classes take turns."""
    random = np.random.RandomState(seed)
    y = np.arange(number) % classes
    texts = []
    for label in y:
        text = list(random.choice(FILLER, random.randint(2, 7)))
        text.insert(random.randint(len(text) + 1), CUES[label])
        texts.append(" ".join(text))
    return np.array(texts, dtype=object), y


def indicator(number: int, labels: int, *, seed: int = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Texts with any number of cues, none included."""
    random = np.random.RandomState(seed)
    y = random.randint(0, 2, (number, labels))
    texts = [" ".join([*random.choice(FILLER, 3), *(CUES[i] for i in np.flatnonzero(row))]) for row in y]
    return np.array(texts, dtype=object), y


def learned(model: TextClassifier, X: Any) -> dict[str, Any]:
    return {method: getattr(model, method)(X) for method in METHODS}


def assert_same(one: dict[str, Any], other: dict[str, Any], *, rtol: float, atol: float = 0) -> None:
    for method in METHODS:
        if one[method].dtype.kind == "f":
            np.testing.assert_allclose(one[method], other[method], rtol=rtol, atol=atol, err_msg=method)
        else:
            np.testing.assert_array_equal(one[method], other[method], err_msg=method)


@contextmanager
def memmapped(folder: Path, *data: Any) -> Iterator[Any]:
    joblib.dump(data, folder / "data.joblib")
    yield joblib.load(folder / "data.joblib", mmap_mode="r")
