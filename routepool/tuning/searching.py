"""A search from its request to its best settings: settle and check it, train trial after trial, keep what is best."""

import io
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import torch

from routepool.errors import InputError, MissingPackageError
from routepool.files.disk import foreign, replace_file
from routepool.files.locks import sole_process
from routepool.runs.preparing import asked_settings, prepare, source_of
from routepool.runs.record import check_record, note_other_versions, refuse_changed
from routepool.runs.reporter import Reporter
from routepool.runs.sets import Sets, read_sets
from routepool.settings import assign, to_toml
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
from routepool.tuning.exploring import Budget, ended_trials, explore
from routepool.tuning.search_request import SearchRequest, TrialRequest
from routepool.tuning.space import named
from routepool.tuning.space_file import PAPER, fit_to, read_space, refuse_fixed
from routepool.tuning.study import BASE_FILE, BEST_FILE, STUDY_FILE, TRIALS_FILE, Study
from routepool.tuning.trials import (
    DRAWINGS,
    FAILED,
    FINISHED,
    PRUNED,
    SEARCHES,
    Attempt,
    HopelessError,
    Outcome,
    Plan,
    Trial,
    best_of,
)


class TrialWatcher(AbstractContextManager["TrialWatcher"], Protocol):
    """Sees the trials as they go, in a context; made of the score's name, the searched settings and earlier trials."""

    def under_way(self, attempt: Attempt, epochs: int = 0, score: float | None = None) -> None:
        """A trial has begun, or an epoch of it was scored."""

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        """The trial under way is over."""

    def show(self) -> None:
        """All of them, at the end."""


Watch = Callable[[str, Sequence[str], Sequence[Trial]], TrialWatcher]


def start_search(request: TrialRequest, search: SearchRequest, reporter: Reporter, watch: Watch) -> None:
    """Search, or go on with the same search in the same folder."""
    searched = read_space(Path(search.space)) if search.space else PAPER
    SEARCHES[search.sampler]  # one whose package is missing is said now
    refuse_fixed(searched, asked_settings(request))
    out = request.out or f"runs/tune-{source_of(request).title}-{time.strftime('%Y%m%d-%H%M%S')}"
    request = replace(request, preset=request.preset or searched.base, out=out)
    folder, base, sets, _ = prepare(request, reporter)
    space, seed = fit_to(searched, base.preset), base.preset.training.seed
    with named(searched.source):
        plan = Plan(space, search.sampler, search.prune, seed)
    study = Study(base, plan, search.trials)
    _refuse_endless(study, search.minutes)
    if (folder / STUDY_FILE).exists():
        study = Study.read(folder).continued(study, folder)
    elif (folder / TRIALS_FILE).exists():
        raise InputError(f"{folder}: it holds trials of a search, but no {STUDY_FILE}; choose another --out")
    elif (folder / BEST_FILE).exists():
        raise foreign(folder / BEST_FILE, f"the {STUDY_FILE} that says so is missing")
    check_record(folder / BASE_FILE)
    _search(folder, study, sets, search.minutes, reporter, watch)


def resume_search(folder: Path, search: SearchRequest, reporter: Reporter, watch: Watch) -> None:
    """Go on with a search that was stopped, or to new numbers of trials and minutes."""
    study = Study.read(folder)
    study = replace(study, trials=search.trials or study.trials)
    _refuse_endless(study, search.minutes)
    refuse_changed(study.base.files)
    note_other_versions(study.base, reporter)
    check_device(study.base.device)
    _search(folder, study, read_sets(study.base.data, reporter), search.minutes, reporter, watch)


def _refuse_endless(study: Study, minutes: float | None) -> None:
    if study.plan.sampler != "grid" and study.trials is None and minutes is None:
        raise InputError(f"a search by {study.plan.sampler} has no end of its own; give --trials N or --minutes M")


def _search(folder: Path, study: Study, sets: Sets, minutes: float | None, reporter: Reporter, watch: Watch) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sole_process(folder, "searching"):
        study.write(folder)
        search = SEARCHES[study.plan.sampler](study.plan, folder / TRIALS_FILE)
        before = ended_trials(search)
        reporter.say(f"search: {folder}" + (f", {len(before)} trials have ended before" if before else ""))
        score = "micro F1" if sets.train.multi_label else "accuracy"
        watcher = watch(score, list(study.plan.space), before)
        trainer = _Trainer(study, sets, watcher)
        budget = Budget(study.trials, None if minutes is None else 60 * minutes)

        def ended(attempt: Attempt, outcome: Outcome) -> None:
            watcher.ended(attempt, outcome)
            _keep_best(folder, study, ended_trials(search), score)

        _keep_best(folder, study, before, score)  # the process may have been killed before it did
        try:
            with watcher:
                why = explore(study.plan.space, search, trainer.train, budget, ended=ended)
        except (KeyboardInterrupt, InterruptedTrainingError) as error:
            raise InterruptedTrainingError(
                f"stopped; every trial that ended is kept. Go on with: routepool tune --resume {folder}",
                getattr(error, "number", signal.SIGINT),
            ) from error
        reporter.say(f"the search has ended: {why}")
        watcher.show()
        _conclude(folder, study, ended_trials(search), score, reporter)


class _Trainer:
    """Trains the trials of a study as `routepool train` would train them."""

    def __init__(self, study: Study, sets: Sets, watcher: TrialWatcher) -> None:
        self.base, self.watcher = study.base, watcher
        train = sets.train
        self.task = Task(train.examples, sets.dev.examples, train.labels, train.multi_label, self.base.vectors)
        torch.set_num_threads(self.base.threads)

    def train(self, attempt: Attempt) -> Outcome:
        """Train with the settings of a trial; one that diverges or cannot be built has failed, and that is all."""
        watching, start = TrialHook(attempt, self.watcher), time.perf_counter()
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


class TrialHook(Hook):
    """Passes the dev score of each epoch on, and ends a trial that is given up."""

    def __init__(self, attempt: Attempt, watcher: TrialWatcher) -> None:
        self.attempt, self._watcher = attempt, watcher
        self.best, self.epochs = 0.0, 0

    def on_start(self, report: StartReport) -> None:
        self._watcher.under_way(self.attempt)

    def on_epoch(self, report: EpochReport) -> None:
        self.best, self.epochs = report.best_score, report.epoch + 1
        self._watcher.under_way(self.attempt, self.epochs, report.score)
        if self.attempt.report(self.epochs, report.score):
            raise HopelessError(f"trial {self.attempt.number} is far behind the others")


def _keep_best(folder: Path, study: Study, trials: Sequence[Trial], score: str) -> None:
    if best := best_of(trials):
        head = f"# trial {best.number} of {folder.name}: dev {score} {best.score:.4f}"
        preset = to_toml(assign(study.base.preset, best.settings), complete=True)
        replace_file(folder / BEST_FILE, f"{head}\n\n{preset}".encode())


def _conclude(folder: Path, study: Study, trials: Sequence[Trial], score: str, reporter: Reporter) -> None:
    """Draw what was found and say what to do next."""
    best = best_of(trials)
    if best is None:
        raise InputError(
            f"{folder}: no trial was finished, so there are no best settings; give it more time or other values"
        )
    try:
        for name in DRAWINGS.names():
            picture = io.BytesIO()
            DRAWINGS[name](picture, score, trials)
            replace_file(folder / f"{name}.png", picture.getvalue())
            reporter.say(f"drawn: {folder / f'{name}.png'}")
    except MissingPackageError as error:
        reporter.note(f"no pictures: {error}")
    data = study.base.data
    reporter.say(f"best: trial {best.number}, dev {score} {best.score:.4f}. Next, with the same options for the data:")
    reporter.say(f"  routepool train {data.data} --preset {folder / BEST_FILE}")
