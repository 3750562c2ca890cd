"""One run: a model is trained, test is scored if the plan says so, one JSON is written."""

import argparse
import json
import os
import subprocess
import time
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

import reproduce.controls  # noqa: F401  (its aggregators are known by name from here on)
from reproduce import data
from reproduce.cost import flops, parameters
from reproduce.ledger import Ledger, configuration
from reproduce.plan import every_run
from reproduce.runs import FOLDER, LEDGER, MODELS, RESULTS, Run
from reproduce.teaching import on_this_machine, taught
from routepool.datasets import Parts
from routepool.files.disk import whole
from routepool.model import Classifier
from routepool.persistence import load_model, save_model
from routepool.runs.record import versions
from routepool.scoring.predictor import of_saved
from routepool.settings import Preset, assign, change, named_preset, split_source, text_settings
from routepool.training import EpochReport, Hook, StepReport, Task, fit


class Curve(Hook):
    """Loss and dev score of every epoch, kept and told; within a long epoch, how far it is."""

    def __init__(self, name: str, *, quiet_seconds: float = 300.0) -> None:
        self.name = name
        self.quiet_seconds = quiet_seconds
        self.points: list[dict[str, Any]] = []
        self._told = time.monotonic()

    def on_step(self, report: StepReport) -> None:
        if time.monotonic() - self._told >= self.quiet_seconds:
            self._tell(f"epoch {report.epoch + 1}, batch {report.index + 1} of {report.batches}")

    def on_epoch(self, report: EpochReport) -> None:
        values = asdict(report)
        self.points.append({key: values[key] for key in ("epoch", "loss", "score", "seconds")})
        self._tell(f"epoch {report.epoch + 1}, dev {100 * report.score:.1f}")

    def _tell(self, news: str) -> None:
        self._told = time.monotonic()
        print(f"{self.name}: {news}", flush=True)


# The runs were planned and scored with the sizes that the default had then.
OF_THE_OLD_DEFAULT: dict[str, Any] = {"hidden_size": 200, "aggregator_options": {"average": True}}


def settings(run: Run) -> Preset:
    """The preset of the run's data with the variant's changes."""
    known = data.known_set(run.data)
    changes = {**run.variant.changes, "seed": run.seed, "calibration": 0.0}
    document = not known.startswith("sst")  # also where it is read as one sequence: all else is to be equal
    encoder = changes.get("encoder", "")
    chosen = named_preset(run.variant.preset, data=known, document=document, encoder=encoder)
    if run.variant.preset == "default" and not split_source(encoder)[1]:
        chosen = replace(chosen, model=change(chosen.model, **OF_THE_OLD_DEFAULT, dropout=0.5 if document else 0.7))
    text = chosen.text if split_source(encoder)[1] else text_settings(known)  # pre-trained encoders split by themselves
    return assign(replace(chosen, text=text), changes)


def vectors(run: Run) -> str | None:
    """Files are named below the data folder, packages by their names."""
    if not run.variant.vectors:
        return None
    folder = Path(os.environ["ROUTEPOOL_DATA"])
    named = run.variant.vectors.split(",")
    return ",".join(str(folder / one) if (folder / one).exists() else one for one in named)


def execute(run: Run, results: Path, ledger: Ledger, *, at_most: int | None = None) -> None:
    """Train, score, write."""
    torch.set_num_threads(1)
    preset = settings(run)
    if run.scored:
        ledger.check(run.name, configuration(preset))
    parts = data.load(run.data, at_most=at_most)
    curve = Curve(run.name)
    wall, processor = time.perf_counter(), time.process_time()
    task = Task(parts.train.examples, parts.dev.examples, parts.train.labels, vectors=vectors(run))
    task = taught(run, task, parts)
    start = load_model(MODELS / run.variant.start) if run.variant.start else None
    fitted = fit(task, on_this_machine(preset), hooks=[curve], start=start)
    found: dict[str, Any] = {
        "dataset": data.scored_set(run.data),
        "trained_on": run.data,
        "variant": run.variant.name,
        "preset": run.variant.preset,
        "aggregator": preset.model.aggregator,
        "seed": run.seed,
        "changes": run.variant.changes,
        "vectors": run.variant.vectors,
        "precision": preset.training.precision,
        "start": run.variant.start,
        "teachers": run.variant.teachers,
        "settings": preset.to_dict(),
        "versions": versions(),
        "revision": revision(),
        "data_hash": data.fingerprint(parts),
        "curve": curve.points,
        "best_epoch": fitted.progress.best_epoch,
        "dev": fitted.progress.best_score,
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
        **_size(fitted.saved.classifier, preset, parts),
        "test": None,
        "test_predictions": None,
    }
    if run.variant.kept:
        save_model(MODELS / run.name, fitted.saved, card={}, force=True)
    predictor = of_saved(fitted.saved)
    if run.variant.shown:
        (shown,) = predictor.explain([run.variant.shown])
        found["shown"] = shown.to_dict()
    if run.scored:
        predicted = predictor.predict([example.text for example in parts.test.examples])
        right = [(label,) == example.labels for label, example in zip(predicted, parts.test.examples, strict=True)]
        found |= {"test": sum(right) / len(right), "test_predictions": [str(label) for label in predicted]}
        scores = {"dev": found["dev"], "test": found["test"]}
        ledger.enter(run.name, configuration(preset), revision=found["revision"], **scores)
    write(results / f"{run.name}.json", found)


def write(path: Path, found: dict[str, Any]) -> None:
    """A line for each key, and never half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    with whole(path) as file:
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode())


def _size(model: Classifier, preset: Preset, parts: Parts) -> dict[str, Any]:
    """Parameters without the word vectors, and operations for one text of the usual length."""
    lengths = [len(example.text.split()) for example in parts.test.examples]
    sentences = 1 if preset.model.depth == 1 else max(1, round(median(lengths) / 20))
    words = max(1, round(median(lengths) / sentences))
    return {"parameters": parameters(model), "flops": flops(model, words, sentences, preset.model.depth)}


def revision() -> str:
    """The commit the code is at, with a + if files of the package differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False
        ).stdout.strip()

    return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", "../routepool") else "")


def main() -> None:
    """A process of one run, as the farm starts it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    asked = parser.parse_args()
    runs = {run.name: run for run in every_run()}
    execute(runs[asked.name], asked.results, Ledger(asked.ledger))


if __name__ == "__main__":
    main()
