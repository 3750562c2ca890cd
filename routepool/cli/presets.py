"""`routepool presets`: settings that belong together, to train with or to change."""

from typing import Annotated

import typer

from routepool.cli import screen
from routepool.cli.options import unfold
from routepool.settings import named_preset, preset_names, to_toml

_ABOUT = {
    "default": "routing on a bidirectional LSTM, for any data",
    "paper": "table 2 of the paper: the row of that set, else SST-2's, for documents IMDB's",
    "released": "the authors' code, likewise",
    "best": "the best on SST with its labelled phrases (sst1-phrases, sst2-phrases); for sentences",
    "cnn": "n-gram filters and max pooling (Kim 2014), trained as in the paper: a baseline for sentences",
}


@unfold
def presets(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Print this one as a TOML file.")] = None,
    documents: Annotated[bool, typer.Option("--documents", help="Its form for long texts.")] = False,
) -> None:
    """List the presets, or print one as a file to change.

    `routepool presets default > mine.toml`, then `routepool train reviews.csv --preset mine.toml`

    A file may hold a few lines only, with `base = "paper-sst2"` above its tables; what it leaves out is the base's,
    or the default preset's.
    """
    if name is None:
        for each in preset_names():
            family, _, data = each.partition("-")
            screen.say(f"{each:<20}{_ABOUT.get(each) or f'{family} settings for {data}'}")
        return
    for line in to_toml(named_preset(name, document=documents)).splitlines():
        screen.say(line)
