"""`--plugin MODULE`, which every command takes: the classes of a module of the user's can be named."""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from routepool.registry import import_plugin

Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE",
        help="Import a module of yours first, whose registered classes can then be named; may come several times.",
    ),
]


def with_plugins(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with the option `--plugin`."""
    option = Parameter("plugin", Parameter.KEYWORD_ONLY, default=None, annotation=Plugins)
    declared = signature(command, eval_str=True)

    @wraps(command)
    def plugged(*, plugin: list[str] | None = None, **values: Any) -> None:
        if plugin:
            sys.path.append(str(Path.cwd()))  # a module in the folder that the user is in need not be installed
        for module in plugin or ():
            import_plugin(module)
        command(**values)

    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in declared.parameters.values()]
    plugged.__signature__ = declared.replace(parameters=[*parameters, option])  # type: ignore[attr-defined]
    plugged.__annotations__ = {each.name: each.annotation for each in (*parameters, option)}
    return plugged
