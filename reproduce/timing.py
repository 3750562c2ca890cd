"""How long an epoch takes: contenders in turn, on one machine, so that their ratios mean something."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from reproduce import data
from reproduce.plan import BY_DEPTH, DOCUMENTS, OPEN, TABLE_3
from reproduce.running import revision, settings, vectors, write
from reproduce.runs import Run, Variant
from routepool.datasets import Parts
from routepool.runs.record import versions
from routepool.training import Hook, StepReport, Task, fit

CONTENDERS: dict[str, list[Variant]] = {
    "sst2": [TABLE_3["routing"], *OPEN.values()],
    DOCUMENTS: list(BY_DEPTH.values()),
}
ROUNDS = {"sst2": 5, DOCUMENTS: 3}  # an epoch of reviews takes ten times as long


class Stopwatch(Hook):
    """Processor seconds from the end of the first step, which allocates, to the end of the last."""

    def __init__(self) -> None:
        self.start = self.end = 0.0

    def on_step(self, report: StepReport) -> None:
        self.end = time.process_time()
        self.start = self.start or self.end

    @property
    def seconds(self) -> float:
        return self.end - self.start


def one_epoch(name: str, variant: Variant, seed: int) -> Run:
    """A run of one epoch in which word vectors learn, as in nearly all epochs, unless the variant itself says when."""
    changes = {"frozen_epochs": 0, **variant.changes, "epochs": 1}
    return Run(name, replace(variant, changes=changes), seed, scored=False)


def epoch_seconds(run: Run, parts: Parts) -> float:
    """Train, and tell how long that took."""
    watch = Stopwatch()
    task = Task(parts.train.examples, parts.dev.examples[:1], parts.train.labels, vectors=vectors(run))
    fit(task, settings(run), hooks=[watch])
    return watch.seconds


def measure(name: str, contenders: Sequence[Variant], results: Path, *, rounds: int, rows: int | None = None) -> None:
    """Rounds until there are enough, each written as it ends; all contenders in turn, with one seed a round."""
    path = results / "timing" / f"{name}.json"
    done: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rounds"] if path.exists() else []
    if len(done) >= rounds:
        return
    parts = data.load(name, at_most=rows)
    for seed in range(len(done), rounds):
        seconds = {one.name: epoch_seconds(one_epoch(name, one, seed), parts) for one in contenders}
        done.append({"seed": seed, "versions": versions(), "revision": revision(), "seconds": seconds})
        write(path, {"dataset": name, "texts": len(parts.train.examples), "rounds": done})
        print(f"{name}, round {seed + 1}: {', '.join(f'{of} {took:.1f}' for of, took in seconds.items())}", flush=True)


def time_epochs(results: Path) -> None:
    """The rounds that are missing, one to ten minutes each."""
    torch.set_num_threads(1)
    for name, contenders in CONTENDERS.items():
        measure(name, contenders, results, rounds=ROUNDS[name])
