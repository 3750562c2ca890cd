"""Results -> tables of documents: flat against hierarchical, ratings, the full set and its peers, the paper's sets."""

import numpy as np

from reproduce import paper
from reproduce.comparing import Arm, Estimate, compare, holm, resample_texts
from reproduce.data import TANG
from reproduce.formatting import NAMES, Table, count, named, points, probability, spread
from reproduce.plan import ALL_DOCUMENTS, BY_DEPTH, DOCUMENTS, MAIN, ON_ALL_DOCUMENTS, ON_MINILM, RATINGS
from reproduce.reading import Results
from reproduce.speeds import ratio, seconds, speed
from reproduce.tables import scores

PEERS = {"tf-idf": "TF-IDF + logistic regression", "nb-svm": "NB-SVM", "hashed-average": "averaged hashed n-grams"}


def documents(results: Results) -> Table:
    """Every aggregator, flat and hierarchical."""
    header = ["", "dev", "test", "seeds", "parameters", "MFLOPs a text", "processor seconds"]
    names = [variant.name for variant in BY_DEPTH.values()]
    return Table(header, [[named(name), *scores(results, DOCUMENTS, name)] for name in names])


def speeds(results: Results) -> Table:
    """How the seconds of an epoch change with the hierarchy."""
    rows = []
    for name in MAIN:
        flat, deep = f"{name}-flat", f"{name}-hierarchical"
        taken = [seconds(results, DOCUMENTS, one) for one in (flat, deep)]
        rows.append([named(name), *taken, ratio(speed(results, DOCUMENTS, deep, flat))])
    return Table(["seconds an epoch", "flat", "hierarchical", "hierarchical / flat"], rows)


def ratings(results: Results) -> Table:
    """Eight star ratings, one seed."""
    header = ["hierarchical", "dev", "test", "seeds", "parameters", "MFLOPs a text", "processor seconds"]
    return Table(header, [[NAMES[name], *scores(results, RATINGS, BY_DEPTH[name, 2].name)] for name in MAIN])


def full_set(results: Results) -> Table:
    """Models of all training texts, and what users would pick instead, trained on the same texts."""
    header = ["", "dev", "test", "runs", "processor seconds", "standard routing less this, points", "p, Holm"]
    models = [*(f"{name}-5-epochs" for name in ON_ALL_DOCUMENTS), ON_MINILM.name]
    complete = not results.lacking([(ALL_DOCUMENTS, models[0])])
    rivals = [name for name in models[1:] if not results.lacking([(ALL_DOCUMENTS, name)])]
    rivals += [name for name in PEERS if results.peer(name)]
    found = {name: _against(results, models[0], name) for name in rivals} if complete else {}
    adjusted = dict(zip(found, holm([one.p for one in found.values()]), strict=True))

    def difference(name: str) -> list[str]:
        return [points(found[name]), probability(adjusted[name])] if name in found else ["-", "-"]

    rows = []
    for name in models:
        dev, test, seeds, _, _, taken = scores(results, ALL_DOCUMENTS, name)
        rows.append([named(name), dev, test, seeds, taken, *difference(name)])
    for name, title in PEERS.items():
        one = results.peer(name)
        shown = [f"{100 * one['dev']:.1f}", f"{100 * one['test']:.1f}", "1"] if one else ["-", "-", count(0, 1)]
        rows.append([title, *shown, f"{one['processor_seconds']:,.0f}" if one else "-", *difference(name)])
    return Table(header, rows)


def _against(results: Results, routing: str, other: str) -> Estimate:
    one = results.right(ALL_DOCUMENTS, routing)
    peer = results.peer(other)
    two = results.right_of([peer], ALL_DOCUMENTS) if peer else results.right(ALL_DOCUMENTS, other)
    resampled = resample_texts(np.vstack([one, two]))
    first = len(one)
    return compare(Arm(one.mean(axis=1), resampled[:, :first]), Arm(two.mean(axis=1), resampled[:, first:]))


def paper_sets(results: Results) -> Table:
    """The paper's own document sets, ours beside them: test accuracy."""
    header = [""]
    for data in TANG:
        header += [f"{paper.TITLES[data]}: paper", "ours", "seeds"]
    cited = [[name, *_cited(row)] for name, row in paper.CITED.items() if any(data in row for data in TANG)]
    rows = []
    for name in MAIN:
        cells = []
        for data in TANG:
            values = results.values(data, name, "test")
            seeds = count(len(values), results.planned(data, name))
            cells += [f"{paper.REPORTED[name][data]:.1f}", spread(values), seeds]
        rows.append([NAMES[name], *cells])
    return Table(header, cited + rows)


def _cited(row: dict[str, float]) -> list[str]:
    return [cell for data in TANG for cell in (f"{row[data]:.1f}" if data in row else "-", "-", "-")]
