"""Options that several commands share, so that each has one name and one help."""

from dataclasses import fields
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from routepool.settings import GROUPS
from routepool.settings.declarations import SEPARATOR

TextColumn = Annotated[
    str | None, typer.Option("--text-column", metavar="C", help="Column of the text: a name, or a number from 1.")
]
LabelColumn = Annotated[
    str | None, typer.Option("--label-column", metavar="C", help="Column of the label: a name, or a number from 1.")
]
OnError = Annotated[
    str | None,
    typer.Option(
        "--on-error",
        metavar="stop|skip",
        help="Rows that cannot be used: stop at the first, or skip and list them. Else empty labelled texts and "
        "repeated headers are left out and counted, and any other row stops.",
    ),
]
Encoding = Annotated[str, typer.Option("--encoding", help="Of the file, such as latin-1; a byte order mark wins.")]
LongestRow = Annotated[
    int | None, typer.Option("--longest-row", metavar="N", min=1, help="Characters of a row, at most; else 6,000,000.")
]
MultiLabel = Annotated[
    str | None,
    typer.Option("--multi-label", metavar="[SEP]", help="A text may have any number of labels, joined by SEP, else |."),
]
Data = Annotated[
    str | None,
    typer.Argument(metavar="DATA", help="A file of labelled texts, or a known set: routepool data list."),
]
Dev = Annotated[str | None, typer.Option(metavar="FILE", help="Decides when to stop; else a part of DATA.")]
Test = Annotated[str | None, typer.Option(metavar="FILE", help="Scored once, after training.")]
ScoreTest = Annotated[bool, typer.Option("--score-test", help="Score the test part of a known set.")]
Out = Annotated[str | None, typer.Option(metavar="RUN", help="The model's folder; else runs/DATA-TIME.")]
PresetName = Annotated[
    str, typer.Option(metavar="NAME|FILE.toml", help="Settings that belong together: routepool presets lists them.")
]
Vectors = Annotated[
    str | None,
    typer.Option(metavar="FILE[,FILE]|none", help="Word vectors; else wordllama's if installed, else random."),
]
Threads = Annotated[int | None, typer.Option(metavar="N", min=1, help="Processor threads.")]
Device = Annotated[str, typer.Option(metavar="D", help="cpu, cuda, cuda:1, mps.")]
Tensorboard = Annotated[
    bool, typer.Option("--tensorboard", help="Curves for TensorBoard too, in RUN/logs; [tensorboard] installs it.")
]
SetAny = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any setting, many times, such as epochs=10 or capsules=7: see routepool presets NAME.",
    ),
]
InitFrom = Annotated[
    str | None,
    typer.Option(
        metavar="RUN", help="Go on with a trained model, on new data of its labels; of its settings dropout may change."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, with scores as fractions.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Texts = Annotated[str, typer.Argument(metavar="FILE|-", help="Texts; - or nothing is standard input.")]
InputFormat = Annotated[
    str | None,
    typer.Option(
        "--input-format",
        metavar="csv|tsv|jsonl|lines",
        help="Of the input; else by the file's name, lines for a stream.",
    ),
]
RunFolder = Annotated[str, typer.Argument(metavar="RUN", help="The folder of a trained model.")]


def help_of(name: str) -> str:
    """What the declaration of a setting says of it.

    >>> help_of("seed")
    'Of initial weights, batches and dropout.'
    """
    declared = {item.name: str(item.metadata["help"]) for group in GROUPS.values() for item in fields(group)}
    text = declared[name]
    return f"{text[0].upper()}{text[1:]}."


Aggregator = Annotated[str | None, typer.Option(metavar="NAME", help=help_of("aggregator"))]
EncoderName = Annotated[str | None, typer.Option("--encoder", metavar="NAME", help=help_of("encoder"))]
ExtraWords = Annotated[int | None, typer.Option(metavar="N", help=help_of("extra_words"))]
Seed = Annotated[int | None, typer.Option(metavar="N", help=help_of("seed"))]


class MultiLabelCommand(TyperCommand):
    """A command whose `--multi-label` may stand alone: what follows is its separator only if it looks like one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a lone `--multi-label` its usual separator."""
        for place, argument in enumerate(args):
            following = args[place + 1] if place + 1 < len(args) else ""
            looks_like_one = following and following[0] != "-" and not any(map(str.isalnum, following))
            if argument == "--multi-label" and not looks_like_one:
                args = [*args[:place], f"--multi-label={SEPARATOR}", *args[place + 1 :]]
        return super().parse_args(ctx, args)
