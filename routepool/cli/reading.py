"""DATA on the command line -> data sets: files and known sets, columns as asked, remembered or guessed, splits."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from routepool.cli import screen
from routepool.datasets import (
    NAMED,
    Dataset,
    Parts,
    ReadOptions,
    check_trainable,
    load_dataset,
    load_named,
    read,
    split,
)
from routepool.datasets.sources import FORMAT_OF, PLAIN, suffix_of
from routepool.errors import InputError

HELD, SEED = 0.1, 0  # of a dev set cut from the training data: the same rows whatever the seed of training
_OWN_COLUMNS = {"lines", "fasttext", "tang"}  # formats whose columns are what they are


class Material(NamedTuple):
    """The sets of a training run."""

    train: Dataset
    dev: Dataset
    test: Dataset | None
    was_split: bool


@dataclass(frozen=True, kw_only=True)
class DataOrder:
    """Where the sets of a run are and how they are read: all that is needed to read them again.

    Args:
        data: a file, or the name of a known set.
        dev: a file; None for the known set's part, or a part split off.
        test: a file; None for none, or the known set's part if `score_test`.
        score_test: whether the test part of a known set may be looked at.
        folder: of the known sets.
        options: how files are read, those of `ReadOptions` that were asked for.
    """

    data: str
    dev: str | None = None
    test: str | None = None
    score_test: bool = False
    folder: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        """A known set; a file of that name is written `./name`."""
        return self.data in NAMED.names()

    @property
    def title(self) -> str:
        """A short name for folders and headings."""
        return self.data if self.is_named else Path(self.data).name.split(".")[0] or "data"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return cls(**values)


def load_material(order: DataOrder) -> Material:
    """Read every set of a run; what was guessed, skipped and split is said."""
    if order.is_named:
        parts = _named(order)
        train, dev = parts.train, parts.dev
        test = parts.test if order.score_test else None
    else:
        train, dev, test = _told(load_dataset(_file(order.data), **_read_options(order.options))), None, None
    columns = remembered(train)
    if order.dev:
        dev = _told(load_dataset(order.dev, **options_for(order.dev, columns, **order.options)))
    if order.test:
        test = _told(load_dataset(order.test, **options_for(order.test, columns, **order.options)))
    if dev is not None:
        return Material(train, dev, test, False)
    check_trainable(train)
    parts_of_train = split(train.examples, held=HELD, seed=SEED)
    if not parts_of_train.held:
        raise InputError(f"{train.source}: too few different texts to split a dev set off; give one with --dev")
    kept, held = train.select(parts_of_train.kept), train.select(parts_of_train.held)
    screen.say(f"dev set: {len(held.examples)} of {len(train.examples)} examples, split off by label; --dev gives one")
    return Material(kept, held, test, True)


def remembered(data: Dataset) -> dict[str, Any]:
    """The columns of a data set, as a model keeps them."""
    return {"text": data.columns.text, "label": data.columns.label, "header": data.columns.header}


def options_for(source: str, columns: Mapping[str, Any] | None, **asked: Any) -> ReadOptions:
    """How to read a file of a model's kind: the columns it was trained on, unless others are asked for."""
    options = {name: value for name, value in asked.items() if value is not None}
    if columns and not _has_own_columns(source, options.get("format")):
        names = [("text_column", "text")] + ([("label_column", "label")] if options.get("labels", True) else [])
        if not any(name in options for name, _ in names):
            options["header"] = columns.get("header")
        for name, key in names:
            options.setdefault(name, columns.get(key))
    return _read_options(options)


def check_labels(data: Dataset, labels: Sequence[str]) -> None:
    """Refuse labels that a model does not know, with file and row."""
    known = set(labels)
    for example in data.examples:
        for label in example.labels or ():
            if label not in known:
                raise InputError(
                    f"{data.source}, row {example.row}: label {label!r} is none of the model's "
                    f"({', '.join(labels[:10])}); correct it, or train again with examples of it"
                )


def load_part(data: str, part: str, options: ReadOptions) -> Dataset:
    """A file, or one part of a known set."""
    if data in NAMED.names():
        chosen: Dataset = getattr(load_named(data), part)
        return chosen
    return load_dataset(_file(data), **options)


def load_pair(data: str, against: str | None, **options: Any) -> tuple[Dataset, Dataset | None]:
    """A set to look over, flaws included, and the one to compare it with."""
    if data in NAMED.names() and against in (None, "dev", "test"):
        parts = load_named(data)
        return parts.train, parts.test if against == "test" else parts.dev
    lenient = _read_options({**options, "on_error": "skip"})
    first = load_part(data, "train", lenient)
    return first, load_dataset(against, **lenient) if against else None


def load_texts(data: str, *, folder: str | None = None, tell: bool = False, **options: Any) -> list[str]:
    """The texts of a file, labelled or not, or of a known set's training part, in the folder of the known sets."""
    if data in NAMED.names():
        return [example.text for example in load_named(data, folder=folder).train.examples]
    reader = read(_file(data), **_read_options({**options, "labels": False}))
    texts = [example.text for example in reader]
    if tell:
        screen.list_skipped(reader)
    return texts


def _told(data: Dataset) -> Dataset:
    screen.say(f"{data.source}: {len(data.examples)} examples, {len(data.labels)} labels; {data.columns.why}")
    screen.list_skipped(data)
    return data


def _named(order: DataOrder) -> Parts:
    given = [name for name in ("text_column", "label_column", "multi_label") if order.options.get(name)]
    if given and not (order.dev or order.test):
        raise InputError(f"{order.data} is a known set with columns of its own; drop {given[0].replace('_', '-')}")
    parts = load_named(order.data, folder=order.folder)
    screen.say(f"{order.data}: {len(parts.train.examples)} examples to train on, {len(parts.dev.examples)} of dev")
    return parts


def _file(name: str) -> str:
    if name == "-":
        raise InputError("standard input cannot be trained on, a stopped run could not read it again; use a file")
    if not Path(name).exists() and not Path(name).suffix:
        NAMED[name]  # raises, and lists the known sets
    return name


def _read_options(options: Mapping[str, Any]) -> ReadOptions:
    return cast(ReadOptions, {name: value for name, value in options.items() if value is not None})


def _has_own_columns(source: str, name: str | None) -> bool:
    suffix = suffix_of(source)
    return (name or FORMAT_OF.get(suffix, "lines" if suffix in PLAIN else "")) in _OWN_COLUMNS
