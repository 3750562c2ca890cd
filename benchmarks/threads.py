"""Threads that wait: asleep, as the command line has them, or spinning, as torch does by itself.

python benchmarks/threads.py     rewrites the table of docs/performance.md (a few minutes)

The same `routepool predict` in turn with either, on an idle machine and beside one busy process for each processor.
"""

import csv
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import measure

TEXTS, ROUNDS = 3000, 5
TEXT = "this is one of the films with a plot and a cast that it was good to see but for the dull scene in it"
WORDS = TEXT.split()
POLICIES = {"asleep": "PASSIVE", "spinning": "ACTIVE"}


def write_texts(file: Path) -> None:
    """Made-up texts of 5 to 40 words whose label is the presence of a word."""
    draw = random.Random(0)
    with file.open("w", newline="") as output:
        rows = csv.writer(output)
        rows.writerow(["text", "label"])
        for _ in range(TEXTS):
            words = draw.choices(WORDS, k=draw.randint(5, 40))
            rows.writerow([" ".join(words), "yes" if "good" in words else "no"])


def routepool(*arguments: str, policy: str) -> tuple[float, float]:
    """Processor and wall seconds of a command."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "routepool", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**environment, "OMP_WAIT_POLICY": policy})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - start


def seconds(folder: Path) -> dict[str, tuple[float, float]]:
    """Medians of both, by policy, timed in turn."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in POLICIES}
    for _ in range(ROUNDS):
        for name, policy in POLICIES.items():
            times[name].append(routepool("predict", str(folder / "run"), str(folder / "texts.csv"), policy=policy))
    return {
        name: (median(one for one, _ in values), median(other for _, other in values)) for name, values in times.items()
    }


def rows_of(machine: str, of: dict[str, tuple[float, float]]) -> list[str]:
    (asleep, asleep_wall), (spinning, spinning_wall) = of["asleep"], of["spinning"]
    ratios = f"**{spinning / asleep:.1f}**", f"**{spinning_wall / asleep_wall:.1f}**"
    return [
        machine,
        f"{asleep:.1f}",
        f"{spinning:.1f}",
        ratios[0],
        f"{asleep_wall:.1f}",
        f"{spinning_wall:.1f}",
        ratios[1],
    ]


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_texts(folder / "texts.csv")
        routepool(
            *(
                "train",
                str(folder / "texts.csv"),
                "--out",
                str(folder / "run"),
                "--vectors",
                "none",
                "--set",
                "epochs=1",
            ),
            policy="PASSIVE",
        )
        rows = [rows_of("idle", seconds(folder))]
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
        try:
            rows.append(rows_of("busy", seconds(folder)))
        finally:
            for process in busy:
                process.kill()
    header = ["machine", "processor s, asleep", "spinning", "ratio", "wall s, asleep", "spinning", "ratio"]
    machine = measure.machine().replace("one thread of", f"{os.cpu_count()} threads on")
    first = f"{machine} `routepool predict` on {TEXTS:,} texts."
    measure.write_section("threads", [first, "", *measure.table(header, rows)])


if __name__ == "__main__":
    main()
