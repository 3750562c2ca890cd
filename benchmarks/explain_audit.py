"""Can explanations be believed, and are capsules more than slices? Models of two sets, trained and asked.

python benchmarks/explain_audit.py              trains, audits, rewrites the tables of docs/explain.md
python benchmarks/explain_audit.py sst2         does so for one set alone; the other's results are read
python benchmarks/explain_audit.py --quick      the same on a handful of texts, in minutes; nothing is kept

A run that has its JSON in benchmarks/results/explain is not repeated: stop and start as you like.
"""

import argparse
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import measure
import torch
from explain_tables import agreement_table, audit_table, capsule_tables, choice_table
from word_labels import agreement, word_labels

from routepool.datasets import Dataset, Example, Parts, load_named
from routepool.explaining import DEFAULT_METHOD, Subject, audit, report_capsules
from routepool.files.disk import whole
from routepool.persistence import SavedModel, load_model, save_model
from routepool.settings import Preset, change, default_preset, text_settings
from routepool.training import Task, fit

ROOT = Path(__file__).parent
RESULTS, MODELS = ROOT / "results" / "explain", ROOT.parent / "runs" / "explain-audit"
VECTORS = "vectors/glove.6B.100d.f16.npz"
WORD_DROPOUT = 0.1
# The projected mean: one capsule as large as all five, which needs no rounds.
ROUTING = {"average": True}
KINDS: dict[str, dict[str, Any]] = {
    "routing": {"aggregator": "routing", "aggregator_options": ROUTING},
    "attention": {"aggregator": "attention", "aggregator_options": {}},
    "routing, one iteration": {"aggregator": "routing", "aggregator_options": {**ROUTING, "iterations": 1}},
    "projected mean": {"aggregator": "routing", "aggregator_options": {**ROUTING, "capsules": 1, "capsule_size": 1000}},
}
AUDITED = ("routing", "attention")


@dataclass(frozen=True)
class Size:
    """How much of a set is used: texts to train on (None for all), to audit, to look into capsules with."""

    document: bool
    train: int | None
    audited: int
    probed: int
    model: dict[str, Any]
    training: dict[str, Any]


SIZES = {
    "sst2": Size(False, None, 200, 872, {}, {"epochs": 12}),
    "imdb-reviews": Size(True, 5000, 40, 500, {"hidden_size": 100}, {"epochs": 6}),
}
TINY = {"hidden_size": 8, "head_size": 8}
QUICK = {
    "sst2": Size(False, 200, 6, 40, TINY, {"epochs": 1}),
    "imdb-reviews": Size(True, 60, 3, 40, TINY, {"epochs": 1}),
}


@dataclass(frozen=True)
class Run:
    """One model of one set."""

    data: str
    kind: str
    word_dropout: float

    @property
    def name(self) -> str:
        return f"{self.data}-{self.kind}-{self.word_dropout}".replace(", ", "-").replace(" ", "-")

    @property
    def title(self) -> str:
        return self.kind + (", word dropout" if self.word_dropout else "")


def runs(data: str) -> list[Run]:
    audited = [Run(data, kind, share) for kind in AUDITED for share in (0.0, WORD_DROPOUT)]
    controls = [Run(data, kind, 0.0) for kind in KINDS if kind not in AUDITED]
    return controls + audited  # the controls first: the report on routing reads them


def some(data: Dataset, number: int | None) -> tuple[Example, ...]:
    """So many examples, evenly spread."""
    total = len(data.examples)
    if number is None or number >= total:
        return data.examples
    return tuple(data.examples[place * total // number] for place in range(number))


def preset(run: Run, size: Size) -> Preset:
    chosen = default_preset(document=size.document)
    return replace(
        chosen,
        model=change(chosen.model, **KINDS[run.kind], **size.model),
        training=change(chosen.training, word_dropout=run.word_dropout, **size.training),
        text=text_settings(run.data),
    )


def model_of(run: Run, parts: Parts, size: Size, models: Path) -> SavedModel:
    """The trained model: from its folder if it is there."""
    folder = models / run.name
    if (folder / "manifest.json").exists():
        return load_model(folder)
    task = Task(
        some(parts.train, size.train),
        some(parts.dev, 1000),
        parts.train.labels,
        vectors=str(Path(os.environ["ROUTEPOOL_DATA"]) / VECTORS),
    )
    fitted = fit(task, preset(run, size))
    saved = replace(fitted.saved, provenance={"dev": fitted.progress.best_score})
    save_model(folder, saved, card={}, force=True)
    return saved


def ask(run: Run, parts: Parts, size: Size, models: Path) -> dict[str, Any]:
    """All that is asked of one model; methods are compared on dev, test sees the default one alone."""
    saved = model_of(run, parts, size, models)
    subject = Subject.of(saved)
    found: dict[str, Any] = {"title": run.title, "data": run.data, "dev_accuracy": saved.provenance["dev"]}
    if run.kind in AUDITED:
        dev, test = (texts_of(some(part, size.audited)) for part in (parts.dev, parts.test))
        found["audit_dev"] = audit(subject, dev).to_dict()
        found["audit_test"] = audit(subject, test, methods=[DEFAULT_METHOD]).to_dict()
        found["default_method"] = DEFAULT_METHOD
    if run.kind == "routing":
        controls = {
            "one_iteration": Run(run.data, "routing, one iteration", 0.0),
            "projected_mean": Run(run.data, "projected mean", 0.0),
        }
        others = {name: Subject.of(model_of(one, parts, size, models)) for name, one in controls.items()}
        probed = some(parts.dev, size.probed)
        labels = [label for example in probed for label in example.labels or ()]
        found["capsules"] = without_words(report_capsules(subject, texts_of(probed), labels, **others).to_dict())
    return found


def without_words(report: dict[str, Any]) -> dict[str, Any]:
    """The figures alone: what the texts say is not ours to keep."""
    told = [{key: one[key] for key in one if key not in ("words", "phrases")} for one in report["capsules"]]
    return {**report, "capsules": told}


def texts_of(examples: tuple[Example, ...]) -> list[str]:
    return [example.text for example in examples]


def collect(names: list[str], sizes: dict[str, Size], results: Path, models: Path) -> None:
    """Run what has no result yet."""
    results.mkdir(parents=True, exist_ok=True)
    for name in names:
        missing = [run for run in runs(name) if not (results / f"{run.name}.json").exists()]
        parts = load_named(name) if missing else None
        for run in missing:
            assert parts is not None
            found = ask(run, parts, sizes[name], models)
            keep(results / f"{run.name}.json", found)
            print(run.name, f"dev {100 * found['dev_accuracy']:.1f}", flush=True)


def collect_agreement(size: Size, results: Path, models: Path) -> None:
    """Ask the models of SST-2, whose words people labelled, how far their scores agree with those labels."""
    file = results / "agreement.json"
    if file.exists():
        return
    parts, labels = load_named("sst2"), word_labels()
    texts = texts_of(some(parts.dev, size.audited))
    audited = [run for run in runs("sst2") if run.kind in AUDITED]
    subjects = {run.title: Subject.of(model_of(run, parts, size, models)) for run in audited}
    keep(file, {title: agreement(subject, texts, labels) for title, subject in subjects.items()})


def keep(file: Path, found: dict[str, Any]) -> None:
    with whole(file) as opened:
        opened.write((json.dumps(found, indent=1) + "\n").encode())


def stored(results: Path) -> list[dict[str, Any]]:
    """Every result there is, in the order of the runs."""
    files = [results / f"{run.name}.json" for name in SIZES for run in runs(name)]
    return [json.loads(file.read_text()) for file in files if file.exists()]


def sections(results: Path) -> dict[str, list[str]]:
    """Marks of docs/explain.md -> lines."""
    found = stored(results)
    accuracies = measure.table(
        ["model", "dev accuracy"],
        [[f"{one['data']}, {one['title']}", f"{100 * one['dev_accuracy']:.1f}"] for one in found],
    )
    tables = {"models": accuracies, "capsules": capsule_tables(found), "agreement": agreement_table(results)}
    tables["choice"] = choice_table(found)
    for name in SIZES:
        for part in ("dev", "test"):
            tables[f"audit {name} {part}"] = audit_table(found, f"audit_{part}", name)
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SIZES), metavar="SET", help=", ".join(SIZES))
    parser.add_argument("--quick", action="store_true", help="a handful of texts, docs/ left alone")
    options = parser.parse_args()
    if "ROUTEPOOL_DATA" not in os.environ:
        sys.exit("set ROUTEPOOL_DATA to a folder with sst2/, imdb_reviews/ and vectors/: this benchmark trains on them")
    torch.set_num_threads(1)
    if options.quick:
        with TemporaryDirectory() as folder:
            results = Path(folder) / "results"
            collect(options.sets, QUICK, results, Path(folder) / "models")
            collect_agreement(QUICK["sst2"], results, Path(folder) / "models")
            for name, lines in sections(results).items():
                print("", name, "", *lines, sep="\n")
        return
    collect(options.sets, SIZES, RESULTS, MODELS)
    collect_agreement(SIZES["sst2"], RESULTS, MODELS)
    for name, lines in sections(RESULTS).items():
        measure.write_section(name, lines, page="explain.md")


if __name__ == "__main__":
    main()
