"""DATA -> data sets: files and known sets, columns as asked, remembered or detected, splits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from routepool.datasets import (
    NAMED,
    Dataset,
    Parts,
    ReadOptions,
    check_trainable,
    load_dataset,
    load_named,
    options_for,
    read,
    skipped_lines,
    split,
)
from routepool.datasets.records import Columns
from routepool.errors import InputError
from routepool.printable import plural
from routepool.settings.declarations import SEPARATOR

if TYPE_CHECKING:  # looking data over must not wait for torch
    from routepool.runs.reporter import Reporter

Note = Callable[[str], None]  # takes a line about what was skipped or may be wrong
HELD, SEED = 0.1, 0  # of a dev set split off the training data: the same rows whatever the seed of training


class Sets(NamedTuple):
    """The sets of a run: it learns from the first, stops by the second and scores both dev and test at the end."""

    train: Dataset
    dev: Dataset
    test: Dataset | None
    was_split: bool

    @property
    def all(self) -> list[Dataset]:
        """Train and dev, and test if there is one."""
        return [self.train, self.dev, *([self.test] if self.test else [])]


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Where the sets of a run are and how they are read: enough to read them again.

    Args:
        data: a file, or the name of a known set.
        dev: a file; None for the known set's part, or a part split off.
        test: a file; None for none, or the known set's part if `score_test`.
        score_test: whether the test part of a known set may be looked at.
        folder: of the known sets.
        options: those of `ReadOptions` that were asked for.
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

    def absolute(self) -> Self:
        """The same files, found from any folder."""
        data = self.data if self.is_named else absolute(self.data)
        dev, test = self.dev and absolute(self.dev), self.test and absolute(self.test)
        return replace(self, data=data, dev=dev, test=test)


def absolute(name: str) -> str:
    """The same file or folder, found from any folder."""
    return str(Path(name).absolute())


def read_sets(source: DataSource, reporter: "Reporter") -> Sets:
    """Read every set of a run, and say what was detected, skipped and split."""
    if source.is_named:
        parts = _named(source, reporter)
        train, dev = parts.train, parts.dev
        test = parts.test if source.score_test else None
    else:
        train, dev, test = _read(_file(source.data), None, source, reporter), None, None
    columns = _kept(train.columns)
    if source.dev:
        dev = _read(source.dev, columns, source, reporter)
    if source.test:
        test = _read(source.test, columns, source, reporter)
    sets = _split(train, test, reporter) if dev is None else Sets(train, dev, test, False)
    check_trainable(*sets.all)
    return sets


def _split(train: Dataset, test: Dataset | None, reporter: "Reporter") -> Sets:
    check_trainable(train)
    parts = split(train.examples, held=HELD, seed=SEED)
    if not parts.held:
        raise InputError(f"{train.source}: too few different texts to split a dev set off; give one with --dev")
    sets = Sets(train.select(parts.kept), train.select(parts.held), test, True)
    reporter.say(f"dev set: {len(parts.held)} of {len(train.examples)} examples, split off by label; --dev gives one")
    return sets


def remembered(source: DataSource, sets: Sets) -> dict[str, Any] | None:
    """The columns of the data, for the model to remember; None for a known set, whose columns are not the user's."""
    if source.is_named:
        return None
    separator = {"separator": source.options.get("separator", SEPARATOR)} if sets.train.multi_label else {}
    return _kept(sets.train.columns) | separator


def check_labels(data: Dataset, labels: Sequence[str]) -> None:
    """Raise InputError for a label that a model does not know, with its file and row."""
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
    """A set to check, flaws included, and the set to compare it with."""
    if data in NAMED.names() and against in (None, "dev", "test"):
        parts = load_named(data)
        return parts.train, parts.test if against == "test" else parts.dev
    lenient = _read_options({**options, "on_error": "skip"})
    first = load_part(data, "train", lenient)
    return first, load_dataset(against, **lenient) if against else None


def load_texts(data: str, *, folder: str | None = None, note: Note | None = None, **options: Any) -> list[str]:
    """The texts of a file, labelled or not, or of a known set's training part; `folder` is that of the known sets."""
    if data in NAMED.names():
        return [example.text for example in load_named(data, folder=folder).train.examples]
    reader = read(_file(data), **_read_options({**options, "labels": False}))
    texts = [example.text for example in reader]
    for line in skipped_lines(reader) if note else ():
        note(line)  # type: ignore[misc]
    return texts


def _read(file: str, columns: Mapping[str, Any] | None, source: DataSource, reporter: "Reporter") -> Dataset:
    options = source.options if columns is None else options_for(file, columns, **source.options)
    data = load_dataset(file, **_read_options(options))
    numbers = f"{plural(len(data.examples), 'example')}, {plural(len(data.labels), 'label')}"
    reporter.say(f"{data.source}: {numbers}; {data.columns.why}")
    for line in skipped_lines(data):
        reporter.note(line)
    return data


def _named(source: DataSource, reporter: "Reporter") -> Parts:
    given = [name for name in ("text_column", "label_column", "multi_label") if source.options.get(name)]
    if given and not (source.dev or source.test):
        raise InputError(f"{source.data} is a known set with columns of its own; drop {given[0].replace('_', '-')}")
    parts = load_named(source.data, folder=source.folder)
    reporter.say(f"{source.data}: {len(parts.train.examples)} examples to train on, {len(parts.dev.examples)} of dev")
    return parts


def _file(name: str) -> str:
    if name == "-":
        raise InputError("standard input cannot be trained on, a stopped run could not read it again; use a file")
    if not Path(name).exists() and not Path(name).suffix:
        NAMED[name]  # raises, and lists the known sets
    return name


def _read_options(options: Mapping[str, Any]) -> ReadOptions:
    return cast(ReadOptions, {name: value for name, value in options.items() if value is not None})


def _kept(columns: Columns) -> dict[str, Any]:
    """As a model keeps them."""
    return {"text": columns.text, "label": columns.label, "header": columns.header}
