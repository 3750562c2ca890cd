"""What a request asks of a model, and how much of it is done: a model works on it a part at a time."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from routepool.scoring.predictor import Predictor


class Question(NamedTuple):
    """What is asked of texts; requests with the same question share a turn."""

    kind: str
    method: str | None = None
    label: str | None = None
    rounds: bool = False


@dataclass(eq=False)
class Job:
    """The texts of one request.

    Args:
        question: what is asked of them.
        texts: at least one.
        costs: of each text, in whatever the lane counts.
        answer: where the results are waited for; it is done, too, when nobody waits any more.
        model: the one that began; it also ends, so that no answer mixes two.
        results: of the first texts, as far as they are computed.
        failed: a part could not be computed, so the rest need not be.
    """

    question: Question
    texts: Sequence[str]
    costs: Sequence[int]
    answer: "asyncio.Future[list[str]]"
    model: Predictor | None = None
    results: list[str] = field(default_factory=list)
    failed: bool = False
    arrived: float = field(default_factory=time.monotonic)

    @property
    def is_wanted(self) -> bool:
        """Does anybody wait for it?"""
        return not self.answer.done()

    @property
    def is_done(self) -> bool:
        """Is there nothing left to compute?"""
        return self.failed or len(self.results) == len(self.texts)

    @property
    def cost_left(self) -> int:
        """Of the texts not yet computed."""
        return sum(self.costs[len(self.results) :])

    def part(self, texts: int, cost: int) -> "Part":
        """The next texts, at most so many and at most so dear; one at least."""
        start = len(self.results)
        end, dear = start + 1, self.costs[start]
        while end < min(len(self.texts), start + texts) and dear + self.costs[end] <= cost:
            dear += self.costs[end]
            end += 1
        return Part(self, self.texts[start:end], dear)


class Part(NamedTuple):
    """Texts of one job that are computed in one turn."""

    job: Job
    texts: Sequence[str]
    cost: int
