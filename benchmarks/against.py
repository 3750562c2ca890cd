"""This state of the package against another one: a layer, a training and predictions, in turn.

python benchmarks/against.py FOLDER [ROUNDS]     FOLDER holds the other state; only names of `routepool` itself are used

Each measurement is a process of its own on one thread, and counts processor time after the imports.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import measure

ROOT = Path(__file__).parent.parent
SHAPES = [(64, 20), (64, 50), (32, 200), (8, 1000)]


def layer(batch: int, tokens: int) -> Callable[[], Any]:
    """Forward and backward of standard routing."""
    import torch  # noqa: PLC0415

    from routepool import StandardRouting  # noqa: PLC0415

    torch.manual_seed(0)
    routing = StandardRouting(400, capsules=5, capsule_size=200)
    states = torch.randn(batch, tokens, 400, requires_grad=True)
    mask = torch.arange(tokens) < torch.randint(tokens // 2, tokens + 1, (batch, 1))

    def run() -> None:
        for _ in range(max(3, 4000 // (batch * tokens // 20))):
            vector, _ = routing(states, mask)
            vector.sum().backward()

    return run


def texts(sentences: int) -> tuple[list[str], list[str]]:
    """Made-up texts of two labels."""
    import numpy as np  # noqa: PLC0415

    random = np.random.default_rng(0)
    words = [f"w{number}" for number in range(3000)]
    made, labels = [], []
    for row in range(2000 // sentences):
        drawn = [random.choice(words, random.integers(5, 25)) for _ in range(sentences)]
        made.append(" ".join(f"{' '.join(some)} {('fine', 'dull')[row % 2]}." for some in drawn))
        labels.append(("good", "bad")[row % 2])
    return made, labels


def training(sentences: int) -> Callable[[], Any]:
    """Two epochs of the default settings."""
    from routepool import TextClassifier  # noqa: PLC0415

    made, labels = texts(sentences)
    model = TextClassifier(vectors="none", epochs=2, depth=1 if sentences == 1 else 2, threads=1, random_state=0)
    return lambda: model.fit(made, labels)


def predicting(sentences: int) -> Callable[[], Any]:
    """Labels of the same texts, five times."""
    from routepool import TextClassifier  # noqa: PLC0415

    made, labels = texts(sentences)
    model = TextClassifier(vectors="none", epochs=1, depth=1 if sentences == 1 else 2, threads=1, random_state=0)
    model.fit(made, labels)
    return lambda: [model.predict_proba(made) for _ in range(5)]


TASKS: dict[str, tuple[Callable[..., Callable[[], Any]], tuple[int, ...]]] = {
    **{f"routing {batch} x {tokens}, forward and backward": (layer, (batch, tokens)) for batch, tokens in SHAPES},
    "training, 2,000 sentences": (training, (1,)),
    "training, 200 documents": (training, (10,)),
    "predicting 10,000 sentences": (predicting, (1,)),
    "predicting 1,000 documents": (predicting, (10,)),
}


def measured(name: str) -> float:
    """In this process: processor seconds of a task, after a first run in vain for the layers."""
    prepare, arguments = TASKS[name]
    run = prepare(*arguments)
    if prepare is layer:
        run()
    start = time.process_time()
    run()
    return time.process_time() - start


def seconds(root: Path, name: str) -> float:
    """In a process that sees the package of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=root)
    return float(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        print(json.dumps(measured(arguments[1])))
        return
    other, rounds = Path(arguments[0]).absolute(), int(arguments[1]) if arguments[1:] else 5
    rows = []
    for name in TASKS:
        pairs = [(seconds(ROOT, name), seconds(other, name)) for _ in range(rounds)]
        ratios = sorted(here / there for here, there in pairs)
        here, there = (median(values) for values in zip(*pairs, strict=True))
        rows.append(
            [name, f"{here:.2f}", f"{there:.2f}", f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"]
        )
        print(rows[-1], flush=True)
    print(*measure.table(["processor seconds of", "this state", "the other", "ratio (range)"], rows), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
