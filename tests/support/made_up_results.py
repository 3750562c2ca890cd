"""Results of runs that never were: accuracies as a test wants them, in the form that `reproduce.running` writes."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from reproduce.plan import WHOLESOME
from reproduce.runs import Run
from routepool.explaining import Explanation, Span, SpanLevel

LABELS = {"sst1": 5, "imdb-ratings-5000": 8}


def write_gold(folder: Path, data: Iterable[str], *, texts: int = 400) -> None:
    """Labels and lengths of made-up test texts."""
    for name in data:
        random = np.random.default_rng(len(name))
        labels = [str(label) for label in random.integers(LABELS.get(name, 2), size=texts)]
        same = {"dataset": name, "data_hash": f"hash of {name}"}
        _write(folder / "gold" / f"{name}.json", {**same, "labels": labels})
        _write(folder / "lengths" / f"{name}.json", {**same, "words": random.integers(3, 60, size=texts).tolist()})


def write_results(folder: Path, runs: Iterable[Run], skill: Callable[[Run], float]) -> None:
    """A result for each run; a text is hard or easy for all runs alike, and a little for each by itself."""
    for run in runs:
        gold = json.loads((folder / "gold" / f"{run.data}.json").read_text())
        _write(folder / f"{run.name}.json", made_up(run, gold, skill(run)))


def made_up(run: Run, gold: dict[str, Any], skill: float) -> dict[str, Any]:
    """One result."""
    labels = np.array(gold["labels"])
    own = np.random.default_rng(crc32(run.name.encode()))
    hard = 0.7 * np.random.default_rng(0).random(len(labels)) + 0.3 * own.random(len(labels))
    right = hard < np.quantile(hard, skill)
    wrong = [str((int(label) + 1) % LABELS.get(run.data, 2)) for label in labels]
    epochs = 3 + run.seed % 3
    dev = skill + own.normal(0, 0.003)
    found: dict[str, Any] = {
        "dataset": run.data,
        "trained_on": run.data,
        "variant": run.variant.name,
        "seed": run.seed,
        "versions": {"routepool": "0", "torch": "2"},
        "data_hash": gold["data_hash"],
        "curve": [{"epoch": epoch, "score": dev - 0.01 * (epochs - epoch - 1)} for epoch in range(epochs)],
        "dev": dev,
        "processor_seconds": 40.0 * epochs,
        "parameters": 1_234_567,
        "flops": 12_345_678,
        "test": float(right.mean()) if run.scored else None,
        "test_predictions": np.where(right, labels, wrong).tolist() if run.scored else None,
    }
    if run.variant.shown:
        weights = own.dirichlet(np.ones(3), size=len(WHOLESOME.split()))
        found["shown"] = shown(weights.tolist())
    return found


def shown(weights: Iterable[Sequence[float]]) -> dict[str, Any]:
    """The explanation of a text whose words have these couplings."""
    words = SpanLevel("words", tuple(Span(0, 0, tuple(row), 0.0) for row in weights))
    return Explanation("", ("0",), {"0": 1.0}, "0", "message", "routing", "capsule", "word", (words,)).to_dict()


def write_timing(folder: Path, seconds: Mapping[str, Mapping[str, float]], *, rounds: int = 3) -> None:
    """Epochs of every set timed in rounds, each by another machine: seconds differ, their ratios hardly."""
    for name, of_set in seconds.items():
        random = np.random.default_rng(0)
        taken = [
            {one: speed * value * random.uniform(0.99, 1.01) for one, value in of_set.items()}
            for speed in 2.0 ** np.arange(rounds)
        ]
        _write(folder / "timing" / f"{name}.json", {"rounds": [{"seconds": one} for one in taken]})


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
