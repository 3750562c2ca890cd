"""Do document models learn? The paper's sum against `average=True` on full-length reviews, from the first step.

python benchmarks/documents.py     rewrites the table of docs/decisions/...-average-for-documents.md (25 minutes)
"""

import os
import sys
from dataclasses import replace
from functools import partial
from statistics import mean

import measure
import torch
from torch import Tensor, nn

from routepool import StandardRouting
from routepool.datasets import load_named
from routepool.layers.aggregation.routing import LinearMessages
from routepool.scoring.torch_backend import traces
from routepool.settings import ModelConfig, Preset, TextConfig, TrainingConfig, change
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


def norms_at_start(task: Task) -> str:
    """How long the sums of capsules are before anything is learned: median over 64 reviews, last round, by level."""
    task = replace(task, train=task.train[:64], dev=task.dev[:1])
    found: list[str] = []
    for average in (False, True):
        settings = preset(200, average, 0)
        settings = replace(settings, training=change(settings.training, learning_rate=1e-12, batch_size=64))
        model = fit(task, settings).saved  # a step too small to change anything
        norms: dict[int, list[Tensor]] = {0: [], 1: []}
        for place, kept in norms.items():
            aggregator = model.classifier.get_submodule(f"levels.{place}.aggregator")
            aggregator.register_forward_pre_hook(partial(_keep_norms, kept))
        list(traces(model.classifier, model.tokenizer.encode([example.text for example in task.train], 2)))
        words, sentences = (float(torch.cat(of_level).median()) for of_level in norms.values())
        found.append(f"{words:.1f} and {sentences:.1f} with {'the average' if average else 'the sum'}")
    return f"Median norm of what a capsule receives before training, words and sentences: {', '.join(found)}."


def _keep_norms(kept: list[Tensor], aggregator: nn.Module, inputs: tuple[Tensor, Tensor]) -> None:
    assert isinstance(aggregator, StandardRouting)
    states, mask = inputs
    messages = LinearMessages(states, aggregator.weight, aggregator.bias)
    kept.append(aggregator.route(messages, mask.unsqueeze(1))[-1].sums.norm(dim=-1)[mask.any(1)].flatten())


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
    norms = norms_at_start(task)
    print(norms, flush=True)
    curves = {run: train(task, *run) for run in RUNS}
    measure.write_section(
        "documents", [norms, "", *report(curves)], page="decisions/2026-11-15-average-for-documents.md"
    )
