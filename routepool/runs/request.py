"""The options of a run and their help, declared once for `routepool.train` and the command line.

Imports nothing heavy: `routepool --help` reads it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from os import PathLike
from typing import Any

from routepool.settings import GROUPS

AnyPath = str | PathLike[str]


def option(default: Any, help: str, *, metavar: str = "", flag: str = "", least: float | None = None) -> Any:
    """Declare a field that is an option of the command line: its default, its help and its form."""
    metadata = {"help": help, "metavar": metavar, "flag": flag, "least": least}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def help_of(setting: str) -> str:
    """The help of a setting, from its declaration.

    >>> help_of("seed")
    'Seed of initial weights, batches and dropout.'
    """
    declared = {item.name: str(item.metadata["help"]) for group in GROUPS.values() for item in fields(group)}
    text = declared[setting]
    return f"{text[0].upper()}{text[1:]}."


@dataclass(frozen=True)
class Request:
    """What a user asks of a new run."""

    data: AnyPath = ""  # a file, or the name of a known set
    _: KW_ONLY
    dev: AnyPath | None = option(None, "Decides when to stop; else a part of DATA.", metavar="FILE")
    test: AnyPath | None = option(None, "Scored once, after training.", metavar="FILE")
    score_test: bool = option(False, "Score the test part of a known set.")
    out: AnyPath | None = option(None, "The model's folder; else runs/DATA-TIME.", metavar="RUN")
    text_column: str | None = option(None, "Column of the text: a name, or a number from 1.", metavar="C")
    label_column: str | None = option(None, "Column of the label: a name, or a number from 1.", metavar="C")
    multi_label: str | bool | None = option(
        None, "A text may have any number of labels, joined by SEP, else |.", metavar="[SEP]"
    )
    on_error: str | None = option(
        None,
        "Rows that cannot be used: stop at the first, or skip and list them. Else empty labelled texts and "
        "repeated headers are left out and counted, and any other row stops.",
        metavar="stop|skip",
    )
    encoding: str = option("utf-8", "Of the file, such as latin-1; a byte order mark wins.")
    longest_row: int | None = option(None, "Characters of a row, at most; else 6,000,000.", metavar="N", least=1)
    preset: AnyPath = option(
        "default", "Settings that belong together: routepool presets lists them.", metavar="NAME|FILE.toml"
    )
    settings: Mapping[str, Any] = option(
        {},
        "Any setting, many times, such as epochs=10 or capsules=7: see routepool presets NAME.",
        metavar="KEY=VALUE",
        flag="--set",
    )
    aggregator: str | None = option(None, help_of("aggregator"), metavar="NAME")
    encoder: str | None = option(None, help_of("encoder"), metavar="NAME")
    vectors: AnyPath | None = option(
        None, "Word vectors; else wordllama's if installed, else random.", metavar="FILE[,FILE]|none"
    )
    extra_words: int | None = option(None, help_of("extra_words"), metavar="N")
    threads: int | None = option(None, "Processor threads.", metavar="N", least=1)
    device: str = option("cpu", "cpu, cuda, cuda:1, mps.", metavar="D")
    seed: int | None = option(None, help_of("seed"), metavar="N")
    init_from: AnyPath | None = option(
        None,
        "Go on with a trained model, on new data of its labels; of its settings dropout may change.",
        metavar="RUN",
    )
    tensorboard: bool = option(False, "Curves for TensorBoard too, in RUN/logs; [tensorboard] installs it.")
    force: bool = option(False, "Replace what is there.")
    teachers: Sequence[AnyPath] = ()  # folders of models that a student learns to answer like
    unlabelled: AnyPath | None = None  # more texts for them to answer: a file, or a known set
