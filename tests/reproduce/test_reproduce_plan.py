"""The plan knows what can be run: tuned settings from their grids, the sets of Tang et al. from their files."""

import json
import signal
import subprocess
import sys
from argparse import Namespace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.made_up_results import write_gold, write_results

from reproduce import plan
from reproduce.__main__ import chosen, tell
from reproduce.farming import Farm
from reproduce.ledger import Ledger, configuration, digest
from reproduce.plan import DROPOUTS, MAIN, RATES, TUNED_SEEDS, best_of_grid, every_run, grid, planned
from reproduce.quick import shrunk, work_quickly
from reproduce.running import settings
from reproduce.runs import GLOVE, LEDGER, Run
from routepool.errors import InputError
from routepool.settings import AGGREGATORS, OF_LEARNING


def made_grid(folder: Path, aggregator: str, best: str) -> list[Run]:
    runs = [Run("sst2", one, 0, scored=False) for one in grid(aggregator)]
    write_gold(folder, ["sst2"], texts=20)
    write_results(folder, runs, lambda run: 0.9 if run.variant.name == best else 0.5)
    return runs


def test_the_best_setting_is_known_when_its_grid_is_complete(tmp_path: Path) -> None:
    runs = made_grid(tmp_path, "max", "tuning/max-0.0003-0.35")
    best = best_of_grid("max", tmp_path)
    assert best is not None
    assert best.changes == {"aggregator": "max", "learning_rate": 3e-4, "dropout": 0.35, "precision": "bf16"}
    (tmp_path / f"{runs[0].name}.json").unlink()
    assert best_of_grid("max", tmp_path) is None


def test_every_aggregator_has_the_same_grid() -> None:
    expected = [(rate, dropout) for rate in RATES for dropout in DROPOUTS]
    assert len(expected) == 12
    for name in MAIN:
        assert [(one.changes["learning_rate"], one.changes["dropout"]) for one in grid(name)] == expected


def test_tuned_runs_wait_for_their_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = best_of_grid
    monkeypatch.setattr(plan, "best_of_grid", lambda name: known(name, tmp_path))
    made_grid(tmp_path, "mean", "tuning/mean-0.001-0.5")
    assert len(planned("tuned")) == len(MAIN) * len(TUNED_SEEDS)
    runs = every_run("tuned")
    assert [run.name for run in runs] == [f"sst2/tuned/mean/{seed}" for seed in TUNED_SEEDS]
    assert all(run.scored and run.variant.changes["dropout"] == 0.5 for run in runs)


def test_a_run_that_goes_on_asks_for_the_model_that_it_goes_on_with() -> None:
    by_name = {run.name: run for run in planned()}
    later = [run for run in by_name.values() if run.variant.start]
    assert later
    for run in later:
        assert shape(run) == shape(by_name[run.variant.start]), run.name


def shape(run: Run) -> dict[str, Any]:
    """All that its model's weights depend on."""
    model = settings(run).model.to_dict()
    parameters = signature(AGGREGATORS[model["aggregator"]]).parameters
    options = {name: model["aggregator_options"].get(name, item.default) for name, item in parameters.items()}
    return {**{name: value for name, value in model.items() if name not in OF_LEARNING}, "aggregator_options": options}


def test_no_two_runs_of_the_plan_share_a_name_and_differ() -> None:
    by_name: dict[str, Run] = {}
    for make in plan.EXPERIMENTS.values():
        for run in make():
            assert by_name.setdefault(run.name, run) == run


def write_tang(folder: Path, name: str) -> None:
    """Files of the form of Tang et al., and vectors for some of their words."""
    rows = ["u1\t\tp1\t\t5\t\tnice place . <sssss> we stayed long", "u2\t\tp2\t\t1\t\tcold soup . <sssss> never again"]
    for part in ("train", "dev", "test"):
        lines = [row.replace("place", f"place{number}") for number in range(8) for row in rows]
        (folder / f"{name}-{part}.txt.ss").write_text("\n".join(lines) + "\n")
    (folder / "vectors").mkdir()
    words = np.frombuffer(b"nice\ncold\nsoup\n.", np.uint8)
    np.savez(folder / GLOVE, words_utf8=words, vectors=np.eye(4, dtype=np.float16))


def test_a_set_of_tang_et_al_runs_where_its_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("ROUTEPOOL_DATA", str(data))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert every_run("yelp2013") == []
    write_tang(data, "yelp-2013")
    assert every_run("yelp2014") == []
    runs = every_run("yelp2013")
    assert len(runs) == 5 * len(MAIN)
    depths = {run.variant.name: run.variant.changes.get("depth", 2) for run in runs}
    assert depths == {"routing": 2, "max": 1, "mean": 1, "attention": 2, "reverse-routing": 2}
    chosen = [shrunk(run) for run in runs if run.seed == 0 and run.variant.name in ("routing", "max")]
    page = work_quickly(tmp_path, chosen)
    found = json.loads((tmp_path / "results/yelp2013/routing/0.json").read_text())
    assert len(found["test_predictions"]) == 16
    assert found["settings"]["model"]["depth"] == 2
    assert found["settings"]["text"]["separator"] == "<sssss>"
    assert f"| standard routing | 62.1 | {100 * found['test']:.1f} | 1 |" in page.read_text()


def test_the_list_says_why_runs_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROUTEPOOL_DATA", str(tmp_path))
    write_gold(tmp_path / "results", ["yelp2014"], texts=20)
    write_results(tmp_path / "results", planned("yelp2014")[:3], lambda run: 0.8)
    tell(Farm(tmp_path / "results", tmp_path / "ledger.csv"), every_run(), ["yelp2014", "table-3"])
    told = capsys.readouterr().out
    assert "yelp2014: 3 of 25 runs done" in told
    assert "22 runs are left out: the data folder has no yelp-2014-train.txt.ss" in told


def test_the_farm_expects_what_runs_took_before_and_reads_only_runs(tmp_path: Path) -> None:
    write_gold(tmp_path, ["sst2"], texts=20)
    done, other = (Run("sst2", plan.TABLE_3["max"], seed) for seed in range(2))
    write_results(tmp_path, [done], lambda run: 0.8)
    taken = json.loads((tmp_path / "sst2/max/0.json").read_text())["processor_seconds"]
    farm = Farm(tmp_path, tmp_path / "ledger.csv")
    assert farm.missing([done, other]) == [other]
    assert farm.seconds([other]) == {other.name: taken}


def test_the_runs_end_with_the_farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def begin(farm: Farm, run: Run) -> "subprocess.Popen[bytes]":
        begun.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return begun[-1]

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Farm, "begin", begin)
    monkeypatch.setattr("reproduce.farming.time.sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Farm(tmp_path, tmp_path / "ledger.csv", workers=2).work(planned("table-3")[:3])
    assert [process.poll() for process in begun] == 2 * [-signal.SIGTERM]


def test_a_run_that_another_farm_has_made_meanwhile_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [Run("sst2", plan.TABLE_3["max"], seed) for seed in range(3)]
    begun: list[Run] = []

    def begin(farm: Farm, run: Run) -> "subprocess.Popen[bytes]":
        begun.append(run)
        write_results(tmp_path, runs[:2], lambda run: 0.8)  # the first by itself, the second by the other farm
        return subprocess.Popen([sys.executable, "-c", ""])

    write_gold(tmp_path, ["sst2"], texts=20)
    monkeypatch.setattr(Farm, "begin", begin)
    assert Farm(tmp_path, tmp_path / "ledger.csv").work(runs) == []
    assert begun == [runs[0], runs[2]]


def test_a_variant_scored_on_test_keeps_its_settings(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.csv")
    ledger.enter("peers/one/0", digest({"C": 1}), revision="r", dev=0.5, test=0.5)
    ledger.check("peers/one/0", digest({"C": 1}))
    with pytest.raises(InputError, match="peers/one was scored on test with other settings"):
        ledger.check("peers/one/1", digest({"C": 2}))


def test_what_is_planned_has_the_settings_it_was_scored_with() -> None:
    """A new setting, or another default, would lock every later seed of a scored variant out."""
    ledger = Ledger(LEDGER)
    scored = {row["run"].rpartition("/")[0] for row in ledger.rows()}
    later = [run for run in planned() if run.name.rpartition("/")[0] in scored]
    assert {"sst1/routing", "imdb-5000/routing-flat"} <= {run.name.rpartition("/")[0] for run in later}
    for run in later:
        ledger.check(run.name, configuration(settings(run)))


def test_the_points_of_one_capsule_share_no_seed() -> None:
    seeds = [run.seed for run in planned("figure-2") if run.variant.changes["capsules"] == 1]
    assert len(set(seeds)) == len(seeds) == 15


def test_runs_are_made_in_the_order_in_which_they_are_named_each_once() -> None:
    asked = Namespace(only="table-3", named=["sst1/max/1", "sst2/max/", "sst1/max/"])
    names = [run.name for run in chosen(asked)]
    assert names[:2] == ["sst1/max/1", "sst2/max/0"]
    assert sorted(names) == sorted(f"{data}/max/{seed}" for data in ("sst1", "sst2") for seed in range(10))
