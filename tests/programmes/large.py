"""Predict a large file and a tenth of it, and compare the memory: it must not grow with the rows.

    python tests/programmes/large.py --rows 1000000

A row has about 1,000 characters, so that a million are a gigabyte. The model is tiny: hidden size 16, mean pooling.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = ("great", "lovely", "warm", "awful", "dull", "cold", "the", "film", "was", "a", "story", "of", "people")
SETTINGS = ("hidden_size=16", "embedding_size=16", "head_size=16", "epochs=1", "depth=1")
ALLOWED = 20_000  # kilobytes: what an allocator keeps may vary
PREDICT = (
    "import resource, sys; from routepool.cli import app\n"
    "try: app(['predict', *sys.argv[1:]])\n"
    "except SystemExit as end: assert not end.code\n"
    "sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder)
        peaks = [peak_of(folder, count) for count in (rows // 10, rows)]
    grown = peaks[1] - peaks[0]
    sys.stdout.write(f"the peak grew by {grown / 1000:.1f} MB from {rows // 10:,} to {rows:,} rows\n")
    return int(grown > ALLOWED)


def write_data(path: Path, rows: int) -> None:
    chance = random.Random(0)
    texts = [" ".join(chance.choices(WORDS, k=210)) for _ in range(1000)]
    with path.open("w", encoding="utf-8") as file:
        file.write("text,label\n")
        for row in range(rows):
            file.write(f"{texts[row % len(texts)]} {row},{'ab'[row % 2]}\n")


def train(folder: Path) -> None:
    write_data(folder / "train.csv", 200)
    settings = [argument for setting in SETTINGS for argument in ("--set", setting)]
    options = ["--out", str(folder / "run"), "--vectors", "none", "--aggregator", "mean", *settings]
    command = [sys.executable, "-m", "routepool", "train", str(folder / "train.csv"), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def peak_of(folder: Path, rows: int) -> int:
    """Kilobytes of the process that predicts that many rows."""
    data, out = folder / "data.csv", folder / f"{rows}.csv"
    write_data(data, rows)
    start = time.monotonic()
    command = [sys.executable, "-c", PREDICT, str(folder / "run"), str(data), "--out", str(out)]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seconds, size = time.monotonic() - start, data.stat().st_size / 1e6
    with out.open(encoding="utf-8") as predicted:
        assert sum(1 for _ in predicted) == rows + 1, "one row out for each row in, and the header"
    sys.stdout.write(
        f"{rows:,} rows, {size:.0f} MB: {seconds:.0f} s, {rows / seconds:.0f} rows/s, peak {peak / 1e3:.0f} MB\n"
    )
    sys.stdout.flush()
    return peak


if __name__ == "__main__":
    sys.exit(main())
