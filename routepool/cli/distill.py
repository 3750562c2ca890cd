"""`routepool distill`: trained models and texts -> a smaller model that answers as they do."""

from typing import Annotated

import typer

from routepool.cli.options import (
    Aggregator,
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


def distill(
    teacher: Annotated[
        str,
        typer.Argument(metavar="TEACHER[,TEACHER]", help="Folders of trained models; several are averaged."),
    ],
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file of texts with its labels, or a known set.")],
    unlabelled: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="More texts to learn the teacher's answers to; a known set's name too."),
    ] = None,
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
) -> None:
    """Train a small model to answer as larger ones do, on labelled texts and on as many others as there are.

    `routepool distill runs/large reviews.csv --unlabelled more-reviews.txt --out runs/small`

    `routepool distill runs/seed-0,runs/seed-1 sst2 --unlabelled sentences.txt --set label_weight=0.2`

    The student learns the teachers' logits by squared error; the labels of dev decide its best epoch. Answers are
    computed once and kept. FILE has a text a line, or the columns of DATA; texts that are in DATA, its dev or its test
    set are left out. A stopped run goes on with `routepool train --resume RUN`.
    """
    check_vectors(vectors)
    # Here and not above: what trains needs torch.
    from routepool.cli.lessons import Lesson  # noqa: PLC0415
    from routepool.cli.preparing import Request  # noqa: PLC0415
    from routepool.cli.training_run import start_run  # noqa: PLC0415

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
            lesson=Lesson.asked(teacher, unlabelled),
        )
    )
