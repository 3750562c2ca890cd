"""Do document models learn? The paper's sum against `average=True` on full-length reviews, from the first step.

python benchmarks/documents.py     rewrites the table and the picture of docs/architecture.md (about 25 minutes)
"""

import os
import sys
from statistics import mean

import measure
import torch

from routepool.config import ModelConfig, Preset, TextConfig, TrainingConfig
from routepool.datasets import load_named
from routepool.training import EpochReport, Hook, StepReport, Task, fit

STEPS, BATCH, EVERY = 250, 32, 50
VECTORS = "vectors/glove.6B.100d.f16.npz"
RUNS = [(200, average, seed) for seed in (0, 1) for average in (False, True)]
RUNS += [(100, average, 0) for average in (False, True)]


class Curve(Hook):
    """Losses by step, and the dev accuracy at the end."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.dev = 0.0

    def on_step(self, report: StepReport) -> None:
        self.losses.append(report.loss)

    def on_epoch(self, report: EpochReport) -> None:
        self.dev = report.score

    def means(self) -> list[float]:
        return [mean(self.losses[start : start + EVERY]) for start in range(0, STEPS, EVERY)]


def preset(size: int, average: bool, seed: int) -> Preset:
    """Two levels, everything else as plain as it can be."""
    options = {"capsule_size": size, "average": average}
    model = ModelConfig(depth=2, hidden_size=size, aggregator_options=options, dropout=0.0)
    training = TrainingConfig(
        epochs=1, batch_size=BATCH, window=10**6, replacement=False, learning_rate=5e-4, l2=0.0, seed=seed
    )
    return Preset(model, training, TextConfig())


def train(task: Task, size: int, average: bool, seed: int) -> Curve:
    curve = Curve()
    fit(task, preset(size, average, seed), hooks=[curve])
    print(size, average, seed, [f"{loss:.3f}" for loss in curve.means()], curve.dev, flush=True)
    return curve


def report(curves: dict[tuple[int, bool, int], Curve]) -> list[str]:
    header = ["size", "capsule receives", "seed", *(f"to step {EVERY * (i + 1)}" for i in range(STEPS // EVERY)), "dev"]
    rows = [
        [str(size), "average" if average else "sum (paper)", str(seed), *(f"{loss:.3f}" for loss in curve.means()),
         f"{100 * curve.dev:.1f}"]
        for (size, average, seed), curve in sorted(curves.items())
    ]  # fmt: skip
    return measure.table(header, rows)


if __name__ == "__main__":
    if "ROUTEPOOL_DATA" not in os.environ:
        sys.exit(
            "set ROUTEPOOL_DATA to a folder with imdb_reviews/ and vectors/: this benchmark trains on real reviews"
        )
    torch.set_num_threads(1)
    parts = load_named("imdb-reviews")
    task = Task(
        train=parts.train.examples[: STEPS * BATCH],
        dev=parts.dev.examples[:1000],
        labels=parts.train.labels,
        vectors=os.path.join(os.environ["ROUTEPOOL_DATA"], VECTORS),  # noqa: PTH118
    )
    curves = {run: train(task, *run) for run in RUNS}
    measure.write_section("documents", report(curves), page="architecture.md")
