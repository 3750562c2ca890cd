"""Epochs are timed in turn, round by round, and what was timed is kept."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from reproduce.plan import OPEN, TABLE_3
from reproduce.quick import shrunk
from reproduce.reading import Results
from reproduce.runs import Run, Variant
from reproduce.timing import CONTENDERS, measure, one_epoch

DATA = os.environ.get("ROUTEPOOL_DATA", "")


def tiny(variant: Variant) -> Variant:
    return shrunk(Run("sst2", variant, 0)).variant


@pytest.mark.skipif(not DATA or not (Path(DATA) / "sst2").is_dir(), reason="ROUTEPOOL_DATA has no sst2")
def test_rounds_are_added_to_those_there_are(tmp_path: Path) -> None:
    contenders = [tiny(TABLE_3["routing"]), tiny(replace(OPEN["no-bucket"], name="other"))]
    measure("sst2", contenders, tmp_path, rounds=1, rows=200)
    first = json.loads((tmp_path / "timing/sst2.json").read_text())
    measure("sst2", contenders, tmp_path, rounds=2, rows=200)
    both = json.loads((tmp_path / "timing/sst2.json").read_text())
    assert both["rounds"][0] == first["rounds"][0]
    assert [one["seed"] for one in both["rounds"]] == [0, 1]
    assert both["texts"] == 200
    seconds = Results(tmp_path, ()).epoch_seconds("sst2")
    assert set(seconds) == {"routing", "other"}
    assert all(len(values) == 2 and (values > 0).all() for values in seconds.values())
    measure("sst2", contenders, tmp_path, rounds=2, rows=200)
    assert json.loads((tmp_path / "timing/sst2.json").read_text()) == both


def test_word_vectors_learn_unless_the_variant_says_when() -> None:
    changes = {one.name: one_epoch("sst2", one, 3).variant.changes for one in CONTENDERS["sst2"]}
    assert all(one["epochs"] == 1 for one in changes.values())
    assert {name: one["frozen_epochs"] for name, one in changes.items() if one["frozen_epochs"]} == {
        "always-frozen": 50
    }


def test_nothing_is_known_before_anything_was_timed(tmp_path: Path) -> None:
    assert Results(tmp_path, ()).epoch_seconds("sst2") == {}
