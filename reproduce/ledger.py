"""Every look at a test set, in the order in which they were taken: one line each, never changed."""

import csv
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from routepool.errors import InputError
from routepool.settings import Preset

COLUMNS = ("time", "run", "configuration", "revision", "dev", "test")
LATER = {"kept_epoch": "best"}  # settings that were none when the first looks were taken, and what was done then


def configuration(preset: Preset) -> str:
    """A short name of all settings but the seed and the precision, which is later than the first looks, too."""
    values = preset.to_dict()
    as_then = (name for name, then in LATER.items() if values["training"][name] == then)
    for name in ("seed", "precision", *as_then):
        values["training"].pop(name)
    return digest(values)


def digest(settings: Mapping[str, Any]) -> str:
    """A short name of any settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


class Ledger:
    """A file of looks. A variant whose test score was read keeps its settings; a change of mind needs a new name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self) -> list[dict[str, str]]:
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def check(self, run: str, settings: str) -> None:
        """Refuse settings other than those the variant was scored with."""
        variant = run.rpartition("/")[0]
        for row in self.rows():
            if row["run"].rpartition("/")[0] == variant and row["configuration"] != settings:
                raise InputError(
                    f"{variant} was scored on test with other settings ({row['configuration']}, now {settings}); "
                    "give the new ones a new name in reproduce/plan.py"
                )

    def enter(self, run: str, settings: str, *, revision: str, dev: float, test: float) -> None:
        """Add a line; in one write, so that processes do not mix theirs."""
        cells = (datetime.now(UTC).isoformat(timespec="seconds"), run, settings, revision)
        line = ",".join([*cells, f"{dev:.6f}", f"{test:.6f}"]) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line if file.tell() else ",".join(COLUMNS) + "\n" + line)
