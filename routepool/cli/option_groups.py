"""Options that are asked for together: declared once, handed to a command as one value."""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, get_annotations, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from routepool.cli.options import (
    Aggregator,
    Dev,
    Device,
    EncoderName,
    Encoding,
    ExtraWords,
    Force,
    InitFrom,
    InputFormat,
    LabelColumn,
    LongestRow,
    MultiLabel,
    OnError,
    Out,
    PresetName,
    ScoreTest,
    Seed,
    SetAny,
    Tensorboard,
    Test,
    TextColumn,
    Texts,
    Threads,
    Vectors,
)
from routepool.cli.settings import Asked
from routepool.errors import InputError

if TYPE_CHECKING:
    from routepool.cli.lessons import Lesson
    from routepool.cli.preparing import Request


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How files are read."""

    text_column: TextColumn = None
    label_column: LabelColumn = None
    multi_label: MultiLabel = None
    on_error: OnError = None
    encoding: Encoding = "utf-8"
    longest_row: LongestRow = None

    def chosen(self) -> dict[str, Any]:
        """As `routepool.datasets` takes it; what was not asked for is left out."""
        asked = {
            "text_column": self.text_column,
            "label_column": self.label_column,
            "on_error": self.on_error,
            "encoding": self.encoding,
            "longest_row": self.longest_row,
            "multi_label": self.multi_label is not None,
            "separator": self.multi_label or None,
        }
        return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Texts without labels, and how they are read."""

    file: Texts = "-"
    input_format: InputFormat = None
    text_column: TextColumn = None
    on_error: OnError = None
    encoding: Encoding = "utf-8"
    longest_row: LongestRow = None

    def chosen(self) -> dict[str, Any]:
        """As `routepool.datasets` takes it."""
        return {
            "format": self.input_format or ("lines" if self.file == "-" else None),
            "text_column": self.text_column,
            "on_error": self.on_error,
            "encoding": self.encoding,
            "longest_row": self.longest_row,
        }


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What is trained, and where."""

    aggregator: Aggregator = None
    encoder: EncoderName = None
    vectors: Vectors = None
    extra_words: ExtraWords = None
    threads: Threads = None
    device: Device = "cpu"

    def __post_init__(self) -> None:
        """Refuse an empty name of vectors, which a shell makes of a variable that is not set."""
        if self.vectors is not None and not self.vectors.strip():
            raise InputError("--vectors wants a file, a name, or none, got an empty string")

    def settings(self, seed: int | None) -> dict[str, Any]:
        """Those of them that are settings, and the seed."""
        return {
            "aggregator": self.aggregator,
            "encoder": self.encoder,
            "extra_words": self.extra_words,
            "seed": seed,
        }


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Everything that a training can be told."""

    dev: Dev = None
    test: Test = None
    score_test: ScoreTest = False
    out: Out = None
    reading: ReadingOptions
    preset: PresetName = "default"
    set_: SetAny = None
    model: ModelOptions
    seed: Seed = None
    init_from: InitFrom = None
    tensorboard: Tensorboard = False
    force: Force = False

    def request(self, data: str, lesson: "Lesson | None" = None) -> "Request":
        """What to train on which data."""
        from routepool.cli.preparing import Request  # noqa: PLC0415  what trains needs torch

        return Request(
            data=data,
            dev=self.dev,
            test=self.test,
            score_test=self.score_test,
            out=self.out,
            reading=self.reading.chosen(),
            asked=Asked(preset=self.preset, options=self.model.settings(self.seed), assignments=self.set_ or ()),
            vectors=self.model.vectors,
            threads=self.model.threads,
            device=self.model.device,
            loggers=("tensorboard",) if self.tensorboard else (),
            init_from=self.init_from,
            force=self.force,
            lesson=lesson,
        )


def unfold(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes groups of options -> one that takes the options themselves, as typer wants them.

    >>> @unfold
    ... def show(name: str, *, reading: ReadingOptions) -> None:
    ...     print(name, reading.encoding)
    >>> asked = {"text_column": "b", "label_column": "c", "multi_label": None, "longest_row": None}
    >>> show(name="a", **asked, on_error="skip", encoding="latin-1")
    a latin-1
    """
    declared = list(signature(command, eval_str=True).parameters.values())
    groups = {each.name: each.annotation for each in declared if is_dataclass(each.annotation)}
    flat = [one for each in declared for one in _options(each)]

    @wraps(command)
    def unfolded(**values: Any) -> None:
        grouped = {name: _folded(group, values) for name, group in groups.items()}
        command(**grouped, **values)

    unfolded.__signature__ = Signature(flat)  # type: ignore[attr-defined]
    unfolded.__annotations__ = {one.name: one.annotation for one in flat}
    return unfolded


def _options(declared: Parameter) -> Iterator[Parameter]:
    """The parameter itself, or those that its group stands for."""
    group: Any = declared.annotation
    if not is_dataclass(group):
        yield declared.replace(kind=Parameter.KEYWORD_ONLY)
        return
    types = get_annotations(group, eval_str=True)  # type: ignore[arg-type]
    for item in fields(group):
        default = Parameter.empty if item.default is MISSING else item.default
        annotation = Annotated[types[item.name], _declared(item)] if item.metadata else types[item.name]
        yield from _options(Parameter(item.name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default))


def _declared(item: Field[Any]) -> Any:
    """The option of a field that says itself how it is typed."""
    how = item.metadata
    return typer.Option(how["flag"], metavar=how["metavar"], help=how["help"], min=how["least"])


def _folded(group: Any, values: dict[str, Any]) -> Any:
    """The group of its values, which are taken out of all."""
    types = get_annotations(group, eval_str=True)
    return group(**{name: _folded(of, values) if is_dataclass(of) else values.pop(name) for name, of in types.items()})
