"""What those rely on who load a stranger's folder: it is refused at once, in one line, without a network."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import hostile_folders

PROGRAMME = Path(__file__).parents[1] / "programmes" / "refusals.py"
SECONDS, KILOBYTES = 1, 200_000  # of processor time; above an idle process


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory is read from /proc")
def test_a_hostile_folder_is_refused_within_a_second_and_200_mb_without_a_network(tmp_path: Path) -> None:
    names = hostile_folders.write_all(tmp_path)
    assert len(names) >= 60
    usual = [str(tmp_path / write.__name__) for write in (hostile_folders.write_words, hostile_folders.write_encoder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAMME), str(tmp_path), *usual]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (told[-1:], done.stderr[-2000:])
    results = [one for one in told if "name" in one]
    assert sorted(one["name"] for one in results) == sorted(names)
    assert [one for one in results if not _is_refusal(one)] == []
    assert "panicked" not in done.stderr


def _is_refusal(one: dict[str, Any]) -> bool:
    said = one["said"]
    in_a_line = said is not None and "\n" not in said and len(said) < 1000
    return in_a_line and one["seconds"] < SECONDS and one["kilobytes"] < KILOBYTES and not one["calls"]
