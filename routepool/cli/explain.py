"""`routepool explain`: which word went where, how much each mattered, and whether that can be believed."""

from typing import Annotated

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
)
from routepool.errors import InputError


def explain(
    run: RunFolder,
    text: Annotated[
        str, typer.Argument(metavar="TEXT|FILE|-", help="A text, or a file of texts; - or nothing is standard input.")
    ] = "-",
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="How importance is measured; a wrong name lists them. With --audit, only it."
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="L", help="What words speak for; else the likeliest.")] = None,
    iterations: Annotated[bool, typer.Option("--iterations", help="Show every round of routing.")] = False,
    out: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Write .html, .json, .jsonl, .png or .svg instead; may be given again."),
    ] = None,
    capsules: Annotated[
        str | None, typer.Option(metavar="DATA", help="Say what the capsules hold, on a labelled file or known set.")
    ] = None,
    audit: Annotated[
        str | None, typer.Option(metavar="DATA", help="Test the methods: take away the words they name.")
    ] = None,
    one_iteration: Annotated[
        str | None, typer.Option(metavar="RUN", help="With --capsules: a model with one iteration, to compare.")
    ] = None,
    projected_mean: Annotated[
        str | None, typer.Option(metavar="RUN", help="With --capsules: one with a single large capsule, to compare.")
    ] = None,
    texts: Annotated[int, typer.Option(metavar="N", min=1, help="Most texts of DATA, evenly spread.")] = 200,
    part: Annotated[str, typer.Option(metavar="train|dev|test", help="Which part of a known set.")] = "dev",
    as_json: AsJson = False,
    input_format: InputFormat = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    on_error: OnError = None,
    encoding: Encoding = "utf-8",
    longest_row: LongestRow = None,
    force: Force = False,
) -> None:
    """Show what a prediction rests on: every word's score, and which capsule it went to.

    `routepool explain runs/reviews "The plot is thin, but the leads are a joy."`

    `routepool explain runs/reviews new.csv --out why.html`

    `routepool explain runs/reviews --audit held-out.csv --out curves.png`

    `routepool explain runs/reviews --capsules held-out.csv`

    A coupling says where a word went, a score how much it mattered. DATA is a set the model was not trained on.
    """
    if capsules and audit:
        raise InputError("--capsules and --audit are two questions; ask one at a time")
    if part not in PARTS:
        raise InputError(f"--part must be one of {', '.join(PARTS)}, got {part!r}")
    if (one_iteration or projected_mean) and not capsules:
        raise InputError("--one-iteration and --projected-mean are compared with --capsules; give it a DATA")
    # Here and not above: `routepool --help` must not wait for them.
    from routepool.cli.explaining import Question, audit_methods, explain_texts, show_capsules  # noqa: PLC0415

    reading = {"text_column": text_column, "on_error": on_error, "encoding": encoding, "longest_row": longest_row}
    question = Question(run=run, out=tuple(out or ()), as_json=as_json, force=force, method=method)
    if audit:
        audit_methods(question, audit, part=part, most=texts, **reading, label_column=label_column)
    elif capsules:
        controls = {"one_iteration": one_iteration, "projected_mean": projected_mean}
        show_capsules(question, capsules, controls, part=part, most=texts, **reading, label_column=label_column)
    else:
        explain_texts(question, text, label=label, iterations=iterations, **reading, format=input_format)
