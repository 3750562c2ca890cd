"""STUDY, the folder of a search: what it was asked to do, its trials, its best settings."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from routepool.errors import InputError
from routepool.files.disk import replace_file, to_json
from routepool.runs.record import FORMAT_VERSION, RunRecord, read_record
from routepool.tuning.space import read_domain
from routepool.tuning.trials import Plan

STUDY_FILE = "study.json"
BASE_FILE = "base.json"  # the run that every trial is, but for the settings that are searched
TRIALS_FILE, BEST_FILE = "trials.db", "best.toml"


@dataclass(frozen=True)
class Study:
    """All that a search depends on.

    Args:
        base: data, vectors, and the settings that are not searched.
        plan: the settings that are.
        trials: at most; None for no limit.
    """

    base: RunRecord
    plan: Plan
    trials: int | None = None

    def write(self, folder: Path) -> None:
        """Write the records into the folder; study.json, the last one, makes it a study."""
        self.base.write(folder, BASE_FILE)
        values = {
            "format_version": FORMAT_VERSION,
            "space": {name: domain.to_plain() for name, domain in self.plan.space.items()},
            "sampler": self.plan.sampler,
            "prune": self.plan.prune,
            "trials": self.trials,
        }
        replace_file(folder / STUDY_FILE, to_json(values))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote."""
        path = folder / STUDY_FILE
        values = read_record(path, "search")
        base = RunRecord.read(folder, BASE_FILE)
        try:
            space = {name: read_domain(plain) for name, plain in values["space"].items()}
            plan = Plan(space, values["sampler"], values["prune"], base.preset.training.seed)
            return cls(base, plan, values["trials"])
        except (TypeError, KeyError, AttributeError, InputError) as error:
            raise InputError(f"{path}: it is damaged ({error!s:.200}); begin a new search") from error

    def continued(self, asked: Self, folder: Path) -> Self:
        """This study after the same command came again; raises InputError for the command of another study."""
        for what, ours, theirs in (
            ("data", self.base.data, asked.base.data),
            ("content of files", self.base.files, asked.base.files),
            ("vectors", self.base.vectors, asked.base.vectors),
            ("device", self.base.device, asked.base.device),
            ("settings", self.base.preset, asked.base.preset),
            ("space", self.plan.space, asked.plan.space),
            ("sampler", self.plan.sampler, asked.plan.sampler),
            ("pruner", self.plan.prune, asked.plan.prune),
        ):
            if ours != theirs:
                raise InputError(
                    f"{folder}: it holds a search with another {what}; go on with that one, routepool tune --resume "
                    f"{folder}, or choose another --out"
                )
        return replace(self, trials=asked.trials)
