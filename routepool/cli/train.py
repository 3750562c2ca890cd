"""`routepool train`: a file of labelled texts -> a model folder."""

from typing import Annotated

import typer

from routepool.cli.options import Encoding, Force, LabelColumn, MultiLabel, OnError, TextColumn, help_of
from routepool.cli.settings import Asked
from routepool.errors import InputError


def train(
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="A file of labelled texts, or a known set: routepool data list."),
    ] = None,
    dev: Annotated[str | None, typer.Option(metavar="FILE", help="Decides when to stop; else a part of DATA.")] = None,
    test: Annotated[str | None, typer.Option(metavar="FILE", help="Scored once, after training.")] = None,
    score_test: Annotated[bool, typer.Option("--score-test", help="Score the test part of a known set.")] = False,
    out: Annotated[str | None, typer.Option(metavar="RUN", help="The model's folder; else runs/DATA-TIME.")] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    preset: Annotated[
        str, typer.Option(metavar="NAME|FILE.toml", help="Settings that belong together: routepool presets lists them.")
    ] = "default",
    aggregator: Annotated[str | None, typer.Option(metavar="NAME", help=help_of("aggregator"))] = None,
    encoder: Annotated[str | None, typer.Option(metavar="NAME", help=help_of("encoder"))] = None,
    vectors: Annotated[
        str | None,
        typer.Option(metavar="FILE[,FILE]|none", help="Word vectors; else wordllama's if installed, else random."),
    ] = None,
    extra_words: Annotated[int | None, typer.Option(metavar="N", help=help_of("extra_words"))] = None,
    multi_label: MultiLabel = None,
    on_error: OnError = "raise",
    encoding: Encoding = "utf-8",
    seed: Annotated[int | None, typer.Option(metavar="N", help=help_of("seed"))] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processor threads.")] = None,
    device: Annotated[str, typer.Option(metavar="D", help="cpu, cuda, cuda:1, mps.")] = "cpu",
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Curves for TensorBoard too, in RUN/logs; [tensorboard] installs it.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any setting, many times, such as epochs=10 or capsules=7: see routepool presets NAME.",
        ),
    ] = None,
    init_from: Annotated[
        str | None, typer.Option(metavar="RUN", help="Go on with a trained model, on new data of its labels.")
    ] = None,
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
    if vectors is not None and not vectors.strip():
        raise InputError("--vectors wants a file, a name, or none, got an empty string")
    # Here and not above: what trains needs torch.
    from routepool.cli.preparing import Request  # noqa: PLC0415
    from routepool.cli.training_run import resume_run, start_run  # noqa: PLC0415

    if data is None:
        resume_run(str(resume))
        return
    reading = {
        "text_column": text_column,
        "label_column": label_column,
        "on_error": on_error,
        "encoding": encoding,
        "multi_label": multi_label is not None,
        "separator": multi_label or None,
    }
    options = {"aggregator": aggregator, "encoder": encoder, "extra_words": extra_words, "seed": seed}
    start_run(
        Request(
            data=data,
            dev=dev,
            test=test,
            score_test=score_test,
            out=out,
            reading={name: value for name, value in reading.items() if value is not None},
            asked=Asked(preset=preset, options=options, assignments=set_ or ()),
            vectors=vectors,
            threads=threads,
            device=device,
            loggers=("tensorboard",) if tensorboard else (),
            init_from=init_from,
            force=force,
        )
    )
