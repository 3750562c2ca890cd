"""How the default preset was chosen: learning rate and dropout on dev, beside linear models.

python benchmarks/defaults.py                  sentences: two sets, 24 trainings of a few minutes each
python benchmarks/defaults.py imdb-reviews     documents: part of the reviews, 8 trainings of ten minutes each

Dev only, the test parts are not read.
"""

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any, NamedTuple

import measure
import numpy as np
import torch
from numpy.typing import NDArray

from routepool.datasets import Example, Parts, load_named, split
from routepool.settings import assign, default_preset, text_settings
from routepool.training import Task, fit


class Search(NamedTuple):
    """What is tried on some sets."""

    sets: tuple[str, ...]
    grid: list[dict[str, Any]]
    seeds: tuple[int, ...]  # one alone is off by half a point either way
    epochs: int


SENTENCES = Search(
    ("rotten-tomatoes", "sst2"),
    # Dropout of values and of words go together: the grid is about how much of both.
    [
        {"learning_rate": rate, "dropout": values, "word_dropout": words}
        for values, words in ((0.7, 0.2), (0.5, 0.0))
        for rate in (1e-3, 5e-4)
    ],
    seeds=(0, 1, 2),
    epochs=30,
)
DOCUMENTS = Search(
    ("imdb-reviews",),
    [
        {"learning_rate": rate, "dropout": dropout, "frozen_epochs": frozen}
        for rate, dropout, frozen in ((1e-3, 0.5, 1), (1e-3, 0.5, 0), (1e-3, 0.2, 1), (5e-4, 0.5, 0))
    ],
    seeds=(0, 1),
    epochs=4,
)
MOST_TEXTS = 5000  # with all reviews a training takes an hour


def train(name: str, setting: dict[str, Any], seed: int) -> float:
    """Best dev accuracy of the default preset with some settings changed; all of dev decides, none calibrates."""
    torch.set_num_threads(1)
    parts, search = parts_of(name), search_of(name)
    preset = replace(default_preset(document=search is DOCUMENTS), text=text_settings(name))
    preset = assign(preset, {**setting, "epochs": search.epochs, "seed": seed, "calibration": 0.0})
    task = Task(parts.train.examples, parts.dev.examples, parts.train.labels, vectors="wordllama")
    return fit(task, preset).progress.best_score


def search_of(name: str) -> Search:
    return DOCUMENTS if name in DOCUMENTS.sets else SENTENCES


def parts_of(name: str) -> Parts:
    """The set of that name, of long texts a fixed part with as many of each label as it has."""
    parts = load_named(name)
    if name not in DOCUMENTS.sets:
        return parts
    train, dev = (
        part.select(split(part.examples, held=held).held)
        for part, held in ((parts.train, MOST_TEXTS), (parts.dev, MOST_TEXTS // 5))
    )
    return parts._replace(train=train, dev=dev)


def baselines(name: str) -> dict[str, float]:
    """TF-IDF with logistic regression, and NB-SVM, their C tuned on dev as well."""
    parts = parts_of(name)
    train_texts, train_labels = _columns(parts.train.examples)
    dev_texts, dev_labels = _columns(parts.dev.examples)
    return {
        "TF-IDF 1-2 grams + logistic regression": _logistic(train_texts, train_labels, dev_texts, dev_labels),
        "NB-SVM 1-2 grams": _nb_svm(train_texts, train_labels, dev_texts, dev_labels),
    }


def _columns(examples: tuple[Example, ...]) -> tuple[list[str], NDArray[np.bool_]]:
    return [example.text for example in examples], np.array([example.labels == ("1",) for example in examples])


def _logistic(texts: list[str], labels: Any, dev: list[str], wanted: Any) -> float:
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    vectorizer = TfidfVectorizer(ngram_range=(1, 2))
    features, of_dev = vectorizer.fit_transform(texts), vectorizer.transform(dev)
    models = (LogisticRegression(C=strength, max_iter=1000).fit(features, labels) for strength in (1, 3, 10, 30))
    return max(float(model.score(of_dev, wanted)) for model in models)


def _nb_svm(texts: list[str], labels: Any, dev: list[str], wanted: Any) -> float:
    """Wang and Manning 2012: log-count ratios as features, weights drawn to their mean by beta 0.25."""
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415
    from sklearn.svm import LinearSVC  # noqa: PLC0415

    vectorizer = CountVectorizer(ngram_range=(1, 2), binary=True, token_pattern=r"\b\w+\b")
    counts, of_dev = vectorizer.fit_transform(texts), vectorizer.transform(dev)
    positive, negative = (1 + np.asarray(counts[labels == side].sum(0)).ravel() for side in (True, False))
    ratio = np.log(positive / positive.sum()) - np.log(negative / negative.sum())
    best = 0.0
    for strength in (0.01, 0.03, 0.1, 0.3, 1.0):
        model = LinearSVC(C=strength).fit(counts.multiply(ratio).tocsr(), labels)
        weights = model.coef_.ravel()
        drawn = 0.75 * np.abs(weights).mean() + 0.25 * weights
        predicted = of_dev.multiply(ratio).tocsr() @ drawn + model.intercept_[0] > 0
        best = max(best, float((predicted == wanted).mean()))
    return best


def report(name: str, processes: ProcessPoolExecutor) -> list[str]:
    search = search_of(name)
    runs = {
        str(setting): [processes.submit(train, name, setting, seed) for seed in search.seeds] for setting in search.grid
    }
    rows = [[what, f"{100 * score:.1f}"] for what, score in baselines(name).items()]
    for setting, futures in runs.items():
        scores = [future.result() for future in futures]
        by_seed = ", ".join(f"{100 * score:.1f}" for score in scores)
        rows.append([f"routepool, {setting}", f"{100 * np.mean(scores):.1f} ({by_seed})"])
        print(name, rows[-1], flush=True)
    return [f"{name}, dev accuracy:", "", *measure.table(["model", "dev"], rows)]


if __name__ == "__main__":
    workers = int(os.environ.get("WORKERS", "2"))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for data_set in sys.argv[1:] or SENTENCES.sets:
            print("\n".join(report(data_set, pool)), flush=True)
