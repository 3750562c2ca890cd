"""Every run of the reproduction: which data, which settings, which seeds, and whether its test score is taken."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from reproduce.controls import CONTROLS
from reproduce.data import TANG, present
from reproduce.recipe import MINILM, additions, best, distilled, recipe, teachers, warm_up
from reproduce.runs import RESULTS, Run, Variant, models_wanted

SENTENCES = ("sst2", "sst1")
TUNED_ON = "sst2"  # the smaller: a grid is 60 trainings
DOCUMENTS, ALL_DOCUMENTS, RATINGS = "imdb-5000", "imdb-reviews", "imdb-ratings-5000"
MAIN = ("routing", "max", "mean", "attention", "reverse-routing")
RATES, DROPOUTS = (3e-4, 1e-3, 3e-3), (0.2, 0.35, 0.5, 0.65)
ITERATIONS, CAPSULES = (1, 2, 3, 4, 5), (1, 2, 3, 4)
TUNED_SEEDS = range(1, 6)  # none that took part in the choice


def _paper(name: str, **changes: Any) -> Variant:
    return Variant(name, "paper", changes)


TABLE_3 = {
    **{name: _paper(name, aggregator=name) for name in MAIN},
    "released": Variant("released", "released"),
    "cnn": Variant("cnn", "cnn"),
    "multi-hop": _paper("multi-hop", aggregator="multi-hop"),
    **{name: _paper(name, **changes) for name, changes in CONTROLS.items()},
}
TEN_SEEDS = ("routing", "max", *CONTROLS)  # max pooling: the best baseline by the paper's figures for SST-2
# Compared among themselves alone, so all of them may be quick ones; routing's own rounds are in full precision anyway.
FIGURE_2 = {
    (rounds, capsules): _paper(
        f"rounds-{rounds}-capsules-{capsules}", iterations=rounds, capsules=capsules, precision="bf16"
    )
    for rounds, capsules in product(ITERATIONS, CAPSULES)
}
# The sentence of the paper's table 4.
WHOLESOME = "so relentlessly wholesome it made me want to swipe something ."
TABLE_4 = Variant("three-capsules", "paper", {"capsules": 3}, shown=WHOLESOME)
# What the paper leaves open, each against `routing`.
OPEN = {
    "tanh": _paper("tanh", messages="tanh"),
    "capsule-size-50": _paper("capsule-size-50", capsule_size=50),
    "capsule-size-400": _paper("capsule-size-400", capsule_size=400),
    "window-500": _paper("window-500", window=500),
    "no-bucket": _paper("no-bucket", window=1_000_000, replacement=False),
    "bucket-once": _paper("bucket-once", window=500, replacement=False),
    "never-frozen": _paper("never-frozen", frozen_epochs=0),
    "always-frozen": _paper("always-frozen", frozen_epochs=50),
    "released-freezing": _paper("released-freezing", frozen_rows="unknown"),
    "released-dropout": _paper("released-dropout", dropout_places=("embedding", "aggregator", "tanh")),
}
# The default for documents, flat or not, with the vectors of a user who names none; a rate that falls to 0 leaves no
# epoch in which training can break down.
DOCUMENT: dict[str, Any] = {"epochs": 5, "patience": 5, "schedule": "linear", "lowest_rate": 0.0, "precision": "bf16"}


def _document(name: str, **changes: Any) -> Variant:
    return Variant(name, "default", {**DOCUMENT, **changes}, vectors="wordllama")


BY_DEPTH = {
    (name, depth): _document(f"{name}-{'flat' if depth == 1 else 'hierarchical'}", aggregator=name, depth=depth)
    for name, depth in product(MAIN, (1, 2))
}
ON_ALL_DOCUMENTS = ("routing", "mean")  # and the baseline with the best dev score on part of them
# Reviews read whole by an encoder that was trained before, in windows of so many pieces; one pass over them.
ON_MINILM = Variant(
    "routing-on-minilm",
    "default",
    {
        **MINILM,
        "aggregator": "routing",
        "depth": 1,
        "pieces": 128,
        "epochs": 1,
        "batch_size": 16,
        "smallest_batch": 16,
    },
    vectors="",
)


def grid(aggregator: str) -> list[Variant]:
    """The same 12 settings for each aggregator; the best on dev goes into the second table."""
    fixed = {"aggregator": aggregator, **({"average": False} if aggregator == "routing" else {})}  # as the paper has it
    return [
        Variant(
            f"tuning/{aggregator}-{rate:g}-{dropout:g}",
            "default",
            {**fixed, "learning_rate": rate, "dropout": dropout, "precision": "bf16"},
        )
        for rate, dropout in product(RATES, DROPOUTS)
    ]


def table_3() -> Iterator[Run]:
    """Table 3 and its controls, seed by seed, so that the table makes sense early."""
    for seed in range(10):
        for name, variant in TABLE_3.items():
            for data in SENTENCES:
                if seed < (10 if name in TEN_SEEDS else 5):
                    yield Run(data, variant, seed)


def figure_2() -> Iterator[Run]:
    """Rounds against capsules. With one capsule rounds change no bit: seeds of their own show what is noise."""
    for number, ((rounds, capsules), variant) in product(range(3), FIGURE_2.items()):
        yield Run("sst2", variant, seed=number + 3 * rounds if capsules == 1 else number)


def table_4() -> Iterator[Run]:
    """Where the words of one sentence go."""
    yield Run("sst1", TABLE_4, 0, scored=False)


def open_questions() -> Iterator[Run]:
    """What the paper does not say, on dev."""
    return (Run("sst2", variant, seed, scored=False) for seed in range(3) for variant in OPEN.values())


def tuning() -> Iterator[Run]:
    """Equal tuning: the grid of every aggregator, on dev."""
    return (Run(TUNED_ON, one, 0, scored=False) for name in MAIN for one in grid(name))


UNKNOWN = Variant("unknown", preset="")  # settings that earlier runs have yet to choose


def tuned() -> Iterator[Run]:
    """Each aggregator in its own best setting, which is known when its grid is complete."""
    for name in MAIN:
        best = replace(best_of_grid(name) or UNKNOWN, name=f"tuned/{name}")
        yield from (Run(TUNED_ON, best, seed) for seed in TUNED_SEEDS)


def best_of_grid(aggregator: str, results: Path = RESULTS) -> Variant | None:
    """The setting with the best dev score, the first of equals; none before all have one."""
    paths = {one: results / f"{Run(TUNED_ON, one, 0).name}.json" for one in grid(aggregator)}
    if not all(path.exists() for path in paths.values()):
        return None
    return max(paths, key=lambda one: float(json.loads(paths[one].read_text(encoding="utf-8"))["dev"]))


def documents() -> Iterator[Run]:
    """Part of the reviews: every aggregator, flat and hierarchical; and their ratings."""
    for seed in range(3):
        for variant in BY_DEPTH.values():
            yield Run(DOCUMENTS, variant, seed)
    for name in MAIN:
        yield Run(RATINGS, BY_DEPTH[name, 2], 0)


def all_documents() -> Iterator[Run]:
    """All of the reviews, whose many steps want word vectors that learn from the first."""
    steps: dict[str, Any] = {"frozen_epochs": 0, "word_dropout": 0.3, "average_weights": 0.999}
    for seed, name in product(range(2), ON_ALL_DOCUMENTS):
        variant = _document(f"{name}-5-epochs", precision="full", aggregator=name, depth=2, **steps)
        yield Run(ALL_DOCUMENTS, variant, seed)
    yield Run(ALL_DOCUMENTS, ON_MINILM, 0)  # an hour of training: one seed


def tang(data: str) -> Iterator[Run]:
    """A document set of the paper, as the paper has it: pooling reads a document as one sequence."""
    for seed, name in product(range(5), MAIN):
        yield Run(data, _paper(name, aggregator=name, **({"depth": 1} if name in ("max", "mean") else {})), seed)


EXPERIMENTS: dict[str, Callable[[], Iterator[Run]]] = {
    "table-3": table_3,
    "documents": documents,
    "figure-2": figure_2,
    "table-4": table_4,
    "open-questions": open_questions,
    "all-documents": all_documents,
    "tuning": tuning,
    "tuned": tuned,
    "warm-up": warm_up,
    "recipe": recipe,
    "best": best,
    "teachers": teachers,
    "distilled": distilled,
    "additions": additions,
    **{data: partial(tang, data) for data in TANG},
}


def planned(experiment: str = "") -> list[Run]:
    """All runs in the order in which they are made, or those of one experiment."""
    chosen = [EXPERIMENTS[experiment]] if experiment else EXPERIMENTS.values()
    return list({run.name: run for make in chosen for run in make()}.values())


def every_run(experiment: str = "") -> list[Run]:
    """Those of them that can be made here and now."""
    return [run for run in planned(experiment) if not hindrance(run)]


def hindrance(run: Run) -> str:
    """Why a run cannot be made yet; empty for most."""
    if run.data in TANG and not present(run.data):
        return f"the data folder has no {TANG[run.data]}"
    if models_wanted(run):
        return "the models that it learns from or goes on with are not in runs/reproduce; make those runs first"
    return "the grid that chooses its settings is not complete" if run.variant.preset == UNKNOWN.preset else ""
