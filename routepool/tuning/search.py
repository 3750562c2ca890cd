"""A search from its request to its best settings: settle and check it, train trial after trial, keep the best."""

import io
import json
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import torch

from routepool.errors import InputError, InterruptedTrainingError, MissingPackageError
from routepool.files.disk import foreign, replace_file
from routepool.files.locks import sole_process
from routepool.printable import plural
from routepool.runs.record import RunRecord, check_record, check_resumable, refuse_changed
from routepool.runs.reporter import Reporter
from routepool.runs.run import asked_settings, prepare, source_of
from routepool.runs.sets import Sets, read_sets
from routepool.settings import assign, to_toml
from routepool.training import DivergedError, EpochReport, Hook, StartReport, Task, fit
from routepool.tuning.search_request import SearchRequest, TrialRequest
from routepool.tuning.space import PAPER, Space, fit_to, named, number_of_points, read_space, refuse_fixed
from routepool.tuning.study import BASE_FILE, BEST_FILE, STUDY_FILE, TRIALS_FILE, Study
from routepool.tuning.trials import (
    DRAWINGS,
    FAILED,
    FINISHED,
    PRUNED,
    RUNNING,
    SEARCHES,
    Attempt,
    HopelessError,
    Outcome,
    Plan,
    Search,
    Trial,
    best_of,
)


class TrialWatcher(AbstractContextManager["TrialWatcher"], Protocol):
    """Shows the trials as they go; a context, made of the name of the score, the searched settings, earlier trials."""

    def under_way(self, attempt: Attempt, epochs: int = 0, score: float | None = None) -> None:
        """A trial has begun, or an epoch of it was scored."""

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        """The trial under way is over."""

    def show(self) -> None:
        """Show all trials, at the end."""


Watch = Callable[[str, Sequence[str], Sequence[Trial]], TrialWatcher]


def start_search(request: TrialRequest, search: SearchRequest, reporter: Reporter, watch: Watch) -> None:
    """Begin a search, or go on with the same search in the same folder."""
    searched = read_space(Path(search.space)) if search.space else PAPER
    SEARCHES[search.sampler]  # a missing package is an error now, not after the data are read
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
    """Resume a search that was stopped, or extend one by new numbers of trials and minutes."""
    study = Study.read(folder)
    study = replace(study, trials=search.trials or study.trials)
    _refuse_endless(study, search.minutes)
    check_resumable(study.base, reporter)
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
        reporter.say(f"search: {folder}" + (f", {plural(len(before), 'trial')} ended before" if before else ""))
        score = "micro F1" if sets.train.multi_label else "accuracy"
        watcher = watch(score, list(study.plan.space), before)
        train, base = sets.train, study.base
        task = Task(train.examples, sets.dev.examples, train.labels, train.multi_label, base.vectors)
        torch.set_num_threads(base.threads)
        budget = Budget(study.trials, None if minutes is None else 60 * minutes)

        def ended(attempt: Attempt, outcome: Outcome) -> None:
            watcher.ended(attempt, outcome)
            _keep_best(folder, study, ended_trials(search), score)

        _keep_best(folder, study, before, score)  # the process may have been killed before it did so
        try:
            with watcher:
                attempt = partial(_attempt, base=base, task=task, watcher=watcher)
                why = explore(study.plan.space, search, attempt, budget, ended=ended)
        except (KeyboardInterrupt, InterruptedTrainingError) as error:
            raise InterruptedTrainingError(
                f"stopped; every trial that ended is kept. Go on with: routepool tune --resume {folder}",
                getattr(error, "number", signal.SIGINT),
            ) from error
        reporter.say(f"the search has ended: {why}")
        watcher.show()
        _conclude(folder, study, ended_trials(search), score, reporter)


def _attempt(attempt: Attempt, *, base: RunRecord, task: Task, watcher: TrialWatcher) -> Outcome:
    """Train as `routepool train` does; a trial that diverges or cannot be built has failed."""
    watching, start, state, why = TrialHook(attempt, watcher), time.perf_counter(), FINISHED, ""
    try:
        fit(task, assign(base.preset, attempt.settings), hooks=[watching], device=base.device)
    except HopelessError:
        state = PRUNED
    except DivergedError as error:
        state, why = FAILED, str(error)
    except InputError as error:
        refuse_changed(base.files)  # if a file has changed, it is not the trial that has failed
        state, why = FAILED, str(error)
    score = watching.best if state != FAILED else None
    return Outcome(state=state, score=score, epochs=watching.epochs, seconds=time.perf_counter() - start, why=why)


class TrialHook(Hook):
    """Reports the dev score of each epoch, and ends a trial that is to be pruned."""

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
        raise InputError(f"{folder}: no trial was finished, so none is the best; give more time or other values")
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


@dataclass(frozen=True)
class Budget:
    """When a search ends before everything has been tried.

    Args:
        trials: at most, those before a resume included.
        seconds: at most, from now on; no trial begins that would not end in time.
    """

    trials: int | None = None
    seconds: float | None = None

    def objection(self, trials: Sequence[Trial], elapsed: float) -> str:
        """Why no further trial may begin; empty if one may.

        >>> Budget(seconds=60).objection([Trial(number=0, settings={}, state="finished", seconds=40.0)], elapsed=40.0)
        'a further trial would not end in time'
        """
        if self.trials is not None and len(trials) >= self.trials:
            return "as many trials as were asked for have ended"
        longest = max((trial.seconds for trial in trials), default=0.0)
        if self.seconds is not None and elapsed + longest > self.seconds:
            return "a further trial would not end in time"
        return ""


def explore(
    space: Space,
    search: Search,
    attempt: Callable[[Attempt], Outcome],
    budget: Budget,
    *,
    ended: Callable[[Attempt, Outcome], None] = lambda attempt, outcome: None,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Try one set of settings after another; returns why the search ended.

    Args:
        space: what can be tried.
        search: chooses the settings of each trial and keeps its outcome.
        attempt: trains with them; an error it raises ends the search, and a resumed search begins the trial again.
        budget: when to end.
        ended: called after each trial, once its outcome is kept.
        clock: in seconds.
    """
    start, everything = clock(), number_of_points(space)
    while not (objection := budget.objection(trials := ended_trials(search), clock() - start)):
        if len({json.dumps(trial.settings) for trial in trials}) == everything:
            return "everything has been tried"
        begun = search.begin()
        outcome = _known(begun, trials) or attempt(begun)
        begun.end(outcome)
        ended(begun, outcome)
    return objection


def ended_trials(search: Search) -> list[Trial]:
    """Every trial but the one under way."""
    return [trial for trial in search.trials() if trial.state != RUNNING]


def _known(begun: Attempt, trials: Sequence[Trial]) -> Outcome | None:
    """The outcome of an earlier trial of the same settings: with one seed, training is a function of them."""
    for trial in trials:
        if trial.settings == begun.settings:
            return Outcome(state=trial.state, score=trial.score, epochs=trial.epochs, why=f"as trial {trial.number}")
    return None
