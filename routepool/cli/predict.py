"""`routepool predict`: labels for texts, as many as there are, in memory that does not grow."""

from typing import Annotated

import typer

from routepool.cli import screen
from routepool.cli.options import Force, RunFolder, TextOptions, unfold


@unfold
def predict(
    run: RunFolder,
    *,
    prob: Annotated[bool, typer.Option("--prob", help="Add the probability of every label.")] = False,
    top: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Give the N likeliest labels.")] = 1,
    output_format: Annotated[
        str | None,
        typer.Option("--format", metavar="csv|jsonl", help="Output format; else by the name of --out, or csv."),
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Output file; else standard output.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep all columns of the input, the text too.")] = False,
    texts: TextOptions,
    force: Force = False,
) -> None:
    """Predict the label of every text: one row out for each row in.

    `routepool predict runs/reviews new.csv --out predicted.csv`

    `echo "A fine day out." | routepool predict runs/reviews`

    Rows hold the input's line number, the label and its probability, never the text unless --keep. Several labels are
    joined by |. With -k N, label_2 and probability_2 are the second likeliest, and so on. What the model did not read
    or know of the texts is said at the end, and in JSON lines by each row: unread and known are numbers of words.
    """
    # Here and not above: `routepool --help` must not wait for it.
    from routepool.scoring import RowLayout, predict_file  # noqa: PLC0415

    named = "jsonl" if str(out).lower().endswith((".jsonl", ".ndjson")) else "csv"
    layout = RowLayout(format=output_format or named, top=top, every_label=prob, keep=keep)
    watch = iter if out is None else screen.counted
    screen.note_left(predict_file(run, out=out, layout=layout, force=force, watch=watch, **vars(texts)))
