"""One trial after another, until all was tried or the time is up."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from routepool.tuning.space import Space, number_of_points
from routepool.tuning.trials import RUNNING, Attempt, Outcome, Search, Trial


@dataclass(frozen=True)
class Budget:
    """When a search ends, if not by having tried everything.

    Args:
        trials: at most, those of earlier days included.
        seconds: at most, from now on; a trial that would not end in time is not begun.
    """

    trials: int | None = None
    seconds: float | None = None

    def objection(self, trials: Sequence[Trial], elapsed: float) -> str:
        """Why no further trial may begin after those that ended; empty if one may.

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
    """Try one setting after another, and say why it ended.

    Args:
        space: what can be tried.
        search: chooses them and keeps what came of them.
        attempt: trains with one; an error of its own ends the search, and the trial is begun again next time.
        budget: when to end.
        ended: is told of each trial as soon as it cannot be lost.
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
    """Those of which something came."""
    return [trial for trial in search.trials() if trial.state != RUNNING]


def _known(begun: Attempt, trials: Sequence[Trial]) -> Outcome | None:
    """What came of the same settings before: training with one seed is a function of them."""
    for trial in trials:
        if trial.settings == begun.settings:
            return Outcome(state=trial.state, score=trial.score, epochs=trial.epochs, why=f"as trial {trial.number}")
    return None
