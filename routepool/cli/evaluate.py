"""`routepool evaluate`: how good a model is on labelled texts."""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from routepool.cli import screen
from routepool.cli.options import AsJson, Encoding, LabelColumn, LongestRow, OnError, RunFolder, TextColumn, unfold
from routepool.errors import InputError

if TYPE_CHECKING:
    from routepool.scoring.metrics import Evaluation

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
    from routepool.datasets import options_for  # noqa: PLC0415
    from routepool.runs.scores import scores_of  # noqa: PLC0415
    from routepool.runs.sets import check_labels, load_part  # noqa: PLC0415
    from routepool.scoring.predictor import load  # noqa: PLC0415

    model = load(run)
    options = options_for(data, model.columns, **asdict(reading), multi_label=model.multi_label)
    examples = load_part(data, part, options)
    screen.list_skipped(examples)
    check_labels(examples, model.labels)
    scores = scores_of(model, examples, screen.note)
    if as_json:
        screen.say(json.dumps(scores.to_dict()))
    else:
        _show(scores)


def _show(scores: "Evaluation") -> None:
    """All scores as tables."""
    from routepool.runs.scores import MOST_CONFUSED, summary  # noqa: PLC0415

    screen.say(f"{scores.examples} examples: {summary(scores)}")
    rows = [
        (one.label, f"{one.precision:.4f}", f"{one.recall:.4f}", f"{one.f1:.4f}", one.support) for one in scores.classes
    ]
    screen.table("", ("label", "precision", "recall", "F1", "examples"), rows)
    if scores.confusion and len(scores.classes) <= MOST_CONFUSED:
        labels = [one.label for one in scores.classes]
        counts = [(label, *row) for label, row in zip(labels, scores.confusion, strict=True)]
        screen.table("confusion: rows are the true labels", ("", *labels), counts)
