"""`routepool encode`: the vectors of texts, as many as there are, in memory that does not grow."""

from typing import Annotated

import typer

from routepool.cli import screen
from routepool.cli.options import Force, RunFolder, TextOptions, unfold


@unfold
def encode(
    run: RunFolder,
    *,
    out: Annotated[str, typer.Option(metavar="FILE", help="Output file, named .npy, .parquet or .safetensors.")],
    capsules: Annotated[
        bool, typer.Option("--capsules", help="Each text as its capsules (texts, capsules, size), not their join.")
    ] = False,
    texts: TextOptions,
    force: Force = False,
) -> None:
    """Write the vector of every text: one row out for each row in.

    `routepool encode runs/reviews new.csv --out vectors.npy`

    `routepool encode runs/reviews new.csv --out vectors.parquet --capsules`

    The vector is the one that the last aggregator makes of a text, before the head decides: for routing, its capsules
    side by side. Numbers are 32-bit floats. A Parquet file has the input's line number beside each vector, which tells
    the rows apart where --on-error skip left some out.
    """
    # Here and not above: `routepool --help` must not wait for it.
    from routepool.scoring import encode_file  # noqa: PLC0415

    done = encode_file(run, out=out, capsules=capsules, force=force, watch=screen.counted, **vars(texts))
    screen.note_left(done)
