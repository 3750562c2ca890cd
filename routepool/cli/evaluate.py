"""`routepool evaluate`: how good a model is on labelled texts."""

import json
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from routepool.cli import screen
from routepool.cli.option_groups import unfold
from routepool.cli.options import AsJson, Encoding, LabelColumn, LongestRow, OnError, RunFolder, TextColumn
from routepool.errors import InputError

PARTS = ("train", "dev", "test")


@dataclass(frozen=True, kw_only=True)
class LabelledOptions:
    """How a file of a trained model's kind is read."""

    text_column: TextColumn = None
    label_column: LabelColumn = None
    on_error: OnError = None
    encoding: Encoding = "utf-8"
    longest_row: LongestRow = None


@unfold
def evaluate(
    run: RunFolder,
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file of labelled texts, or a known set.")],
    *,
    as_json: AsJson = False,
    part: Annotated[str, typer.Option(metavar="train|dev|test", help="Which part of a known set.")] = "dev",
    reading: LabelledOptions,
) -> None:
    """Score a model on labelled texts: accuracy with its interval, F1, every class, confusion, calibration.

    `routepool evaluate runs/reviews labelled.csv`

    `routepool evaluate runs/sst2 sst2 --part test --json`

    The columns are those of the training data unless others are named.
    """
    if part not in PARTS:
        raise InputError(f"--part must be one of {', '.join(PARTS)}, got {part!r}")
    # Here and not above: `routepool --help` must not wait for them.
    from routepool.cli import report  # noqa: PLC0415
    from routepool.cli.reading import check_labels, load_part  # noqa: PLC0415
    from routepool.datasets.remembered import options_for  # noqa: PLC0415
    from routepool.scoring.predictor import load  # noqa: PLC0415

    model = load(run)
    options = options_for(data, model.columns, **asdict(reading), multi_label=model.multi_label)
    examples = load_part(data, part, options)
    screen.list_skipped(examples)
    check_labels(examples, model.labels)
    scores = report.scores_of(model, examples)
    if as_json:
        screen.say(json.dumps(scores.to_dict()))
    else:
        report.show(scores)
