"""The whole way, from data to page, on a fraction."""

import os
from pathlib import Path

import pytest

from reproduce.quick import ROWS, quick_runs, work_quickly

DATA = os.environ.get("ROUTEPOOL_DATA", "")


@pytest.mark.skipif(not DATA or not (Path(DATA) / "sst2").is_dir(), reason="ROUTEPOOL_DATA has no sst2")
def test_two_runs_make_a_report(tmp_path: Path) -> None:
    runs = quick_runs()[:2]
    text = work_quickly(tmp_path, runs).read_text()
    assert {run.variant.name for run in runs} == {"routing", "max"}
    assert f"| SST-2 | {ROWS} | 2 |" in text
    assert "2 looks at a test set by 2 frozen settings" in text
    row = next(line for line in text.splitlines() if line.startswith("| standard routing | max pooling |"))
    assert row.endswith("| undecided |")


def test_the_fraction_has_something_of_every_kind() -> None:
    runs = quick_runs()
    assert len(runs) <= 8
    assert {run.data for run in runs} == {"sst1", "sst2", "imdb-5000"}
    assert any(run.variant.shown for run in runs)
    assert all(run.variant.changes["epochs"] == 1 for run in runs)
