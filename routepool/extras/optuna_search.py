"""Searches by Optuna: a grid, at random, or guided by what was tried (TPE), in an SQLite file."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import OptunaError
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, GridSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from routepool.errors import InputError
from routepool.tuning.space import Choice, Range
from routepool.tuning.trials import FAILED, FINISHED, PRUNED, RUNNING, SEARCHES, Attempt, Outcome, Plan, Search, Trial

_NAME = "search"  # of the one study in the file
_OUTCOME = "outcome"  # where it keeps what came of a trial
_STATES = {
    TrialState.RUNNING: RUNNING,
    TrialState.COMPLETE: FINISHED,
    TrialState.PRUNED: PRUNED,
    TrialState.FAIL: FAILED,
}
_PRUNERS: Mapping[str, type[BasePruner]] = {
    "none": NopPruner,
    "median": MedianPruner,
    "halving": SuccessiveHalvingPruner,
}


class OptunaSearch(Search):
    """The trials of a plan in an SQLite file, which Optuna's own tools read too.

    What is tried next depends on the plan and the trials before, never on how often the search was stopped.
    """

    def __init__(self, plan: Plan, file: Path) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # the caller says what happens
        self._plan, self._file = plan, file
        self._domains = {name: _Domain(domain, plan.sampler) for name, domain in plan.space.items()}
        url = URL.create("sqlite", database=str(file.absolute())).render_as_string()
        with self.errors_in_words():
            self._study = optuna.create_study(
                storage=optuna.storages.RDBStorage(url),
                study_name=_NAME,
                direction="maximize",
                pruner=_PRUNERS[plan.prune](),
                load_if_exists=True,
            )

    def trials(self) -> list[Trial]:
        with self.errors_in_words():
            known = self._study.get_trials(deepcopy=False, states=tuple(_STATES))
            return [self._trial(frozen) for frozen in known]

    def begin(self) -> Attempt:
        with self.errors_in_words():
            begun = self._study.get_trials(deepcopy=False)
            left = next((trial for trial in begun if trial.state == TrialState.RUNNING), None)
            number = len(begun) if left is None else left.number
            self._study.sampler = self._sampler(number)
            # A trial that was under way when the process was killed begins again, with the same values.
            trial = self._study.ask() if left is None else optuna.Trial(self._study, left._trial_id)  # noqa: SLF001
            settings = {name: domain.suggest(trial, name) for name, domain in self._domains.items()}
            return _OptunaAttempt(self, trial, settings)

    @contextmanager
    def errors_in_words(self) -> Iterator[None]:
        """Say in one sentence what the database or the sampler cannot do."""
        try:
            yield
        except (SQLAlchemyError, OptunaError) as error:
            raise InputError(
                f"{self._file}: the trials cannot be read or written ({error!s:.200}); restore the file or free some "
                "space, or begin a new search in another folder"
            ) from error

    def _sampler(self, number: int) -> BaseSampler:
        """A new one for each trial: a sampler that is seeded once would repeat its choices after each stop."""
        seed = int(np.random.SeedSequence((self._plan.seed, number)).generate_state(1)[0])
        if self._plan.sampler == "grid":
            return _Grid({name: domain.labels for name, domain in self._domains.items()}, seed=self._plan.seed)
        return TPESampler(seed=seed) if self._plan.sampler == "tpe" else RandomSampler(seed=seed)

    def _trial(self, frozen: FrozenTrial) -> Trial:
        known = {name: value for name, value in frozen.params.items() if name in self._domains}
        return Trial(
            number=frozen.number,
            settings={name: self._domains[name].value(known[name]) for name in self._domains if name in known},
            **{**frozen.user_attrs.get(_OUTCOME, {}), "state": _STATES[frozen.state]},
        )


class _OptunaAttempt(Attempt):
    def __init__(self, search: OptunaSearch, trial: optuna.Trial, settings: Mapping[str, Any]) -> None:
        self.number, self.settings = trial.number, settings
        self._search, self._trial = search, trial
        reported = trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values
        self._survived = max(reported, default=0)  # epochs before the process was killed

    def report(self, epoch: int, score: float) -> bool:
        with self._search.errors_in_words():
            if epoch > self._survived:
                self._trial.report(score, epoch)
            # Optuna judges the last epoch that it knows; the epochs before were judged in their time.
            return epoch >= self._survived and self._trial.should_prune()

    def end(self, outcome: Outcome) -> None:
        with self._search.errors_in_words():
            self._trial.set_user_attr(_OUTCOME, vars(outcome))  # in one piece: a trial that has ended has all of it
            state = next(state for state, name in _STATES.items() if name == outcome.state)
            score = outcome.score if state == TrialState.COMPLETE else None
            self._trial.study.tell(self._trial, score, state)


class _Domain:
    """A setting for Optuna: choices are given as JSON, because it keeps no lists and takes 1 for true."""

    def __init__(self, domain: Choice | Range, sampler: str) -> None:
        self._choices: dict[str, Any] = {}
        if isinstance(domain, Choice) or sampler == "grid":
            self._choices = {json.dumps(value): value for value in domain.values}
        else:
            self._range, self._high = domain, domain.high if domain.step is None else domain.values[-1]
        self.labels = list(self._choices)

    def suggest(self, trial: optuna.Trial, name: str) -> Any:
        if self._choices:
            return self.value(trial.suggest_categorical(name, self.labels))
        low, step, log = self._range.low, self._range.step, self._range.log
        if self._range.is_whole:
            return trial.suggest_int(name, int(low), int(self._high), step=int(step or 1), log=log)
        return trial.suggest_float(name, low, self._high, step=step, log=log)

    def value(self, suggested: Any) -> Any:
        return self._choices[suggested] if self._choices else suggested


class _Grid(GridSampler):
    """Does not stop the study after its last point: `explore` knows when everything has been tried."""

    def after_trial(self, *_: Any) -> None:
        pass


for _sampler in ("grid", "tpe", "random"):
    SEARCHES.register(_sampler)(OptunaSearch)
