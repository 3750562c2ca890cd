"""Training in bf16 against full precision: texts a second on the same batches.

python benchmarks/precision.py     rewrites a section of docs/performance.md (about 2 minutes)

ROUTEPOOL_DATA names the folder with sst1/ and imdb_reviews/; without it only the made-up documents run.
"""

import os
from dataclasses import replace
from statistics import median

import measure
import torch
from training import Race, our_round, races

from routepool.settings import change

PRECISIONS, ROUNDS = ("full", "bf16"), 5


def rates(of: Race) -> dict[str, float]:
    """Texts a second in each precision: medians of rounds that take turns."""
    contenders = {name: replace(of, training=change(of.training, precision=name)) for name in PRECISIONS}
    found: dict[str, list[float]] = {name: [] for name in PRECISIONS}
    for seed in range(ROUNDS):
        for name, race in contenders.items():
            found[name].append(our_round(race, seed).rate())
    return {name: median(values) for name, values in found.items()}


def main() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    rows = []
    for of in races():
        full, half = rates(of).values()
        rows.append([of.name, f"{full:.0f}", f"{half:.0f}", f"**{half / full:.2f}**"])
        print(rows[-1], flush=True)
    header = ["texts a second", *PRECISIONS, "times faster"]
    measure.write_section("precision", [measure.machine(), "", *measure.table(header, rows)])


if __name__ == "__main__":
    main()
