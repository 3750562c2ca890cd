"""Results -> tables of sentences: table 3, comparisons, equal tuning, figure 2, table 4, what the paper leaves open."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from reproduce import paper
from reproduce.comparing import Floats, holm, welch
from reproduce.families import POOLED, Compared
from reproduce.formatting import DATA, Table, count, named, points, probability, spread
from reproduce.plan import (
    CAPSULES,
    FIGURE_2,
    ITERATIONS,
    MAIN,
    OPEN,
    SENTENCES,
    TABLE_3,
    TABLE_4,
    TUNED_ON,
    best_of_grid,
    grid,
)
from reproduce.reading import Found, Results
from reproduce.speeds import ratio, speed
from routepool.explaining import Explanation


def table_3(results: Results, data: str, variants: Sequence[str] = tuple(TABLE_3)) -> Table:
    """A set's part of table 3: the paper's figures, then ours."""
    header = ["", "paper, test", "dev", "test", "seeds", "parameters", "MFLOPs a text", "processor seconds"]
    cited = [[name, f"{row[data]:.1f}", *["-"] * 6] for name, row in paper.CITED.items() if data in row]
    return Table(header, cited + [_row(results, data, name) for name in variants])


def _row(results: Results, data: str, name: str) -> list[str]:
    reported = paper.REPORTED.get(name, {}).get(data)
    return [named(name), "-" if reported is None else f"{reported:.1f}", *scores(results, data, name)]


def scores(results: Results, data: str, name: str) -> list[str]:
    """Dev, test, seeds, parameters, FLOPs and seconds of one variant."""
    found = results.found(data, name)
    seeds = count(len(found), results.planned(data, name))
    dev, test = (spread(results.values(data, name, key)) for key in ("dev", "test"))
    if not found:
        return [dev, test, seeds, "-", "-", "-"]
    seconds = results.values(data, name, "processor_seconds").mean()
    return [dev, test, seeds, f"{found[0]['parameters']:,}", f"{found[0]['flops'] / 1e6:,.1f}", f"{seconds:,.0f}"]


def comparisons(compared: Sequence[Compared]) -> Table:
    """One row for each comparison of a family."""
    header = [
        "first",
        "second",
        "difference, points",
        "p, bootstrap",
        "p, sign flips",
        "p, Holm",
        "detectable",
        "first is",
    ]
    return Table(header, [[named(one.one), named(one.other) or "-", *_difference(one)] for one in compared])


def _difference(one: Compared) -> list[str]:
    if one.found is None:
        return [*["-"] * 5, one.verdict]
    shown = [points(one.found), *map(probability, (one.found.bootstrap_p, one.found.flip_p, one.adjusted_p))]
    return [*shown, f"{100 * one.found.detectable:.1f}", one.verdict]


def equal_tuning(results: Results) -> Table:
    """The best of the same 12 settings for each aggregator, and how its seeds do."""
    header = ["", "settings tried", "dev, worst to best", "best rate", "best dropout", "dev", "test", "seeds"]
    rows = []
    for name in MAIN:
        tried = [results.values(TUNED_ON, one.name, "dev") for one in grid(name)]
        devs = np.concatenate(tried)
        range_ = f"{100 * devs.min():.1f} to {100 * devs.max():.1f}" if len(devs) else "-"
        best = best_of_grid(name, results.folder)
        chosen = [f"{best.changes['learning_rate']:g}", f"{best.changes['dropout']:g}"] if best else ["-", "-"]
        tuned = f"tuned/{name}"
        dev, test = (spread(results.values(TUNED_ON, tuned, key)) for key in ("dev", "test"))
        seeds = count(len(results.found(TUNED_ON, tuned)), results.planned(TUNED_ON, tuned))
        rows.append([named(name), count(len(devs), len(tried)), range_, *chosen, dev, test, seeds])
    return Table(header, rows)


def figure_2(results: Results) -> Table:
    """Test accuracy by rounds and capsules, and pooled over 2 to 4 capsules."""
    header = ["capsules", *(f"{rounds} round{'s' if rounds > 1 else ''}" for rounds in ITERATIONS)]
    rows = [
        [str(capsules), *(_cell(results, FIGURE_2[rounds, capsules].name) for rounds in ITERATIONS)]
        for capsules in CAPSULES
    ]
    return Table(header, [*rows, ["2 to 4", *(spread(pooled(results, rounds)) for rounds in ITERATIONS)]])


def _cell(results: Results, name: str) -> str:
    done, planned = len(results.found("sst2", name)), results.planned("sst2", name)
    shown = spread(results.values("sst2", name, "test"))
    return shown if done == planned else f"{shown} ({count(done, planned)})"


def pooled(results: Results, rounds: int) -> Floats:
    """Test accuracies of all runs of so many rounds with 2 to 4 capsules."""
    return np.concatenate([results.values("sst2", FIGURE_2[rounds, one].name, "test") for one in POOLED])


def table_4(results: Results) -> Table | None:
    """Couplings of the paper's sentence: its three capsules, and ours in the order that is most like them."""
    ours = couplings(results)
    if ours is None:
        return None
    words = [word.replace("|", "\\|") for word in paper.WORDS]
    rows = [[f"paper, capsule {place + 1}", *(f"{c:.2f}" for c in row)] for place, row in enumerate(paper.COUPLINGS)]
    rows += [[f"ours, capsule {place + 1}", *(f"{c:.2f}" for c in row)] for place, row in enumerate(ours)]
    return Table(["", *words], rows)


def couplings(results: Results) -> Floats | None:
    """(capsules, words) of our model; capsules have no order, so they are put in the paper's, by correlation."""
    found = results.found("sst1", TABLE_4.name)
    if not found:
        return None
    ours = np.array([word.weights for word in Explanation.from_dict(found[0]["shown"]).words]).T
    theirs = np.array(paper.COUPLINGS)
    return max((ours[list(order)] for order in permutations(range(len(ours)))), key=lambda one: likeness(one, theirs))


def likeness(one: Floats, other: Floats) -> float:
    """Correlation of two tables of couplings; 0 where one of them is flat."""
    if one.std() == 0 or other.std() == 0:
        return 0.0
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


def open_questions(results: Results) -> Table:
    """Each departure from routing as the paper has it, on dev."""
    header = [
        "",
        "what differs",
        "dev",
        "seeds",
        "difference, points",
        "p",
        "p, Holm",
        "detectable",
        "seconds an epoch / routing's",
    ]
    base = results.values("sst2", "routing", "dev")
    lacking = {name: results.lacking([("sst2", name), ("sst2", "routing")]) for name in OPEN}
    found = {name: None if lacking[name] else welch(results.values("sst2", name, "dev"), base) for name in OPEN}
    adjusted = dict(zip(found, holm([1.0 if one is None else one.p for one in found.values()]), strict=True))
    rows = [["routing, as the paper", "-", *_dev(results, "routing"), *["-"] * 5]]
    for name, one in found.items():
        shown = [lacking[name], "-", "-", "-"]
        if one is not None:
            shown = [points(one), probability(one.p), probability(adjusted[name]), f"{100 * one.detectable:.1f}"]
        differs = ", ".join(f"{key}={_plain(value)}" for key, value in OPEN[name].changes.items())
        rows.append([name, differs, *_dev(results, name), *shown, ratio(speed(results, "sst2", name, "routing"))])
    return Table(header, rows)


def _dev(results: Results, name: str) -> list[str]:
    values = results.values("sst2", name, "dev")
    return [spread(values), count(len(values), results.planned("sst2", name))]


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def made_with(results: Results) -> Table:
    """Versions of what the results were made with."""
    seen: dict[tuple[str, ...], int] = {}
    for data in SENTENCES:
        for name in TABLE_3:
            for found in results.found(data, name):
                key = _versions(found)
                seen[key] = seen.get(key, 0) + 1
    return Table(["versions", "runs of table 3"], [[", ".join(key), str(number)] for key, number in seen.items()])


def _versions(found: Found) -> tuple[str, ...]:
    return tuple(f"{name} {version}" for name, version in found["versions"].items())


def data_table(results: Results) -> Table:
    """The sets whose test texts were scored, and their size."""
    rows = []
    for path in sorted((results.folder / "gold").glob("*.json")):
        gold = results.labels(path.stem)
        words = f"{np.median(gold['words']):.0f}"
        rows.append([DATA.get(path.stem, path.stem), f"{len(gold['labels']):,}", str(len(set(gold["labels"]))), words])
    return Table(["set", "test texts", "classes", "median words"], rows)
