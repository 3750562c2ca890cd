"""Can an explanation be believed? Take away the words that it names, and see what the model says then.

Comprehensiveness is what the label's probability loses when the best words go (high is good), sufficiency what it
loses when only they stay (low is good; DeYoung et al. 2020). Both are divided by what the probability loses when all
words go, so that a sure model and a hesitant one can be compared: 0 is no effect, 1 that of an empty text. Bounds:
random orders and rare words first from below, leave-one-out and a beam search from above.
"""

# V texts  F shares of words

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from routepool.arrays import Flags, Floats, Integers
from routepool.errors import InputError
from routepool.explaining.methods import METHODS, Importance, leave_one_out
from routepool.explaining.removal import (
    REMOVALS,
    Order,
    Variant,
    at_random,
    by_rarity,
    by_score,
    by_search,
    logits_without,
    variant_of,
)
from routepool.explaining.subject import Subject
from routepool.text import Encoded, Tokenizer

SHARES = (0.1, 0.2, 0.3, 0.5)
RANDOM_ORDERS = 20
RANDOM, RARE, LEAVE_ONE_OUT, SEARCH = "random", "rare words first", "leave-one-out", "search"
RESAMPLES = 1000

_Orders = dict[bool, list[list[list[Order]]]]  # keep words, or remove them -> one or several of every text and share


@dataclass(frozen=True)
class Measure:
    """A mean over texts and its 95 % interval, by bootstrap over the texts."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AuditRow:
    """What removing words in one order, in one way, does."""

    order: str  # a method's name, or one of the bounds
    removal: str  # drop, unknown or masked
    comprehensiveness: tuple[Measure, ...]  # mean loss of probability for each share of words removed
    sufficiency: tuple[Measure, ...]  # the same where only that share is kept
    flips: tuple[Measure, ...]  # share of texts with another prediction, for each share removed
    normal_comprehensiveness: Measure  # mean over the shares, divided by the loss of an empty text
    normal_sufficiency: Measure  # likewise


@dataclass(frozen=True)
class Audit:
    """All orders and removals on one set of texts."""

    texts: int
    shares: tuple[float, ...]
    empty_loss: dict[str, float]  # removal -> what the probability loses when all words go
    rows: tuple[AuditRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def row(self, order: str, removal: str) -> AuditRow:
        """One row."""
        return next(row for row in self.rows if (row.order, row.removal) == (order, removal))


class _Case(NamedTuple):
    """The texts of an audit and what the model says of them whole."""

    subject: Subject
    encoded: list[Encoded]
    targets: Integers
    probability: Floats  # (V,) of the label
    decided: Flags | Integers  # (V,) the prediction

    @classmethod
    def of(cls, subject: Subject, texts: Sequence[str]) -> Self:
        """Texts with fewer than two words are left out."""
        encoded = [one for one in subject.encode(texts) if len(one.ids) > 1]
        if not encoded:
            raise InputError("an audit needs a text of at least two words, got none")
        whole = logits_without(subject, [(one, np.ones(len(one.ids), dtype=bool)) for one in encoded], "drop")
        probabilities = subject.probabilities(whole)
        targets = probabilities.argmax(1).astype(np.int64)
        own = probabilities[np.arange(len(targets)), targets]
        return cls(subject, encoded, targets, own, subject.decided(probabilities, targets))


def audit(
    subject: Subject,
    texts: Sequence[str],
    *,
    methods: Sequence[str] | None = None,
    removals: Sequence[str] = tuple(REMOVALS),
    random_orders: int = RANDOM_ORDERS,
    search: bool = True,
) -> Audit:
    """Compare the methods with one another and with their bounds, by the words that they name.

    Args:
        subject: the model.
        texts: those with fewer than two words are left out.
        methods: names; None for all.
        removals: how words are taken away.
        random_orders: shuffles of each text, whose mean is the lower bound.
        search: with the beam search, which takes most of the time.
    """
    case = _Case.of(subject, texts)
    own = _own_orders(case, METHODS.names() if methods is None else methods)
    shuffled = _alike(*(at_random(case.encoded, seed) for seed in range(random_orders)))
    empty_loss, rows = {}, []
    for removal in removals:
        nothing = [(one, np.zeros(len(one.ids), dtype=bool)) for one in case.encoded]
        lost, _ = _lost(case, nothing, removal, 1)
        empty_loss[removal] = float(lost.mean())
        best = _by_scores(leave_one_out(subject, case.encoded, case.targets, removal=removal))
        orders = {RANDOM: shuffled, **{name: _alike(of_texts) for name, of_texts in own.items()}}
        orders[LEAVE_ONE_OUT] = _alike(best)
        if search:
            orders[SEARCH] = {keep: [_searched(case, best, removal, keep, own)] for keep in (False, True)}
        rows += [_row(case, name, removal, some, lost[:, 0]) for name, some in orders.items()]
    return Audit(len(case.encoded), SHARES, empty_loss, tuple(rows))


def _own_orders(case: _Case, methods: Sequence[str]) -> dict[str, list[Order]]:
    """The orders that do not depend on how words are removed: of the methods, and rare words first."""
    own = {
        name: _by_scores(METHODS[name](case.subject, case.encoded, case.targets))
        for name in methods
        if name != LEAVE_ONE_OUT
    }
    if isinstance(case.subject.tokenizer, Tokenizer):  # pieces of a pre-trained encoder have no counts
        own[RARE] = by_rarity(case.encoded, case.subject.tokenizer)
    return own


def _alike(*orders: list[Order]) -> _Orders:
    """The same whatever is removed or kept, and for every share."""
    same = [[[order] * len(SHARES) for order in of_texts] for of_texts in orders]
    return {False: same, True: same}


def _by_scores(found: Sequence[Importance]) -> list[Order]:
    return [by_score(one.words) for one in found]


def _sizes(words: int) -> list[int]:
    return [max(1, round(share * words)) for share in SHARES]


def _searched(
    case: _Case, start: list[Order], removal: str, keep: bool, own: Mapping[str, list[Order]]
) -> list[list[Order]]:
    rivals = list(zip(*own.values(), strict=True)) or [()] * len(start)
    return [
        by_search(
            case.subject, one, target, start=order, rivals=others, removal=removal, keep=keep, sizes=_sizes(len(order))
        )
        for one, target, order, others in zip(case.encoded, case.targets.tolist(), start, rivals, strict=True)
    ]


def _row(case: _Case, name: str, removal: str, orders: _Orders, empty: Floats) -> AuditRow:
    """Losses and flips (V, F), a text's mean over the orders given."""
    removed = [_measured(case, some, removal, keep=False) for some in orders[False]]
    kept = [_measured(case, some, removal, keep=True) for some in orders[True]]
    comprehensiveness, flips = (np.mean([one[place] for one in removed], axis=0) for place in (0, 1))
    sufficiency = np.mean([losses for losses, _ in kept], axis=0)
    return AuditRow(
        name,
        removal,
        comprehensiveness=tuple(map(_mean, comprehensiveness.T)),
        sufficiency=tuple(map(_mean, sufficiency.T)),
        flips=tuple(map(_mean, flips.T)),
        normal_comprehensiveness=_ratio(comprehensiveness.mean(1), empty),
        normal_sufficiency=_ratio(sufficiency.mean(1), empty),
    )


def _measured(case: _Case, orders: list[list[Order]], removal: str, *, keep: bool) -> tuple[Floats, Floats]:
    variants = [
        variant_of(one, order[:size], keep=keep)
        for one, by_share in zip(case.encoded, orders, strict=True)
        for order, size in zip(by_share, _sizes(len(one.ids)), strict=True)
    ]
    return _lost(case, variants, removal, len(SHARES))


def _lost(case: _Case, variants: Sequence[Variant], removal: str, each: int) -> tuple[Floats, Floats]:
    """Loss of the label's probability and change of the prediction, (V, each), for so many variants of each text."""
    probabilities = case.subject.probabilities(logits_without(case.subject, variants, removal))
    targets = np.repeat(case.targets, each)
    lost = np.repeat(case.probability, each) - probabilities[np.arange(len(targets)), targets]
    changed = case.subject.decided(probabilities, targets) != np.repeat(case.decided, each)
    return lost.reshape(-1, each), changed.reshape(-1, each).astype(np.float64)


def _mean(values: Floats) -> Measure:
    return _bootstrapped(len(values), lambda rows: values[rows].mean(1))


def _ratio(values: Floats, empty: Floats) -> Measure:
    """Sum over sum, not the mean of quotients: some texts lose nothing when emptied."""

    def of(rows: Integers) -> Floats:
        total = empty[rows].sum(1)
        ratio: Floats = np.divide(values[rows].sum(1), total, out=np.zeros(len(rows)), where=np.abs(total) > 1e-9)
        return ratio

    return _bootstrapped(len(values), of)


def _bootstrapped(number: int, of: Callable[[Integers], Floats]) -> Measure:
    rows = np.random.default_rng(0).integers(number, size=(RESAMPLES, number))
    low, high = np.quantile(of(rows), [0.025, 0.975]).tolist()
    return Measure(float(of(np.arange(number)[None])[0]), low, high)
