"""What `routepool tune` does: settle and check the search, train trial after trial, keep the best settings."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import typer

from routepool.cli import exit_code, screen
from routepool.cli.preparing import Request, prepare
from routepool.cli.reading import DataOrder, Material, load_material
from routepool.cli.record import check_record, refuse_changed
from routepool.cli.space import PAPER, fit_to, read_space, refuse_fixed
from routepool.cli.study import BASE_FILE, BEST_FILE, STUDY_FILE, TRIALS_FILE, Study, sole_user, write_best
from routepool.cli.training_run import note_other_versions
from routepool.cli.trial_table import TrialTable
from routepool.errors import InputError, MissingPackageError
from routepool.files.disk import foreign
from routepool.scoring.bulk import new_file
from routepool.settings import assign, parse_assignments
from routepool.training import (
    DivergedError,
    EpochReport,
    Hook,
    InterruptedTrainingError,
    StartReport,
    Task,
    check_device,
    fit,
)
from routepool.tuning import (
    DRAWINGS,
    FAILED,
    FINISHED,
    PRUNED,
    SEARCHES,
    Attempt,
    Budget,
    HopelessError,
    Outcome,
    Plan,
    Trial,
    best_of,
    ended_trials,
    explore,
    named,
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How a search is to go, as the user asks for it."""

    space: str | None
    preset: str | None
    sampler: str
    prune: str
    trials: int | None
    minutes: float | None


def start_search(request: Request, wanted: Wanted) -> None:
    """Search, or go on with the same search in the same folder."""
    searched = read_space(Path(wanted.space)) if wanted.space else PAPER
    SEARCHES[wanted.sampler]  # one whose package is missing is said now
    asked = replace(request.asked, preset=wanted.preset or searched.base)
    given = [name for name, value in asked.options.items() if value is not None]
    refuse_fixed(searched, [*given, *parse_assignments(asked.assignments)])
    title = DataOrder(data=request.data).title
    out = request.out or f"runs/tune-{title}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, base, material, _ = prepare(replace(request, asked=asked, out=out))
    space, seed = fit_to(searched, base.preset), base.preset.training.seed
    with named(searched.source):
        plan = Plan(space, wanted.sampler, wanted.prune, seed)
    study = Study(base, plan, wanted.trials)
    _refuse_endless(study, wanted.minutes)
    if (folder / STUDY_FILE).exists():
        study = Study.read(folder).continued(study, folder)
    elif (folder / TRIALS_FILE).exists():
        raise InputError(f"{folder}: it holds trials of a search, but no {STUDY_FILE}; choose another --out")
    elif (folder / BEST_FILE).exists():
        raise foreign(folder / BEST_FILE, f"the {STUDY_FILE} that says so is missing")
    check_record(folder / BASE_FILE)
    _search(folder, study, material, wanted.minutes)


def resume_search(name: str, *, trials: int | None, minutes: float | None) -> None:
    """Go on with a search that was stopped, or one that is to go further than was asked at first."""
    folder = Path(name)
    study = Study.read(folder)
    study = replace(study, trials=trials or study.trials)
    _refuse_endless(study, minutes)
    refuse_changed(study.base.files)
    note_other_versions(study.base)
    check_device(study.base.device)
    _search(folder, study, load_material(study.base.data), minutes)


def _refuse_endless(study: Study, minutes: float | None) -> None:
    if study.plan.sampler != "grid" and study.trials is None and minutes is None:
        raise InputError(f"a search by {study.plan.sampler} has no end of its own; give --trials N or --minutes M")


def _search(folder: Path, study: Study, material: Material, minutes: float | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sole_user(folder):
        study.write(folder)
        search = SEARCHES[study.plan.sampler](study.plan, folder / TRIALS_FILE)
        before = ended_trials(search)
        screen.say(f"search: {folder}" + (f", {len(before)} trials have ended before" if before else ""))
        score = "micro F1" if material.train.multi_label else "accuracy"
        table = TrialTable(score, list(study.plan.space), before)
        trainer = _Trainer(study, material, table)
        budget = Budget(study.trials, None if minutes is None else 60 * minutes)

        def ended(attempt: Attempt, outcome: Outcome) -> None:
            table.ended(attempt, outcome)
            _keep_best(folder, study, ended_trials(search), score)

        _keep_best(folder, study, before, score)  # the process may have been killed before it did
        try:
            with table:
                why = explore(study.plan.space, search, trainer.train, budget, ended=ended)
        except (KeyboardInterrupt, InterruptedTrainingError) as error:
            screen.note(f"stopped; every trial that ended is kept. Go on with: routepool tune --resume {folder}")
            raise typer.Exit(exit_code(error)) from error
        screen.say(f"the search has ended: {why}")
        table.show()
        _conclude(folder, study, ended_trials(search), score)


class _Trainer:
    """Trains the trials of a study as `routepool train` would train them."""

    def __init__(self, study: Study, material: Material, table: TrialTable) -> None:
        self.base, self.table = study.base, table
        train = material.train
        self.task = Task(train.examples, material.dev.examples, train.labels, train.multi_label, self.base.vectors)
        torch.set_num_threads(self.base.threads)

    def train(self, attempt: Attempt) -> Outcome:
        """Train with the settings of a trial; one that diverges or cannot be built has failed, and that is all."""
        watching, start = _Watching(attempt, self.table), time.perf_counter()
        why = ""
        try:
            fit(self.task, assign(self.base.preset, attempt.settings), hooks=[watching], device=self.base.device)
            state = FINISHED
        except HopelessError:
            state = PRUNED
        except DivergedError as error:
            state, why = FAILED, str(error)
        except InputError as error:
            refuse_changed(self.base.files)  # then it is not the trial that has failed
            state, why = FAILED, str(error)
        score = watching.best if state != FAILED else None
        return Outcome(state=state, score=score, epochs=watching.epochs, seconds=time.perf_counter() - start, why=why)


class _Watching(Hook):
    """Tells the dev score of each epoch, and ends a trial that is given up."""

    def __init__(self, attempt: Attempt, table: TrialTable) -> None:
        self._attempt, self._table = attempt, table
        self.best, self.epochs = 0.0, 0

    def on_start(self, report: StartReport) -> None:
        self._table.under_way(self._attempt)

    def on_epoch(self, report: EpochReport) -> None:
        self.best, self.epochs = report.best_score, report.epoch + 1
        self._table.under_way(self._attempt, self.epochs, report.score)
        if self._attempt.report(self.epochs, report.score):
            raise HopelessError(f"trial {self._attempt.number} is far behind the others")


def _keep_best(folder: Path, study: Study, trials: Sequence[Trial], score: str) -> None:
    if best := best_of(trials):
        preset = assign(study.base.preset, best.settings)
        write_best(folder, preset, f"trial {best.number} of {folder.name}: dev {score} {best.score:.4f}")


def _conclude(folder: Path, study: Study, trials: Sequence[Trial], score: str) -> None:
    """Draw what was found and say what to do next."""
    best = best_of(trials)
    if best is None:
        raise InputError(
            f"{folder}: no trial was finished, so there are no best settings; give it more time or other values"
        )
    try:
        for name in DRAWINGS.names():
            draw = DRAWINGS[name]
            with new_file(str(folder / f"{name}.png")) as file:
                draw(file, score, trials)
            screen.say(f"drawn: {folder / f'{name}.png'}")
    except MissingPackageError as error:
        screen.note(f"no pictures: {error}")
    data = study.base.data
    screen.say(f"best: trial {best.number}, dev {score} {best.score:.4f}. Next, with the same options for the data:")
    screen.say(f"  routepool train {data.data} --preset {folder / BEST_FILE}")
