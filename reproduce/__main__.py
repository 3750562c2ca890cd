"""python -m reproduce: make the runs that are missing, then rebuild every table and figure."""

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from reproduce.farming import Farm
from reproduce.plan import EXPERIMENTS, Run, every_run
from reproduce.quick import quick_runs
from reproduce.running import LEDGER, RESULTS


def main() -> int:
    """What the command line asks for; the number of failed runs."""
    parser = argparse.ArgumentParser(prog="python -m reproduce", description=__doc__)
    parser.add_argument("--list", action="store_true", help="the runs and hours left, and nothing else")
    parser.add_argument("--report", action="store_true", help="tables and figures from the results there are")
    parser.add_argument("--quick", action="store_true", help="a fraction, in a folder that is thrown away")
    parser.add_argument("--only", choices=EXPERIMENTS, default="", help="the runs of one experiment")
    parser.add_argument("--named", default="", help="the runs with this in their name")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run that would not end by then")
    asked = parser.parse_args()
    if asked.quick:
        with TemporaryDirectory() as folder:
            farm = Farm(Path(folder) / "results", Path(folder) / "ledger.csv", asked.workers, quick=True)
            failed = farm.work(quick_runs())
        return len(failed)
    farm = Farm(RESULTS, LEDGER, asked.workers)
    runs = [run for run in every_run(asked.only) if asked.named in run.name]
    if not asked.report:
        tell(farm, runs)
    failed = [] if asked.list or asked.report else farm.work(runs, minutes=asked.minutes)
    return len(failed)


def tell(farm: Farm, runs: list[Run]) -> None:
    """The runs and hours left of each experiment."""
    for name in EXPERIMENTS:
        own = [run for run in every_run(name) if run in runs]
        missing = farm.missing(own)
        hours = sum(farm.seconds(missing).values()) / 3600
        print(f"{name}: {len(own) - len(missing)} of {len(own)} runs done, {hours:.1f} processor hours left")


if __name__ == "__main__":
    raise SystemExit(main())
