"""The options of all commands, each with one name and one help; those of a request are made from its declaration."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from routepool.registry import import_plugin
from routepool.runs.request import Request
from routepool.settings.choosing import parse_assignments
from routepool.settings.declarations import SEPARATOR


def declared(item: Field[Any]) -> Any:
    """The option of a field that was declared with `routepool.runs.request.option`."""
    how = item.metadata
    flag = how["flag"] or f"--{item.name.replace('_', '-')}"
    shown = bool(item.default) and item.default is not MISSING
    return typer.Option(flag, metavar=how["metavar"] or None, help=how["help"], min=how["least"], show_default=shown)


_OF_REQUEST = {item.name: declared(item) for item in fields(Request) if "help" in item.metadata}

TextColumn = Annotated[str | None, _OF_REQUEST["text_column"]]
LabelColumn = Annotated[str | None, _OF_REQUEST["label_column"]]
OnError = Annotated[str | None, _OF_REQUEST["on_error"]]
Encoding = Annotated[str, _OF_REQUEST["encoding"]]
LongestRow = Annotated[int | None, _OF_REQUEST["longest_row"]]
MultiLabel = Annotated[str | None, _OF_REQUEST["multi_label"]]
Force = Annotated[bool, _OF_REQUEST["force"]]
Data = Annotated[
    str | None,
    typer.Argument(metavar="DATA", help="A file of labelled texts, or a known set: routepool data list."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, with scores as fractions.")]
Texts = Annotated[str, typer.Argument(metavar="FILE|-", help="Texts; - or nothing is standard input.")]
InputFormat = Annotated[
    str | None,
    typer.Option(
        "--input-format",
        metavar="csv|tsv|jsonl|lines",
        help="Format of the input; else by the file's name, lines for a stream.",
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE",
        help="Import a module of yours first, whose registered classes can then be named; may come several times.",
    ),
]
RunFolder = Annotated[str, typer.Argument(metavar="RUN", help="The folder of a trained model.")]


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Texts without labels, and how they are read: arguments of `predict_file` and `encode_file`."""

    source: Texts = "-"
    format: InputFormat = None
    text_column: TextColumn = None
    on_error: OnError = None
    encoding: Encoding = "utf-8"
    longest_row: LongestRow = None


def unfold(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes dataclasses of options -> one that takes the options themselves, as typer wants them.

    It also takes `--plugin`.

    >>> @unfold
    ... def show(data: str, *, request: Request) -> None:
    ...     print(data, request.settings, request.multi_label)
    >>> parameters = signature(show).parameters
    >>> asked = {name: parameter.default for name, parameter in parameters.items()}
    >>> show(**asked | {"data": "a.csv", "settings": ["epochs=3"]})
    a.csv {'epochs': '3'} None
    """
    own = list(signature(command, eval_str=True).parameters.values())
    groups = {each.name: each.annotation for each in own if is_dataclass(each.annotation)}
    plugins = Parameter("plugin", Parameter.KEYWORD_ONLY, default=None, annotation=Plugins)
    flat = [*(one for each in own for one in _options(each)), plugins]

    @wraps(command)
    def unfolded(*, plugin: list[str] | None = None, **values: Any) -> None:
        if plugin:
            sys.path.append(str(Path.cwd()))  # a module in the current folder need not be installed
        for module in plugin or ():
            import_plugin(module)
        grouped = {name: _grouped(group, values) for name, group in groups.items()}
        command(**grouped, **values)

    unfolded.__signature__ = Signature(flat)  # type: ignore[attr-defined]
    unfolded.__annotations__ = {one.name: one.annotation for one in flat}
    return unfolded


def _options(parameter: Parameter) -> Iterator[Parameter]:
    """The parameter itself, or the options that its dataclass stands for."""
    if not is_dataclass(parameter.annotation):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    for item in _typed_fields(parameter.annotation):
        annotation, default = item.type, item.default
        if "help" in item.metadata:
            annotation, default = Annotated[_type_of(item), declared(item)], None if default is MISSING else default
        yield Parameter(item.name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _typed_fields(group: Any) -> list[Field[Any]]:
    """Those that are typed on the command line: declared as options, or annotated for typer."""
    return [item for item in fields(group) if "help" in item.metadata or hasattr(item.type, "__metadata__")]


def _type_of(item: Field[Any]) -> Any:
    """What typer makes of what is typed: numbers, yes or no, a list of KEY=VALUE, else a string."""
    if item.default_factory is not MISSING:
        return list[str] | None
    kinds = get_args(item.type) or (item.type,)
    kind: Any = str if str in kinds else kinds[0]
    return kind if item.default is not None else kind | None


def _grouped(group: Any, values: dict[str, Any]) -> Any:
    """The dataclass of its values, which are taken out of all."""
    taken = {item.name: values.pop(item.name) for item in _typed_fields(group)}
    if "settings" in taken:
        taken["settings"] = parse_assignments(taken["settings"] or ())
    return group(**taken)


class MultiLabelCommand(TyperCommand):
    """A command whose `--multi-label` may stand alone: what follows is its separator only if it looks like one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a lone `--multi-label` its usual separator."""
        for place, argument in enumerate(args):
            following = args[place + 1] if place + 1 < len(args) else ""
            looks_like_one = following and following[0] != "-" and not any(map(str.isalnum, following))
            if argument == "--multi-label" and not looks_like_one:
                args = [*args[:place], f"--multi-label={SEPARATOR}", *args[place + 1 :]]
        return super().parse_args(ctx, args)
