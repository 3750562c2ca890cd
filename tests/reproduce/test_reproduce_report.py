"""The report says what the results say: verdicts by their rules, and how many runs are missing where some are."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.made_up_results import shown, write_gold, write_results, write_timing

import reproduce.__main__ as command
from reproduce import claims, paper, tables
from reproduce.families import SENTENCE_PAIRS, Compared, family
from reproduce.figures import draw_all
from reproduce.lengths import by_length
from reproduce.plan import DOCUMENTS, FIGURE_2, MAIN, OPEN, TABLE_3, planned
from reproduce.reading import Results
from reproduce.report import Report, full_report
from reproduce.runs import RESULTS, Run
from routepool.errors import InputError

SETS = ("sst1", "sst2", DOCUMENTS, "imdb-ratings-5000", "imdb-reviews")
RUNS = [run for run in planned() if run.data in SETS]


def report_of(folder: Path, runs: list[Run] = RUNS) -> Report:
    results = Results(folder / "results", runs)
    return Report(results, folder / "ledger.csv", folder / "reproduction.md", folder / "explain")


def made(folder: Path, skill: Callable[[Run], float], runs: list[Run] = RUNS, *, texts: int = 400) -> Report:
    write_gold(folder / "results", SETS, texts=texts)
    write_results(folder / "results", runs, skill)
    return report_of(folder)


HIERARCHY, BUCKET = (
    "The hierarchy makes routing faster on documents.",
    "The sliding bucket is faster at equal accuracy.",
)


def timed(folder: Path, *, hierarchical: float, bucket: float) -> Report:
    """A report of made-up runs and of epochs that took so many times as long as flat ones and unsorted ones."""
    made(folder, lambda run: 0.8)
    documents = {f"{name}-{depth}": hierarchical if depth == "hierarchical" else 1.0
                 for name in MAIN for depth in ("flat", "hierarchical")}  # fmt: skip
    sentences = {name: bucket if name == "bucket-once" else 1.0 for name in ("routing", *OPEN)}
    write_timing(folder / "results", {DOCUMENTS: documents, "sst2": sentences})
    return report_of(folder)


def verdicts(report: Report) -> dict[str, str]:
    lines = report.text().partition("| claim | verdict |")[2].partition("### ")[0].splitlines()
    return dict(line.strip("| ").split(" | ") for line in lines if line.count("|") == 3 and "---" not in line)


def only(runs: list[Run], *variants: str) -> list[Run]:
    return [run for run in runs if run.variant.name in variants]


def test_the_committed_report_is_what_the_committed_results_say_without_the_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ROUTEPOOL_DATA", raising=False)
    assert command.check() == 0, capsys.readouterr().out


def test_a_stale_report_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = replace(full_report(), page=tmp_path / "reproduction.md")
    stale.page.write_text("old")
    monkeypatch.setattr(command, "full_report", lambda: stale)
    assert command.check() == 1


def test_without_runs_every_claim_waits(tmp_path: Path) -> None:
    found = verdicts(made(tmp_path, lambda run: 0.8, []))
    assert len(found) == 11
    assert all(verdict.startswith("not yet measured (") for verdict in found.values())


def test_a_missing_run_keeps_a_verdict_back_and_is_counted(tmp_path: Path) -> None:
    report = made(tmp_path, lambda run: 0.8)
    first = "Routing beats max pooling, average pooling and self-attention."
    assert "not yet" not in verdicts(report)[first]
    (tmp_path / "results/sst2/max/9.json").unlink()
    report = report_of(tmp_path)
    assert verdicts(report)[first] == "not yet measured (71 of 72 runs)"
    row = next(line for line in report.text().splitlines() if line.startswith("| max pooling | 87.0 |"))
    assert row.split(" | ")[4] == "9 of 10"


def test_clear_differences_are_supported_and_their_opposites_not(tmp_path: Path) -> None:
    """Everything the paper claims is planted, but for the mean, which beats max."""
    planted = {"routing": 0.9, "max": 0.7, "mean": 0.75, "attention": 0.85, "reverse-routing": 0.86, "multi-hop": 0.86}

    def skill(run: Run) -> float:
        name = run.variant.name.removesuffix("-flat").removesuffix("-hierarchical").removesuffix("-5-epochs")
        if name.startswith("rounds"):
            return 0.9 if name.startswith("rounds-3") else 0.8
        return planted.get(name, 0.8)

    found = verdicts(made(tmp_path, skill, texts=1500))
    assert found["Routing beats max pooling, average pooling and self-attention."] == "supported"
    assert found["Routing helps: it beats what is as large and lacks its rounds."] == "supported"
    assert found["Max pooling beats average pooling."] == "not supported"
    assert found["Self-attention beats average pooling."] == "supported"
    assert found["Standard routing beats reverse routing."] == "supported"
    assert found["More than one round helps, and three are best."] == "supported"
    assert found["Max pooling beats average pooling by more on long texts."] == "undecided"


@pytest.mark.parametrize(("hierarchical", "expected"), [(0.5, "supported"), (1.6, "not supported"), (1.0, "undecided")])
def test_speed_is_judged_by_ratios_within_a_round_whatever_the_machine(
    tmp_path: Path, hierarchical: float, expected: str
) -> None:
    report = timed(tmp_path, hierarchical=hierarchical, bucket=2.0)
    assert verdicts(report)[HIERARCHY] == expected
    assert verdicts(report)[BUCKET] == "not supported"
    lines = report.text().splitlines()
    row = next(line for line in lines if line.startswith("| max pooling |") and line.count("|") == 5)
    flat, deep, shown = row.strip("| ").split(" | ")[1:]
    assert float(deep) / float(flat) == pytest.approx(hierarchical, rel=0.1)
    assert float(shown.split()[0]) == pytest.approx(hierarchical, rel=0.03)


def test_without_timing_the_verdicts_on_speed_wait(tmp_path: Path) -> None:
    found = verdicts(made(tmp_path, lambda run: 0.8))
    assert found[HIERARCHY] == found[BUCKET] == "not yet measured (no epoch was timed)"


def test_equal_arms_are_undecided(tmp_path: Path) -> None:
    found = verdicts(made(tmp_path, lambda run: 0.8))
    assert found["Routing beats max pooling, average pooling and self-attention."] == "undecided"
    assert found["Routing helps: it beats what is as large and lacks its rounds."] == "undecided"


def test_a_gain_on_long_texts_alone_is_seen(tmp_path: Path) -> None:
    made(tmp_path, lambda run: 0.8, only(RUNS, "max", "mean"))
    words = np.array(json.loads((tmp_path / "results/lengths/sst2.json").read_text())["words"])
    labels = np.array(json.loads((tmp_path / "results/gold/sst2.json").read_text())["labels"])
    for path in (tmp_path / "results/sst2/max").glob("*.json"):
        found = json.loads(path.read_text())
        predicted = np.where(words > np.quantile(words, 0.75), labels, found["test_predictions"])
        found |= {"test_predictions": predicted.tolist(), "test": (predicted == labels).mean()}
        path.write_text(json.dumps(found))
    compared = by_length(Results(tmp_path / "results", RUNS), "sst2")
    assert [one.verdict for one in compared] == ["undecided"] * 3 + ["better"] * 2


def test_comparisons_still_missing_count_in_the_adjustment(tmp_path: Path) -> None:
    report = made(tmp_path, lambda run: 0.9 if run.variant.name == "routing" else 0.7, only(RUNS, "routing", "max"))
    first, *others = family(report.results, "sst2", SENTENCE_PAIRS)
    assert first.found is not None
    assert first.adjusted_p == pytest.approx(len(SENTENCE_PAIRS) * first.found.p)
    assert all(one.verdict.startswith("not yet measured") for one in others)


def test_results_of_other_texts_are_refused(tmp_path: Path) -> None:
    report = made(tmp_path, lambda run: 0.8, only(RUNS, "routing"))
    write_gold(tmp_path / "results", ["sst2"], texts=400)
    gold = tmp_path / "results/gold/sst2.json"
    gold.write_text(gold.read_text().replace("hash of sst2", "another hash"))
    with pytest.raises(InputError, match=r"sst2/routing/0 was scored on other texts .* python -m reproduce.gold"):
        Results(tmp_path / "results", RUNS).right("sst2", "routing")
    gold.unlink()
    with pytest.raises(InputError, match="no labels to score sst2 with"):
        report_of(tmp_path).results.right("sst2", "routing")
    assert report.results.right("sst1", "routing").shape == (10, 400)


def test_every_picture_is_drawn_where_it_is_asked_for(tmp_path: Path) -> None:
    report = made(tmp_path, lambda run: 0.8, [*only(RUNS, "routing", "three-capsules"), *figure_2_runs()])
    folder = tmp_path / "reproduction"
    report.write(pictures=False)
    assert not folder.exists()
    report.write(pictures=True)
    pictures = {"curves.png", "figure-2.png", "table-4.html", "table-4.png"}
    assert {path.name for path in folder.iterdir()} == pictures
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.glob("*.png"))
    page = (folder / "table-4.html").read_text()
    assert page.count("relentlessly") == 2 * 3
    assert all(f"reproduction/{name}" in report.page.read_text() for name in pictures)


def figure_2_runs() -> list[Run]:
    return only(RUNS, *(variant.name for variant in FIGURE_2.values()))


def test_nothing_is_drawn_from_nothing(tmp_path: Path) -> None:
    draw_all(made(tmp_path, lambda run: 0.8, []).results, tmp_path / "pictures")
    assert list((tmp_path / "pictures").iterdir()) == []


def test_capsules_are_put_in_the_order_of_the_papers(tmp_path: Path) -> None:
    report = made(tmp_path, lambda run: 0.8, only(RUNS, "three-capsules"))
    path = tmp_path / "results/sst1/three-capsules/0.json"
    found = json.loads(path.read_text())
    turned = np.array(paper.COUPLINGS)[[2, 0, 1]].T
    found["shown"] = shown(turned.tolist())
    path.write_text(json.dumps(found))
    ours = tables.couplings(report.results)
    assert ours is not None
    assert np.allclose(ours, paper.COUPLINGS)


def test_peers_stand_beside_the_models_of_the_full_set(tmp_path: Path) -> None:
    made(tmp_path, lambda run: 0.9, [run for run in RUNS if run.data == "imdb-reviews"], texts=1000)
    example = json.loads((tmp_path / "results/imdb-reviews/mean-5-epochs/0.json").read_text())
    (tmp_path / "results/peers").mkdir()
    (tmp_path / "results/peers/nb-svm.json").write_text(json.dumps(example))
    text = report_of(tmp_path).text()
    row = next(line for line in text.splitlines() if line.startswith("| NB-SVM |"))
    assert f"| {100 * example['test']:.1f} | 1 |" in row
    assert " to " in row
    assert "| TF-IDF + logistic regression | - | - | 0 of 1 |" in text


def test_the_papers_slips_are_computed_from_its_tables() -> None:
    slips = " ".join(paper.slips(2210))
    for number in ("2.2", "0.6", "87.8", "2210", "27.94"):
        assert number in slips


def redundancy(cka: float, alone: float) -> dict[str, Any]:
    parts = {"capsules": cka, "capsules of one iteration": 0.5, "random slices of a projected mean": 0.9}
    rows = [{"name": name, "cka": value, "whole": 0.85, "alone": [0.6, alone]} for name, value in parts.items()]
    return {"data": "sst2", "title": "routing", "capsules": {"redundancy": rows}}


@pytest.mark.parametrize(
    ("models", "verdict"),
    [
        ([], "not yet measured (no model was audited)"),
        ([(0.3, 0.7)], "supported"),
        ([(0.95, 0.7)], "not supported"),
        ([(0.3, 0.845)], "not supported"),
        ([(0.7, 0.7)], "undecided"),
        ([(0.3, 0.7), (0.95, 0.7)], "undecided"),
    ],
)
def test_redundancy_is_judged_by_its_rule(tmp_path: Path, models: list[tuple[float, float]], verdict: str) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"data": "sst2", "title": "attention"}))
    for number, model in enumerate(models):
        (tmp_path / f"{number}.json").write_text(json.dumps(redundancy(*model)))
    assert claims.redundancy(tmp_path).verdict == verdict


def test_every_variant_of_table_3_is_compared_with_routing() -> None:
    assert {other for one, other in SENTENCE_PAIRS if one == "routing"} == set(TABLE_3) - {"routing"}


def test_committed_results_hold_labels_and_lengths_of_every_scored_set() -> None:
    for data in SETS:
        gold = Results(RESULTS, ()).labels(data)
        assert len(gold["labels"]) == len(gold["words"])


def test_a_comparison_without_runs_has_no_verdict() -> None:
    assert Compared("sst2", "one", "other", None, 1.0, "not yet measured (0 of 2 runs)").verdict.startswith("not yet")
