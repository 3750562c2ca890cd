"""The whole way on a fraction: a few runs of tiny models in one process, and their report, in a minute."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reproduce.gold import write_gold
from reproduce.ledger import Ledger
from reproduce.plan import BY_DEPTH, DOCUMENTS, FIGURE_2, TABLE_3, TABLE_4
from reproduce.reading import Results
from reproduce.report import Report
from reproduce.running import execute
from reproduce.runs import Run

ROWS = 60  # of each part
_TINY = {"hidden_size": 8, "head_size": 8, "epochs": 1, "extra_words": 1000}


def quick_runs() -> list[Run]:
    """A little of table 3, figure 2, table 4 and the documents."""
    runs = [Run("sst2", TABLE_3[name], seed) for seed in range(2) for name in ("routing", "max")]
    runs += [Run("sst2", FIGURE_2[1, 2], 0), Run("sst1", TABLE_4, 0, scored=False)]
    runs += [Run(DOCUMENTS, BY_DEPTH["routing", depth], 0) for depth in (1, 2)]
    return [shrunk(run) for run in runs]


def work_quickly(folder: Path, runs: Sequence[Run]) -> Path:
    """Make the runs in a folder, then their report; where that is."""
    results, ledger = folder / "results", folder / "ledger.csv"
    for run in runs:
        execute(run, results, Ledger(ledger), at_most=ROWS)
    write_gold(results, (run.data for run in runs if run.scored), at_most=ROWS)
    report = Report(Results(results, runs), ledger, folder / "reproduction.md", folder / "explain")
    report.write(pictures=True)
    return report.page


def shrunk(run: Run) -> Run:
    """The same run with a model that takes no time."""
    return replace(run, variant=replace(run.variant, changes={**run.variant.changes, **_TINY}))
