"""Results -> tables of the recipe: what the search tried, and what its best setting and its students reach."""

import numpy as np

from reproduce import paper
from reproduce.data import scored_set
from reproduce.formatting import DATA, Table, count, spread
from reproduce.plan import SENTENCES
from reproduce.reading import Results
from reproduce.recipe import ADDED, BASE, GRADED_PHRASES, recipe, teachers
from reproduce.runs import Run

AFTER_WARM_UP, GRADES = "after a warm-up on IMDB sentences", ", from the grades of SST-1's phrases"
SQUASH, LENGTH = "squash", "learned length"
ONE, THREE = "taught by one encoder of ", "taught by three encoders of "
REACHED = {
    ("best", "sst2-phrases"): f"{SQUASH}, {AFTER_WARM_UP}",
    ("best-at-length", "sst2-phrases"): f"{LENGTH}, {AFTER_WARM_UP}",
    ("best-locked", "sst2-phrases"): f"{LENGTH}, {AFTER_WARM_UP}, locked dropout",
    ("best", GRADED_PHRASES): f"{SQUASH}, {AFTER_WARM_UP}{GRADES}",
    ("best-at-length", GRADED_PHRASES): f"{LENGTH}, {AFTER_WARM_UP}{GRADES}",
    ("best", "sst1-phrases"): f"{SQUASH}, {AFTER_WARM_UP}",
    ("best-at-length", "sst1-phrases"): f"{LENGTH}, {AFTER_WARM_UP}",
    ("distilled", "sst2-phrases"): f"{SQUASH}, {ONE}SST-2's phrases",
    ("distilled", GRADED_PHRASES): f"{SQUASH}, {ONE}SST-1's phrases",
    ("distilled-by-three", GRADED_PHRASES): f"{SQUASH}, {THREE}SST-1's phrases",
    ("distilled", "sst1-phrases"): f"{SQUASH}, {ONE}SST-1's phrases",
    ("distilled-by-three", "sst1-phrases"): f"{SQUASH}, {THREE}SST-1's phrases",
    ("distilled-to-the-end", "sst1-phrases"): f"{SQUASH}, {THREE}SST-1's phrases, the last of five epochs",
}


def trials(results: Results) -> Table:
    """Dev accuracy of every setting that was tried, and after each epoch, in the mean over its seeds."""
    header = ["trained on", "setting", "differs by", "best dev", "after each epoch", "seeds", "processor seconds"]
    rows = []
    for run in {run.variant.name: run for run in recipe()}.values():
        data, variant = run.data, run.variant.name
        dev, seeds, seconds = _scores(results, data, variant, tested=False)
        changed = ", ".join(_changed(run))
        rows.append([data, variant.rpartition("/")[2], changed, dev, by_epoch(results, data, variant), seeds, seconds])
    return Table(header, rows)


def added(results: Results) -> Table:
    """Dev accuracy with each addition, and of the same seeds without it."""
    rows = []
    for one in ADDED:
        name = f"added/{one.name}"
        found = results.found(one.data, name)
        seeds = {run["seed"] for run in found}
        plain = [run["dev"] for run in results.found(one.data, one.form) if run["seed"] in seeds]
        scores = [spread(results.values(one.data, name, "dev")), spread(np.array(plain))]
        settings = ", ".join(f"{key}={value}" for key, value in one.changes.items())
        capsules = SQUASH if one.form == "best" else LENGTH
        rows.append([one.data, capsules, settings, *scores, count(len(found), results.planned(one.data, name))])
    return Table(["trained on", "capsules", "differs by", "dev", "without", "seeds"], rows)


def _changed(run: Run) -> list[str]:
    """How a trial differs from the first one."""
    settings = [f"{key}={value}" for key, value in run.variant.changes.items() if BASE.get(key) != value]
    return settings + ["after the warm-up"] * bool(run.variant.start)


def reached(results: Results) -> Table:
    """The paper's figures and ours, with and without teachers."""
    header = ["", "set", "dev", "test", "seeds", "processor seconds"]
    rows = [
        ["the paper, vectors of 300", DATA[data], "-", f"{paper.REPORTED['routing'][data]:.1f}"] for data in SENTENCES
    ]
    rows = [[*row, "-", "-"] for row in rows]
    for (variant, data), name in REACHED.items():
        rows.append([name, DATA[scored_set(data)], *_scores(results, data, variant)])
    return Table(header, rows)


def by_epoch(results: Results, data: str, variant: str) -> str:
    """Dev accuracy after each epoch, in the mean over seeds."""
    curves = [[point["score"] for point in found["curve"]] for found in results.found(data, variant)]
    return ", ".join(f"{100 * score:.1f}" for score in np.mean(curves, axis=0)) if curves else "-"


def taught_by(results: Results) -> Table:
    """Dev accuracy of the teachers."""
    header = ["teacher", "trained on", "dev", "seeds", "processor seconds"]
    keys = dict.fromkeys((run.variant.name, run.data) for run in teachers())
    return Table(header, [[name, data, *_scores(results, data, name, tested=False)] for name, data in keys])


def _scores(results: Results, data: str, variant: str, *, tested: bool = True) -> list[str]:
    found = results.found(data, variant)
    seconds = f"{results.values(data, variant, 'processor_seconds').mean():,.0f}" if found else "-"
    shown = [spread(results.values(data, variant, key)) for key in (("dev", "test") if tested else ("dev",))]
    return [*shown, count(len(found), results.planned(data, variant)), seconds]
