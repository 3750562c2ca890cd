"""python -m reproduce: make the runs that are missing, then rebuild every table and figure."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from reproduce.farming import Farm
from reproduce.gold import write_gold
from reproduce.plan import EXPERIMENTS, every_run, hindrance, planned
from reproduce.report import full_report
from reproduce.runs import LEDGER, RESULTS, Run
from routepool.errors import RoutepoolError


def main() -> int:
    """What the command line asks for; 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m reproduce", description=__doc__)
    parser.add_argument("--list", action="store_true", help="the runs and hours left, and nothing else")
    parser.add_argument("--report", action="store_true", help="tables and figures from the results there are")
    parser.add_argument("--pictures", action="store_true", help="draw the figures anew, too, as for a release")
    parser.add_argument("--check", action="store_true", help="fail if docs/reproduction.md is not what the results say")
    parser.add_argument("--timing", action="store_true", help="time epochs in turn, with a core left free for it")
    parser.add_argument("--quick", action="store_true", help="a fraction, in a folder that is thrown away")
    parser.add_argument("--only", choices=EXPERIMENTS, default="", help="the runs of one experiment")
    parser.add_argument("--named", nargs="+", default=[""], help="runs with one of these in their names, in this order")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run that would not end by then")
    asked = parser.parse_args()
    if asked.quick:
        return quick()
    if asked.check:
        return check()
    if asked.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough ends the list
    farm = Farm(RESULTS, LEDGER, asked.workers)
    failed: list[str] = []
    if asked.timing:
        time_all()
    elif not asked.report:
        tell(farm, chosen(asked), [asked.only] if asked.only else list(EXPERIMENTS))
        if asked.list:
            return 0
        failed = make(farm, asked)
    full_report().write(pictures=asked.pictures)
    return len(failed)


def chosen(asked: argparse.Namespace) -> list[Run]:
    """The runs that were asked for and can be made, in the order in which they were named."""
    runs = every_run(asked.only)
    return list(dict.fromkeys(run for name in asked.named for run in runs if name in run.name))


def make(farm: Farm, asked: argparse.Namespace) -> list[str]:
    """Make the missing runs, then those whose settings the first ones choose; those that failed come back."""
    end = time.monotonic() + 60 * asked.minutes
    runs = chosen(asked)
    write_gold(farm.results, (run.data for run in runs if run.scored))
    failed = farm.work(runs, minutes=asked.minutes)
    later = [run for run in chosen(asked) if run not in runs]
    return failed + farm.work(later, minutes=(end - time.monotonic()) / 60)


def tell(farm: Farm, runs: list[Run], experiments: list[str]) -> None:
    """The runs and hours left of each experiment, and why some are left out."""
    usual = farm.seconds(farm.missing(runs))
    for name in experiments:
        all_of_it = planned(name)
        missing = farm.missing(all_of_it)
        done, hours = len(all_of_it) - len(missing), sum(usual.get(run.name, 0) for run in missing) / 3600
        print(f"{name}: {done} of {len(all_of_it)} runs done, {hours:.1f} processor hours left")
        for reason in dict.fromkeys(filter(None, map(hindrance, missing))):
            print(f"  {sum(hindrance(run) == reason for run in missing)} runs are left out: {reason}")


def check() -> int:
    """1 and a sentence if the page is not what the results say."""
    if full_report().is_current():
        return 0
    print("docs/reproduction.md is not what the results say; write it again: python -m reproduce --report")
    return 1


def time_all() -> None:
    """Seconds of an epoch, for the ratios that verdicts go by."""
    from reproduce.timing import time_epochs  # noqa: PLC0415  (the report alone needs no training code)

    time_epochs(RESULTS)


def quick() -> int:
    """A fraction of everything; the verdicts it would give are printed."""
    from reproduce.quick import quick_runs, work_quickly  # noqa: PLC0415  (the report alone needs no training code)

    with TemporaryDirectory() as folder:
        page = work_quickly(Path(folder), quick_runs())
        print(page.read_text(encoding="utf-8").partition("\n### ")[0])
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # as Ctrl-C does: runs end with the farm
    try:
        raise SystemExit(main())
    except RoutepoolError as error:
        raise SystemExit(f"error: {error}") from None
