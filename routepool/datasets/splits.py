"""One set -> two, chosen by a hash of each text: the same rows every time, whatever their order."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from routepool.datasets.loading import natural_order
from routepool.datasets.records import Example
from routepool.errors import InputError


class Split(NamedTuple):
    """Indices of the kept and the held-out examples."""

    kept: tuple[int, ...]
    held: tuple[int, ...]


def split(examples: Sequence[Example], *, held: float = 0.1, seed: int = 0) -> Split:
    """Hold out a stratified part: a share below 1, or a number of different texts.

    Equal texts stay on one side. Every label with two different texts or more has one on each side, as long as no
    text carries several labels. The choice depends on the seed and the texts only, not on their order.

    >>> rows = [Example(row, f"text {row}", ("even" if row % 2 == 0 else "odd",)) for row in range(20)]
    >>> len(split(rows, held=0.2).held), split(rows, held=4) == split(rows, held=0.2)
    (4, True)
    """
    groups = _by_text(examples, seed)
    totals = Counter(label for _, labels in groups for label in labels)
    taken: Counter[str] = Counter()
    chosen: set[int] = set()
    with_label = defaultdict(list)
    for group in groups:
        for label in group[1]:
            with_label[label].append(group)
    wanted = _quotas(totals, held if held < 1 else held / max(len(groups), 1))
    for label in sorted(wanted, key=lambda name: (totals[name], name)):  # the rarest first, while there is a choice
        for indices, labels in with_label[label]:
            if taken[label] >= wanted[label]:
                break
            leaves_some = all(taken[each] + 1 < totals[each] for each in labels)
            if leaves_some and chosen.isdisjoint(indices):
                chosen.update(indices)
                taken.update(labels)
    everything = range(len(examples))
    return Split(tuple(i for i in everything if i not in chosen), tuple(sorted(chosen)))


def _by_text(examples: Sequence[Example], seed: int) -> list[tuple[list[int], frozenset[str]]]:
    """Indices and labels of each different text, in the order of the texts' hashes."""
    places = defaultdict(list)
    for index, example in enumerate(examples):
        places[example.text].append(index)
    order = sorted(places, key=lambda text: (_hash(text, seed), text))
    return [
        (places[text], frozenset(label for i in places[text] for label in examples[i].labels or ("",)))
        for text in order
    ]


def _hash(text: str, seed: int) -> bytes:
    return blake2b(text.encode(), digest_size=16, salt=seed.to_bytes(8, "little")).digest()


def _quotas(totals: Counter[str], share: float) -> dict[str, int]:
    """Texts to hold out of each label: their sum is the share of all texts, and each is within one of its own share."""
    if not 0 < share < 1:
        raise InputError(f"the part held out must be above 0 and below the whole, got a share of {share:g}")
    quotas, seen = {}, 0
    for label in natural_order(totals):
        before, seen = seen, seen + totals[label]
        quota = round(seen * share) - round(before * share)
        quotas[label] = max(1, quota) if totals[label] > 1 else 0
    return quotas
