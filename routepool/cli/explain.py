"""`routepool explain`: which word went where, how much each mattered, and whether that can be believed."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from routepool.cli.evaluate import PARTS
from routepool.cli.options import (
    AsJson,
    Encoding,
    Force,
    InputFormat,
    LabelColumn,
    LongestRow,
    OnError,
    RunFolder,
    TextColumn,
    unfold,
)
from routepool.errors import InputError


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What is asked of a model, and where the answer goes."""

    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="How importance is measured; a wrong name lists them. With --audit, only this method."
        ),
    ] = None
    label: Annotated[str | None, typer.Option(metavar="L", help="What words speak for; else the likeliest.")] = None
    iterations: Annotated[bool, typer.Option("--iterations", help="Show every round of routing.")] = False
    out: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Write .html, .json, .jsonl, .png or .svg instead; may be given again."),
    ] = None
    capsules: Annotated[
        str | None, typer.Option(metavar="DATA", help="Say what the capsules hold, on a labelled file or known set.")
    ] = None
    audit: Annotated[str | None, typer.Option(metavar="DATA", help="Test the methods: remove the words they name.")] = (
        None
    )
    one_iteration: Annotated[
        str | None, typer.Option(metavar="RUN", help="With --capsules: a model with one iteration, to compare.")
    ] = None
    projected_mean: Annotated[
        str | None, typer.Option(metavar="RUN", help="With --capsules: one with a single large capsule, to compare.")
    ] = None
    texts: Annotated[int, typer.Option(metavar="N", min=1, help="Most texts of DATA, evenly spread.")] = 200
    part: Annotated[str, typer.Option(metavar="train|dev|test", help="Which part of a known set.")] = "dev"
    as_json: AsJson = False

    def __post_init__(self) -> None:
        """Refuse options that do not go together."""
        if self.capsules and self.audit:
            raise InputError("--capsules and --audit are two questions; ask one at a time")
        if self.part not in PARTS:
            raise InputError(f"--part must be one of {', '.join(PARTS)}, got {self.part!r}")
        if (self.one_iteration or self.projected_mean) and not self.capsules:
            raise InputError("--one-iteration and --projected-mean are compared with --capsules; give it a DATA")


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How the texts, or the labelled DATA, are read."""

    input_format: InputFormat = None
    text_column: TextColumn = None
    label_column: LabelColumn = None
    on_error: OnError = None
    encoding: Encoding = "utf-8"
    longest_row: LongestRow = None

    def chosen(self, *, labelled: bool) -> dict[str, Any]:
        """As `routepool.datasets` takes it: a format for texts, a label column for DATA."""
        values = asdict(self)
        form, column = values.pop("input_format"), values.pop("label_column")
        return values | ({"label_column": column} if labelled else {"format": form})


@unfold
def explain(
    run: RunFolder,
    text: Annotated[
        str, typer.Argument(metavar="TEXT|FILE|-", help="A text, or a file of texts; - or nothing is standard input.")
    ] = "-",
    *,
    question: QuestionOptions,
    reading: FileOptions,
    force: Force = False,
) -> None:
    """Show what a prediction rests on: every word's score, and which capsule it went to.

    `routepool explain runs/reviews "The plot is thin, but the leads are a joy."`

    `routepool explain runs/reviews new.csv --out why.html`

    `routepool explain runs/reviews --audit held-out.csv --out curves.png`

    `routepool explain runs/reviews --capsules held-out.csv`

    A coupling says where a word went, a score how much it mattered. DATA is a set the model was not trained on.
    """
    # Here and not above: `routepool --help` must not wait for them.
    from routepool.cli.evidence import audit_methods, explain_texts, show_capsules  # noqa: PLC0415

    if question.audit:
        audit_methods(run, question, force=force, **reading.chosen(labelled=True))
    elif question.capsules:
        show_capsules(run, question, force=force, **reading.chosen(labelled=True))
    else:
        explain_texts(run, text, question, force=force, **reading.chosen(labelled=False))
