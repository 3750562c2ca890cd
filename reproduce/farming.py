"""Runs farmed over the cores: one process with one thread each, and what is left to do."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from json import loads
from pathlib import Path
from statistics import median

from reproduce.plan import planned
from reproduce.runs import FOLDER, Run, models_wanted
from routepool.errors import InputError

GUESS = {"sst1": 400.0, "sst2": 400.0, "imdb-reviews": 2400.0}  # seconds of a run like none before
OTHER = 600.0


@dataclass(frozen=True)
class Farm:
    """Where runs write, and how they are started."""

    results: Path
    ledger: Path
    workers: int = 1

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """Those without a result, and those whose model a planned run without a result waits for."""
        wanted = {name for run in planned() if not self.path(run).exists() for name in models_wanted(run)}
        return [run for run in runs if run.name in wanted or not self.path(run).exists()]

    def path(self, run: Run) -> Path:
        return self.results / f"{run.name}.json"

    def seconds(self, runs: Sequence[Run]) -> dict[str, float]:
        """What each run is likely to take: as long as those of its variant, else of its data, else a guess."""
        taken: dict[str, list[float]] = {}
        for path in self.results.glob("*/**/*.json"):
            found = loads(path.read_text(encoding="utf-8"))
            if "curve" not in found:  # labels, lengths and peers lie beside the runs
                continue
            data, variant = found["trained_on"], found["variant"]
            for key in (f"{data}/{variant}", data):
                taken.setdefault(key, []).append(found["processor_seconds"])
        return {run.name: _usual(run, taken) for run in runs}

    def work(self, runs: Sequence[Run], *, minutes: float = float("inf")) -> list[str]:
        """Make the missing runs; those that failed come back. No run begins that would not end in time."""
        waiting, going, failed = self.missing(runs), dict[Run, subprocess.Popen[bytes]](), list[str]()
        usual, start = self.seconds(waiting), time.monotonic()
        try:
            while waiting or going:
                left = 60 * minutes - (time.monotonic() - start)
                waiting = [run for run in waiting if usual[run.name] <= left]
                while waiting and len(going) < self.workers:
                    run = waiting.pop(0)
                    if self.missing([run]):  # another farm may have made it since
                        going[run] = self.begin(run)
                time.sleep(0.2)
                for run, process in list(going.items()):
                    if process.poll() is not None:
                        del going[run]
                        failed += [run.name] if process.returncode else []
                        print(f"{run.name}: {'failed' if process.returncode else 'done'}", flush=True)
        finally:
            for process in going.values():
                process.terminate()
            for process in going.values():
                process.wait()
        return failed

    def begin(self, run: Run) -> "subprocess.Popen[bytes]":
        """Start a run in a process of its own."""
        if not os.environ.get("ROUTEPOOL_DATA"):
            raise InputError("the runs read their data from a folder; set ROUTEPOOL_DATA to it")
        where = ["--results", str(self.results), "--ledger", str(self.ledger)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "reproduce.running", run.name, *where]
        return subprocess.Popen(command, cwd=FOLDER.parent, env=environment)


def _usual(run: Run, taken: dict[str, list[float]]) -> float:
    for key in (f"{run.data}/{run.variant.name}", run.data):
        if key in taken:
            return median(taken[key])
    return GUESS.get(run.data, OTHER)
