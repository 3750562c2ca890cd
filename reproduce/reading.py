"""The results there are, against the runs that were planned: what every table, figure and verdict is made from."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.comparing import Arm, Floats, resample_texts
from reproduce.runs import Run
from routepool.errors import InputError

Found = dict[str, Any]
Key = tuple[str, str]  # data, variant


class Results:
    """The JSONs of a folder.

    Args:
        folder: of results.
        runs: those that are planned; others are not read.
    """

    def __init__(self, folder: Path, runs: Sequence[Run]) -> None:
        self.folder = folder
        self._planned: dict[Key, list[Run]] = {}
        for run in runs:
            self._planned.setdefault((run.data, run.variant.name), []).append(run)
        # A result is read once, however many tables it is in.
        self._read = cache(_read)
        self._resampled = cache(self._resample)

    def planned(self, data: str, variant: str) -> int:
        return len(self._planned.get((data, variant), ()))

    def found(self, data: str, variant: str) -> list[Found]:
        """The results of one variant, in the order of their seeds."""
        paths = [self.folder / f"{run.name}.json" for run in self._planned.get((data, variant), ())]
        return [self._read(path) for path in paths if path.exists()]

    def complete(self, data: str, variant: str) -> bool:
        return 0 < self.planned(data, variant) == len(self.found(data, variant))

    def lacking(self, keys: Iterable[Key]) -> str:
        """Why there is no verdict on these variants; empty if all of their runs are there."""
        wanted = dict.fromkeys(keys)
        planned = [self.planned(*key) for key in wanted]
        if 0 in planned:
            return "not planned"  # on a fraction
        done = sum(len(self.found(*key)) for key in wanted)
        return "" if done == sum(planned) else f"not yet measured ({done} of {sum(planned)} runs)"

    def values(self, data: str, variant: str, key: str) -> Floats:
        """One number of every result."""
        return np.array([found[key] for found in self.found(data, variant)], dtype=np.float64)

    def epoch_seconds(self, data: str) -> dict[str, Floats]:
        """Processor seconds of an epoch, those of a place taken in one round on one machine; empty if none are."""
        path = self.folder / "timing" / f"{data}.json"
        rounds = [one["seconds"] for one in self._read(path)["rounds"]] if path.exists() else []
        return {name: np.array([one[name] for one in rounds], dtype=np.float64) for name in (rounds or [{}])[0]}

    def right(self, data: str, variant: str) -> NDArray[np.bool_]:
        """(R, N): which test texts each run answered as they are labelled."""
        return self.right_of(self.found(data, variant), data)

    def right_of(self, found: Iterable[Found], data: str) -> NDArray[np.bool_]:
        """The same for any results on that data."""
        gold = self.labels(data)
        rows = []
        for one in found:
            row = np.array(one["test_predictions"]) == np.array(gold["labels"])
            if one["data_hash"] != gold["data_hash"] or abs(row.mean() - one["test"]) > 1e-9:
                raise InputError(
                    f"{data}/{one['variant']}/{one['seed']} was scored on other texts than those of "
                    f"{self._gold(data)}; delete that file, and write it again: python -m reproduce.gold"
                )
            rows.append(row)
        return np.array(rows)

    def peer(self, name: str) -> Found | None:
        """The result of a peer, if it is there."""
        path = self.folder / "peers" / f"{name}.json"
        return self._read(path) if path.exists() else None

    def arm(self, data: str, variant: str) -> Arm:
        """A complete variant, ready to be compared with others of the same data."""
        places, resampled = self._resampled(data)
        return Arm(self.right(data, variant).mean(axis=1), resampled[:, places[variant]])

    def _resample(self, data: str) -> tuple[dict[str, slice], Floats]:
        """The same texts for every complete variant of the data, so that any two can be compared."""
        rows: list[NDArray[np.bool_]] = []
        places: dict[str, slice] = {}
        for one, variant in self._planned:
            if one == data and self._planned[one, variant][0].scored and self.complete(one, variant):
                right = self.right(one, variant)
                start = sum(map(len, rows))
                places[variant] = slice(start, start + len(right))
                rows.append(right)
        return places, resample_texts(np.vstack(rows))

    def labels(self, data: str) -> Found:
        """Labels and lengths of the test texts."""
        path = self._gold(data)
        if not path.exists():
            raise InputError(f"{path}: no labels to score {data} with; write them: python -m reproduce.gold")
        lengths = self._read(self.folder / "lengths" / f"{data}.json")
        return {**self._read(path), "words": lengths["words"]}

    def _gold(self, data: str) -> Path:
        return self.folder / "gold" / f"{data}.json"


def _read(path: Path) -> Found:
    found: Found = json.loads(path.read_text(encoding="utf-8"))
    return found
