"""`routepool train`: a file of labelled texts -> a model folder."""

from typing import Annotated

import typer

from routepool.cli.options import (
    Aggregator,
    Data,
    Dev,
    Device,
    EncoderName,
    Encoding,
    ExtraWords,
    Force,
    InitFrom,
    LabelColumn,
    MultiLabel,
    OnError,
    Out,
    PresetName,
    ScoreTest,
    Seed,
    SetAny,
    Tensorboard,
    Test,
    TextColumn,
    Threads,
    Vectors,
    check_vectors,
    reading_of,
)
from routepool.cli.settings import Asked


def train(
    data: Data = None,
    dev: Dev = None,
    test: Test = None,
    score_test: ScoreTest = False,
    out: Out = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    preset: PresetName = "default",
    aggregator: Aggregator = None,
    encoder: EncoderName = None,
    vectors: Vectors = None,
    extra_words: ExtraWords = None,
    multi_label: MultiLabel = None,
    on_error: OnError = "raise",
    encoding: Encoding = "utf-8",
    seed: Seed = None,
    threads: Threads = None,
    device: Device = "cpu",
    tensorboard: Tensorboard = False,
    set_: SetAny = None,
    init_from: InitFrom = None,
    force: Force = False,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Take up a run that was stopped; needs nothing else.")
    ] = None,
) -> None:
    """Train a model on a file of labelled texts.

    `routepool train reviews.csv --text-column review --label-column stars`

    `routepool train sst2 --preset paper --vectors glove.6B.300d.txt --set epochs=10`

    `routepool train --resume runs/reviews-20260102-101500`

    The file is csv, tsv, jsonl or fastText's format, plain or compressed; columns are found by their names or told.
    The best model on dev is kept. A stopped run loses at most one epoch.
    """
    if (data is None) == (resume is None):
        raise typer.BadParameter("give either DATA, a file or a known set, or --resume RUN")
    check_vectors(vectors)
    # Here and not above: what trains needs torch.
    from routepool.cli.preparing import Request  # noqa: PLC0415
    from routepool.cli.training_run import resume_run, start_run  # noqa: PLC0415

    if data is None:
        resume_run(str(resume))
        return
    reading = reading_of(
        text_column=text_column,
        label_column=label_column,
        on_error=on_error,
        encoding=encoding,
        multi_label=multi_label,
    )
    options = {"aggregator": aggregator, "encoder": encoder, "extra_words": extra_words, "seed": seed}
    start_run(
        Request(
            data=data,
            dev=dev,
            test=test,
            score_test=score_test,
            out=out,
            reading=reading,
            asked=Asked(preset=preset, options=options, assignments=set_ or ()),
            vectors=vectors,
            threads=threads,
            device=device,
            loggers=("tensorboard",) if tensorboard else (),
            init_from=init_from,
            force=force,
        )
    )
