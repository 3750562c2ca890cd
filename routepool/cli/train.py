"""`routepool train`: labelled texts -> a model folder."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from routepool.cli.options import Data, unfold
from routepool.runs.request import Request


@unfold
def train(
    data: Data = None,
    *,
    request: Request,
    resume: Annotated[str | None, typer.Option(metavar="RUN", help="Resume a stopped run; needs nothing else.")] = None,
) -> None:
    """Train a model on a file of labelled texts.

    `routepool train reviews.csv --text-column review --label-column stars`

    `routepool train sst2 --preset paper --vectors glove.6B.300d.txt --set epochs=10`

    `routepool train --resume runs/reviews-20260102-101500`

    The file is csv, tsv, jsonl or fastText's format, plain or compressed; columns are detected, or named with
    --text-column and --label-column. The best model on dev is kept. A stopped run loses at most one epoch. --force
    replaces a model or a run made by routepool, and nothing else.
    """
    if (data is None) == (resume is None):
        raise typer.BadParameter("give either DATA, a file or a known set, or --resume RUN")
    # Here and not above: what trains needs torch.
    from routepool.cli.progress import ScreenReporter  # noqa: PLC0415
    from routepool.runs.run import resume_run, start_run  # noqa: PLC0415

    if resume is not None:
        resume_run(Path(resume), ScreenReporter())
    else:
        start_run(replace(request, data=data or ""), ScreenReporter())
