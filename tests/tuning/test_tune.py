"""A search tries what it should, once, keeps what came of it, and ends when it is told to."""

import warnings
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import optuna
import pytest

from routepool.errors import InputError
from routepool.tuning.search import Budget, ended_trials, explore
from routepool.tuning.space import Choice, Range, Space
from routepool.tuning.trials import (
    DRAWINGS,
    FAILED,
    FINISHED,
    PRUNED,
    RUNNING,
    SEARCHES,
    Attempt,
    Outcome,
    Plan,
    Search,
    Trial,
    best_of,
    ranked,
)

GRID: Space = {"learning_rate": Choice((0.1, 0.2, 0.3)), "places": Choice((("a",), ("a", "b"))), "size": Range(1, 5, 2)}
MIXED: Space = {"rate": Range(1e-5, 1e-1, log=True), "size": Range(1, 500), "kind": Choice(("x", "y"))}


def open_search(folder: Path, plan: Plan) -> Search:
    return SEARCHES[plan.sampler](plan, folder / "trials.db")


def finished(score: float, seconds: float = 1.0) -> Outcome:
    return Outcome(state=FINISHED, score=score, epochs=1, seconds=seconds)


def points(search: Search) -> list[Mapping[str, Any]]:
    return [trial.settings for trial in search.trials()]


class Remembered(Search):
    """Tries 0, 1, 2, ... and keeps what came of them in a list."""

    def __init__(self, modulo: int = 100) -> None:
        self.modulo, self.kept = modulo, list[Trial]()

    def trials(self) -> list[Trial]:
        return self.kept

    def begin(self) -> Attempt:
        return _Remembered(self, len(self.kept))


class _Remembered(Attempt):
    def __init__(self, search: Remembered, number: int) -> None:
        self.search, self.number, self.settings = search, number, {"x": number % search.modulo}

    def report(self, epoch: int, score: float) -> bool:
        return False

    def end(self, outcome: Outcome) -> None:
        self.search.kept.append(Trial(number=self.number, settings=self.settings, **vars(outcome)))


def test_a_search_ends_after_as_many_trials_as_were_asked_for() -> None:
    search = Remembered()
    explore({"x": Range(0.0, 99.0)}, search, lambda begun: finished(0.5), Budget(trials=3))
    explore({"x": Range(0.0, 99.0)}, search, lambda begun: finished(0.5), Budget(trials=5))
    assert len(search.kept) == 5


def test_no_trial_is_begun_that_would_not_end_in_time() -> None:
    now = [0.0]
    search = Remembered()

    def attempt(begun: Attempt) -> Outcome:
        now[0] += 10
        return finished(0.5, seconds=10.0)

    why = explore({"x": Range(0.0, 99.0)}, search, attempt, Budget(seconds=35), clock=lambda: now[0])
    assert (len(search.kept), why) == (3, "a further trial would not end in time")


def test_what_was_tried_is_not_trained_again() -> None:
    search, trained = Remembered(modulo=2), list[int]()

    def attempt(begun: Attempt) -> Outcome:
        trained.append(begun.number)
        return finished(begun.number / 10)

    explore({"x": Choice((0, 1, 2))}, search, attempt, Budget(trials=4))
    assert trained == [0, 1]
    assert [(trial.score, trial.why) for trial in search.kept[2:]] == [(0.0, "as trial 0"), (0.1, "as trial 1")]


def test_the_best_is_finished_and_the_earliest_of_equals() -> None:
    outcomes = [
        Outcome(state=PRUNED, score=0.99),
        Outcome(state=FAILED),
        finished(0.7),
        finished(0.8),
        finished(0.8),
        Outcome(state=RUNNING),
    ]
    trials = [Trial(number=number, settings={}, **vars(one)) for number, one in enumerate(outcomes)]
    best = best_of(trials)
    assert best is not None
    assert best.number == 3
    assert [trial.number for trial in ranked(trials)] == [3, 4, 2, 0, 1, 5]
    assert best_of(trials[:2]) is None


def test_a_grid_visits_every_point_once(tmp_path: Path) -> None:
    search = open_search(tmp_path, Plan(GRID))
    why = explore(GRID, search, lambda begun: finished(begun.settings["learning_rate"]), Budget())
    assert why == "everything has been tried"
    wanted = [dict(zip(GRID, values, strict=True)) for values in product(*(one.values for one in GRID.values()))]
    assert sorted(map(str, points(search))) == sorted(map(str, wanted))


@pytest.mark.parametrize(("sampler", "space"), [("grid", GRID), ("random", MIXED), ("tpe", MIXED)])
def test_a_stopped_search_goes_on_as_if_it_had_never_been_stopped(sampler: str, space: Space, tmp_path: Path) -> None:
    def score(begun: Attempt) -> Outcome:
        return finished(sum(value for value in begun.settings.values() if isinstance(value, float)))

    plan = Plan(space, sampler, seed=3)
    (tmp_path / "whole").mkdir()
    explore(space, open_search(tmp_path / "whole", plan), score, Budget(trials=7))
    for number in (2, 4, 7):  # three lives, the first two of which leave a trial without an end
        search = open_search(tmp_path, plan)
        explore(space, search, score, Budget(trials=number))
        if number < 7:
            abandoned = search.begin()
            abandoned.report(1, 0.1)
            assert search.trials()[-1].state == RUNNING
    assert [trial.number for trial in ended_trials(search)] == list(range(7))
    assert points(search) == points(open_search(tmp_path / "whole", plan))
    assert len({str(one) for one in points(search)}) == 7


def test_another_seed_tries_other_points(tmp_path: Path) -> None:
    first, second = (SEARCHES["random"](Plan(MIXED, "random", seed=n), tmp_path / f"{n}.db") for n in range(2))
    assert first.begin().settings != second.begin().settings


def test_ranges_keep_their_kind_and_their_ends(tmp_path: Path) -> None:
    space = {"rate": Range(1e-5, 1e-1, log=True), "size": Range(1, 4), "step": Range(0.0, 1.0, 0.3)}
    search = open_search(tmp_path, Plan(space, "random"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explore(space, search, lambda begun: finished(0.5), Budget(trials=15))
    for settings in points(search):
        assert 1e-5 <= settings["rate"] <= 1e-1
        assert settings["size"] in (1, 2, 3, 4)
        assert type(settings["size"]) is int
        assert settings["step"] == pytest.approx(round(settings["step"] / 0.3) * 0.3)
        assert settings["step"] < 0.91
    assert sorted(settings["rate"] for settings in points(search))[7] < 1e-2


def test_tpe_learns_from_what_was_tried(tmp_path: Path) -> None:
    space = {"x": Range(0.0, 1.0)}
    search = open_search(tmp_path, Plan(space, "tpe"))
    explore(space, search, lambda begun: finished(-abs(begun.settings["x"] - 0.3)), Budget(trials=20))
    distances = [abs(settings["x"] - 0.3) for settings in points(search)]
    assert sum(distances[10:]) < sum(distances[:10]) / 2  # the first ten are drawn at random


@pytest.mark.parametrize("prune", ["median", "halving", "none"])
def test_a_hopeless_trial_is_given_up(prune: str, tmp_path: Path) -> None:
    space = {"x": Choice(tuple(range(9)))}
    search = open_search(tmp_path, Plan(space, "grid", prune))
    for _ in range(8):
        good = search.begin()
        assert not any(good.report(epoch, 0.9) for epoch in range(1, 4))
        good.end(finished(0.9))
    assert any(search.begin().report(epoch, 0.1) for epoch in range(1, 4)) is (prune != "none")


@pytest.mark.parametrize(("prune", "lives"), [("median", (2, 2)), ("halving", (1, 3))])
def test_a_trial_begun_again_is_given_up_at_the_same_epoch(prune: str, lives: tuple[int, int], tmp_path: Path) -> None:
    plan = Plan({"x": Choice(tuple(range(9)))}, "grid", prune)
    search = open_search(tmp_path, plan)
    for _ in range(8):
        good = search.begin()
        for epoch in range(1, 6):
            good.report(epoch, 0.9 + epoch / 100)
        good.end(finished(0.95))

    def live(epochs: int) -> list[bool]:
        begun = open_search(tmp_path, plan).begin()
        return [begun.report(epoch, 0.91) for epoch in range(1, epochs + 1)]

    for epochs in lives:
        assert not any(live(epochs)[:1])
    assert live(4).index(True) + 1 == (2 if prune == "median" else 4)


def test_optuna_sees_the_same_search(tmp_path: Path) -> None:
    search = open_search(tmp_path, Plan(GRID))
    search.begin().end(finished(0.75))
    search.begin().end(Outcome(state=FAILED, why="diverged"))
    study = optuna.load_study(study_name="search", storage=f"sqlite:///{tmp_path / 'trials.db'}")
    assert study.best_value == 0.75
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL"]
    assert search.trials()[1].why == "diverged"


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "odd #name?100%20 é"
    folder.mkdir()
    open_search(folder, Plan(GRID)).begin().end(finished(0.5))
    assert len(ended_trials(open_search(folder, Plan(GRID)))) == 1
    assert [path.name for path in folder.iterdir()] == ["trials.db"]


def test_a_damaged_file_of_trials_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "trials.db").write_bytes(b"no database" * 1000)
    with pytest.raises(InputError, match=r"trials\.db: the trials cannot be read or written"):
        open_search(tmp_path, Plan(GRID))


@pytest.mark.parametrize("name", ["history", "settings"])
def test_pictures_are_drawn_from_trials_of_every_kind(name: str, tmp_path: Path) -> None:
    kinds: list[Outcome] = [finished(0.5), finished(0.9), Outcome(state=PRUNED, score=0.2), Outcome(state=FAILED)]
    trials = [
        Trial(
            number=number,
            settings={"rate": 10.0**-number, "odd": ("$", "a$"), "on": number > 3, "kind": "x_$^{"},
            **vars(kinds[number % 4]),
        )
        for number in range(12)
    ]
    for shown in (trials, trials[:1], trials[3:4]):
        DRAWINGS[name](tmp_path / "drawn.png", "accuracy", shown)
        assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")
