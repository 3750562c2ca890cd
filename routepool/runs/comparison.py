"""Aggregators side by side on the sentences of a known set, each on one core: what `routepool demo` trains."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children, get_context
from typing import NamedTuple

import numpy as np
import torch

from routepool.arrays import Flags
from routepool.datasets import load_named
from routepool.persistence import SavedModel
from routepool.runs.reporter import Reporter
from routepool.runs.scores import scores_of
from routepool.scoring.metrics import Difference, Evaluation, difference
from routepool.scoring.predictor import of_saved
from routepool.settings import assign, default_preset
from routepool.training import Task, fit

DATA, VECTORS = "rotten-tomatoes", "wordllama"
AGGREGATORS = {
    "routing": "standard routing",
    "max": "max pooling",
    "mean": "average pooling",
    "attention": "self-attention",
}


class Trained(NamedTuple):
    """A model and its scores on the test part."""

    saved: SavedModel
    scores: Evaluation
    right: Flags  # for each text


def train_side_by_side(epochs: int, reporter: Reporter) -> dict[str, Trained]:
    """Train a model with each of the aggregators, two at a time."""
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), mp_context=get_context("spawn")) as processes:
        trained = {name: processes.submit(train_one, name, epochs) for name in AGGREGATORS}
        results = {}
        try:
            for name, future in trained.items():
                results[name] = future.result()
                reporter.note(f"{AGGREGATORS[name]}: trained")
        except KeyboardInterrupt:  # else it would wait until all are trained
            processes.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                child.terminate()
            raise
    return results


def train_one(aggregator: str, epochs: int) -> Trained:
    """Train one model on one core; the settings are fixed, so the test part decides nothing."""
    torch.set_num_threads(1)
    parts = load_named(DATA)
    task = Task(parts.train.examples, parts.dev.examples, parts.train.labels, vectors=VECTORS)
    saved = fit(task, assign(default_preset(), {"aggregator": aggregator, "epochs": epochs})).saved
    predictor, test = of_saved(saved), parts.test
    answers = predictor.predict([example.text for example in test.examples])
    wanted = [(example.labels or ("",))[0] for example in test.examples]
    scores = scores_of(predictor, test, Reporter().note)
    return Trained(saved, scores, np.array(answers) == np.array(wanted))


def differences(results: dict[str, Trained]) -> dict[str, Difference]:
    """By how much the accuracy of each other aggregator is above that of routing, on the same texts."""
    routing = results["routing"].right
    return {name: difference(one.right, routing) for name, one in results.items() if name != "routing"}


def verdict(gaps: dict[str, Difference]) -> str:
    """What the differences say, and what they do not."""
    better = [AGGREGATORS[name] for name, gap in gaps.items() if gap.low > 0]
    worse = [AGGREGATORS[name] for name, gap in gaps.items() if gap.high < 0]
    said = [f"{' and '.join(better)} did better here than routing"] if better else []
    said += [f"{' and '.join(worse)} did worse"] if worse else []
    first = "; ".join(said) or "No difference from routing is larger than chance"
    return (
        f"{first}. This is one seed of short trainings: over many seeds and sets the aggregator decides little "
        "(docs/reproduction.md). Routing is here for what it shows: where each word went."
    )
