"""`routepool distill`: trained models and texts -> a smaller model that answers as they do."""

from dataclasses import replace
from typing import Annotated

import typer

from routepool.cli.options import unfold
from routepool.errors import InputError
from routepool.runs.request import Request


@unfold
def distill(
    teacher: Annotated[
        str,
        typer.Argument(metavar="TEACHER[,TEACHER]", help="Folders of trained models; several are averaged."),
    ],
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file of texts with its labels, or a known set.")],
    unlabelled: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="More texts for the teachers to answer: a file, or a known set."),
    ] = None,
    *,
    request: Request,
) -> None:
    """Train a small model to answer as larger ones do, on labelled texts and any number of texts without labels.

    `routepool distill runs/large reviews.csv --unlabelled more-reviews.txt --out runs/small`

    `routepool distill runs/seed-0,runs/seed-1 sst2 --unlabelled sentences.txt --set label_weight=0.2`

    The student learns the teachers' logits by squared error; the labels of dev decide its best epoch. Answers are
    computed once and kept. FILE has a text a line, or the columns of DATA; texts that are in DATA, its dev or its test
    set are left out. A stopped run goes on with `routepool train --resume RUN`.
    """
    teachers = tuple(folder.strip() for folder in teacher.split(","))
    if not all(teachers):
        raise InputError(f"TEACHER wants model folders, with a comma between two, got {teacher!r}")
    # Here and not above: what trains needs torch.
    from routepool.cli.progress import ScreenReporter  # noqa: PLC0415
    from routepool.runs.run import start_run  # noqa: PLC0415

    start_run(replace(request, data=data, teachers=teachers, unlabelled=unlabelled), ScreenReporter())
