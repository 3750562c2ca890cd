"""Kill training at random moments, resume it, and compare the weights with those of a run left alone.

    python tests/programmes/kill.py --kills 20 --saving 5

A life of the process ends by SIGKILL: at a random moment of its training, scoring and saving, or as soon after it as
a file is being written, or now and then before it trains at all. Whenever a run reaches its end it is compared, to the
last bit, and a new one is begun.
"""

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SETTINGS = (
    "hidden_size=8", "embedding_size=8", "head_size=8", "capsules=2", "capsule_size=8", "epochs=15", "patience=15",
    "batch_size=16", "checkpoint_steps=5",
)  # fmt: skip
COMPARED = ("model.safetensors", "tokenizer.json")
WORDS = ("great", "lovely", "warm", "awful", "dull", "cold", "the", "film", "was", "a", "story", "of", "people")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--saving", type=int, default=5, help="how many of them while a file is written")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return compare(Path(folder), options.kills, options.saving, random.Random(options.seed))


def compare(folder: Path, kills: int, saving: int, chance: random.Random) -> int:
    data = write_data(folder)
    process = launch(data, folder / "whole")
    await_training(process)
    start = time.monotonic()
    process.communicate()
    usual = time.monotonic() - start
    if process.returncode != 0:
        return tell("the run left alone failed", 1)
    wanted = digests(folder / "whole")
    early = (kills - saving) // 5
    ends = ["saving"] * saving + ["start"] * early + ["moment"] * (kills - saving - early)
    chance.shuffle(ends)
    done, runs = 0, 0
    while True:
        run = folder / f"run-{runs}"
        process = launch(data, run)
        if done < kills and killed_at(process, run, ends[done], chance.uniform(0, usual)):
            done += 1
            tell(f"kill {done} ({ends[done - 1]}): {state(run)}")
            continue
        process.communicate()
        if process.returncode != 0:
            return tell(f"{run.name} failed when it was taken up", 1)
        if digests(run) != wanted:
            return tell(f"{run.name} ends with other weights than a run left alone", 1)
        runs += 1
        if done == kills:
            return tell(f"{kills} kills, {runs} runs, every one bit-identical to the run left alone", 0)


def write_data(folder: Path) -> Path:
    chance = random.Random(0)
    rows = [f"{' '.join(chance.sample(WORDS, 6))},{'ab'[number % 2]}\n" for number in range(120)]
    data = folder / "data.csv"
    data.write_text("text,label\n" + "".join(rows), encoding="utf-8")
    return data


def launch(data: Path, run: Path) -> subprocess.Popen[bytes]:
    """The run's next life, as its user would start it."""
    settings = [argument for setting in SETTINGS for argument in ("--set", setting)]
    fresh = [str(data), "--out", str(run), "--vectors", "none", "--threads", "1", *settings]
    arguments = ["--resume", str(run)] if (run / "run.json").exists() else fresh
    command = [sys.executable, "-m", "routepool", "train", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"})


def await_training(process: subprocess.Popen[bytes]) -> None:
    """Wait until everything is read and training begins, or the process ends."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"model folder"):
            return


def killed_at(process: subprocess.Popen[bytes], run: Path, end: str, seconds: float) -> bool:
    """Kill the process at its moment; False if it ended before."""
    if end != "start":
        await_training(process)
    start = time.monotonic()
    while process.poll() is None:
        late = time.monotonic() - start > seconds
        if late and (end != "saving" or any(unfinished(run))):
            process.kill()
            return process.wait() != 0
        time.sleep(0.0002)
    return False


def unfinished(run: Path) -> Iterator[Path]:
    for folder in (run, run / "checkpoints"):
        yield from folder.glob(".*.new")


def state(run: Path) -> str:
    checkpoints = sorted(path.name for path in (run / "checkpoints").glob("[0-9]*"))
    left = [path.name for path in unfinished(run)]
    return f"last checkpoint {checkpoints[-1] if checkpoints else 'none'}, unfinished {', '.join(left) or 'none'}"


def digests(run: Path) -> list[str]:
    return [hashlib.sha256((run / name).read_bytes()).hexdigest() for name in COMPARED]


def tell(text: str, code: int = 0) -> int:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
