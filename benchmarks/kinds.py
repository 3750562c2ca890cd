"""The default on eleven kinds of text: accuracy on dev, processor time and memory, one set a process.

python benchmarks/kinds.py FOLDER [SET ...] [--set KEY=VALUE ...]     trains what FOLDER has not, one JSON a set
python benchmarks/kinds.py --table FOLDER [FOLDER ...]                rewrites the table of the decision on the default

A tenth of each training set, stratified, is dev. Logits of dev and test are kept beside the JSON, so that calibration
can be looked at again without training; accuracy on test is not computed.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import measure
import numpy as np

from routepool.datasets import Dataset, Example, load_dataset, load_named, split
from routepool.scoring.torch_backend import logits_of
from routepool.settings import assign, default_preset
from routepool.text import is_document
from routepool.training import Hook, Task, fit

MORE = ("trec", "cr", "mpqa", "subj", "snips", "banking77", "clinc150", "r8", "ng20")
SETS = (*MORE[:2], "sst2", *MORE[2:-1], "imdb", MORE[-1])
FURTHER = ("banking77-2500", "next-word")  # few texts of many classes, and a thousand classes
MOST = {"imdb": 5000, "ng20": 3000, "banking77-2500": 2500}  # a part, with as many of each label as it has
MOST_TO_TEST = 3000
PAGE = "decisions/2026-11-19-smaller-default.md"


class _Epochs(Hook):
    def __init__(self) -> None:
        self.number = 0

    def on_epoch(self, report: Any) -> None:
        self.number += 1
        print(f"epoch {report.epoch + 1}: {report.score:.4f}, {report.examples_per_second:.0f} texts/s", flush=True)


def parts_of(name: str) -> tuple[Dataset, list[Example], list[Example]]:
    """Train, dev and test."""
    if name == "sst2":
        parts = load_named(name)
        return parts.train, list(parts.dev.examples), list(parts.test.examples)
    train, test = read(name)
    full = train.select(row for row, example in enumerate(train.examples) if example.text.strip())
    if name in MOST:
        full = full.select(split(full.examples, held=MOST[name], seed=1).held)
    if len(test.examples) > MOST_TO_TEST:
        test = test.select(split(test.examples, held=MOST_TO_TEST, seed=1).held)
    parted = split(full.examples, held=0.1, seed=0)
    return full.select(parted.kept), [full.examples[row] for row in parted.held], list(test.examples)


def read(name: str) -> tuple[Dataset, Dataset]:
    """Train and test as they are published."""
    if name in ("imdb", "next-word"):
        reviews = load_named("imdb-reviews")
        change = next_words if name == "next-word" else lambda data: data
        return change(reviews.train), change(reviews.test)
    folder, file = Path(os.environ["ROUTEPOOL_DATA"]) / "more", name.partition("-")[0]
    train, test = (load_dataset(folder / f"{file}.{part}.csv.gz", allow_empty=True) for part in ("train", "test"))
    return train, test


def next_words(reviews: Dataset) -> Dataset:
    """A thousand classes of very different size: eight words of a review, and which of the frequent ones comes next."""
    words = [example.text.lower().split()[:80] for example in reviews.examples]
    labels = sorted(word for word, _ in Counter(chain(*words)).most_common(1000))
    known = set(labels)
    examples = [
        Example(row, " ".join(text[start : start + 8]), (text[start + 8],))
        for row, text in enumerate(words, 1)
        for start in range(0, len(text) - 8, 40)
        if text[start + 8] in known
    ]
    return replace(reviews, examples=tuple(examples[:20_000]), labels=tuple(labels))


def train(name: str, folder: Path, changes: dict[str, Any]) -> None:
    """Train the default of the routepool that is imported, and write what it did."""
    data, dev, test = parts_of(name)
    texts = [example.text for example in data.examples]
    preset = default_preset(document=is_document(texts))
    if name == "sst2":
        preset = assign(preset, {"split": "spaces"})
    preset = assign(preset, changes)
    epochs = _Epochs()
    before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fitted = fit(Task(data.examples, dev, data.labels, vectors="wordllama"), preset, hooks=[epochs])
    seconds, peak = time.process_time() - before[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model, tokenizer = fitted.saved.classifier, fitted.saved.tokenizer
    places = {label: place for place, label in enumerate(data.labels)}
    arrays = {}
    for part, examples in (("dev", dev), ("test", test)):
        known = [example for example in examples if (example.labels or ("",))[0] in places]
        encoded = tokenizer.encode([example.text for example in known], preset.model.depth)
        arrays[f"{part}_logits"] = logits_of(model, encoded)
        arrays[f"{part}_targets"] = np.array([places[(example.labels or ("",))[0]] for example in known])
    np.savez_compressed(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]
    result = {
        "set": name,
        "rows": len(texts),
        "classes": len(data.labels),
        "accuracy": float((arrays["dev_logits"].argmax(1) == arrays["dev_targets"]).mean()),
        "dev": len(dev),
        "temperature": fitted.saved.temperature,
        "epochs": epochs.number,
        "seconds": round(seconds, 1),
        "megabytes": round((peak - before[1]) / 1024),
        "changes": changes,
    }
    (folder / f"{name}.json").write_text(json.dumps(result) + "\n")


def table(folders: list[Path]) -> list[str]:
    """Sets down, folders across."""
    found = [{name: json.loads((folder / f"{name}.json").read_text()) for name in SETS} for folder in folders]
    rows = [
        [name, *(_cell(of[name]["accuracy"], of[name]["seconds"], of[name]["megabytes"]) for of in found)]
        for name in SETS
    ]
    means = [
        [np.mean([one[key] for one in of.values()]) for key in ("accuracy", "seconds", "megabytes")] for of in found
    ]
    header = ["set", *(f"{folder.name}: dev accuracy" for folder in folders)]
    return measure.table(header, [*rows, ["mean", *(_cell(*of) for of in means)]])


def _cell(accuracy: Any, seconds: Any, megabytes: Any) -> str:
    return f"{100 * accuracy:.1f} in {seconds:.0f} s, {megabytes:.0f} MB"


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--table"]:
        measure.write_section("kinds", table([Path(name) for name in arguments[1:]]), page=PAGE)
        return
    if arguments[:1] == ["--train"]:
        train(arguments[1], Path(arguments[2]), json.loads(arguments[3]))
        return
    changes: dict[str, Any] = {}
    while "--set" in arguments:
        place = arguments.index("--set")
        key, value = arguments[place + 1].split("=")
        changes[key] = json.loads(value)
        del arguments[place : place + 2]
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name in arguments[1:] or SETS:
        if not (folder / f"{name}.json").exists():
            print(name, flush=True)
            command = [sys.executable, __file__, "--train", name, str(folder), json.dumps(changes)]
            subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main(sys.argv[1:])
