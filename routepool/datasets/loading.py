"""A file -> a dataset in memory, with all that a model folder records about its data."""

import hashlib
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, Unpack

from routepool.datasets.reading import read
from routepool.datasets.records import Columns, Example, Kind, ReadOptions, Skipped
from routepool.datasets.sources import Source, SourceLike
from routepool.errors import InputError
from routepool.files.disk import digest_of

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Dataset:
    """A file's examples, and where they came from."""

    examples: tuple[Example, ...]
    labels: tuple[str, ...]  # every label that occurs, in natural order
    source: str
    sha256: str  # of the file as stored, compressed or not: what `sha256sum` prints
    columns: Columns
    skipped: tuple[Skipped, ...] = ()  # the first 1,000 of each kind
    skipped_kinds: Mapping[Kind, int] = field(default_factory=dict)
    multi_label: bool = False
    added: tuple[tuple[str, str], ...] = ()  # further files of a set that has several, each with its hash

    @property
    def files(self) -> dict[str, str]:
        """Every file the examples came from, with its SHA-256."""
        return {self.source: self.sha256, **dict(self.added)}

    def select(self, indices: Iterable[int]) -> "Dataset":
        """Some of the examples. The labels stay as they are, so that class numbers do."""
        return replace(self, examples=tuple(self.examples[index] for index in indices))


def load_dataset(source: SourceLike, **options: Unpack[ReadOptions]) -> Dataset:
    r"""Read a whole file, for training, evaluation or checking; the options are those of `read`.

    >>> import io
    >>> data = load_dataset(io.BytesIO(b"stars,review\n10,fine\n2,dull\n10,grand"), format="csv")
    >>> data.labels, len(data.examples)
    (('2', '10'), 3)
    """
    stored, digest = _digested(source)
    reader = read(stored, **options)
    examples = tuple(replace(example, fields={}) for example in reader)
    if not examples:
        first = f"row {reader.skipped[0].row}: {reader.skipped[0].reason}"
        raise InputError(f"{reader.source}: all {reader.skipped_kinds.total()} rows were skipped; the first, {first}")
    return Dataset(
        examples=examples,
        labels=natural_order({label for example in examples for label in example.labels or ()}),
        source=reader.source,
        sha256=digest,
        columns=reader.columns,
        skipped=tuple(reader.skipped),
        skipped_kinds=dict(reader.skipped_kinds),
        multi_label=options.get("multi_label", False),
    )


def check_trainable(train: Dataset, *dev: Dataset) -> None:
    """Refuse data with one class only, and dev data with a label that the training data lack."""
    if len(train.labels) < (1 if train.multi_label else 2):
        raise InputError(
            f"{train.source}, row {train.examples[0].row}: every example is labelled {', '.join(train.labels) or '-'} "
            f"in {train.columns.label!r}; at least two classes are wanted"
        )
    known = {label for example in train.examples for label in example.labels or ()}
    for data in dev:
        for example in data.examples:
            unseen = [label for label in example.labels or () if label not in known]
            if unseen:
                raise InputError(
                    f"{data.source}, row {example.row}: label {unseen[0]!r} does not occur in {train.source} "
                    f"({', '.join(train.labels[:10])}); correct it, or add examples of it to the training data"
                )


def natural_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Sort labels as people do: numbers by value, and numbers inside words too.

    >>> natural_order(["10", "2", "-1.5"]), natural_order(["week 10", "week 2"])
    (('-1.5', '2', '10'), ('week 2', 'week 10'))
    """
    names = sorted(set(labels))
    if all(_NUMBER.fullmatch(name) for name in names):
        return tuple(sorted(names, key=float))
    pieces = {name: re.split(r"0*([0-9]+)", name) for name in names}
    # Odd places hold digits, so that numbers are compared with numbers: the longer of two is the greater.
    return tuple(sorted(names, key=lambda name: [(len(p) * (i % 2), p) for i, p in enumerate(pieces[name])]))


def _digested(source: SourceLike) -> tuple[SourceLike, str]:
    checked = Source.of(source)
    if isinstance(checked.file, Path) and checked.file.is_file():
        return checked.file, digest_of(checked.file)
    # A stream or a pipe is read once.
    stored = _Named(checked.file.read_bytes() if isinstance(checked.file, Path) else checked.file.read())
    stored.name = checked.name
    return stored, hashlib.sha256(stored.getbuffer()).hexdigest()


class _Named(io.BytesIO):
    """Bytes under the name of the stream they were read from."""

    name: str


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
