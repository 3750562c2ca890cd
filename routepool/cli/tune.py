"""`routepool tune`: a file of labelled texts -> the settings that do best on dev."""

from typing import Annotated

import typer

from routepool.cli.option_groups import ModelOptions, ReadingOptions, unfold
from routepool.cli.options import Data
from routepool.cli.settings import Asked


@unfold
def tune(
    data: Data = None,
    *,
    space: Annotated[
        str | None,
        typer.Option(metavar="FILE.toml", help="Settings to search and their values; else the paper's grid."),
    ] = None,
    sampler: Annotated[
        str, typer.Option(metavar="grid|tpe|random", help="What to try next: all, what looks best so far, anything.")
    ] = "grid",
    prune: Annotated[
        str, typer.Option(metavar="none|median|halving", help="When to give up a trial that is behind the others.")
    ] = "none",
    trials: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most, those of earlier days included.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="M", min=0, help="Begin no trial that would not end by then.")
    ] = None,
    dev: Annotated[str | None, typer.Option(metavar="FILE", help="What is scored; else a part of DATA.")] = None,
    out: Annotated[
        str | None, typer.Option(metavar="STUDY", help="The search's folder; else runs/tune-DATA-TIME.")
    ] = None,
    reading: ReadingOptions,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME|FILE.toml", help="The other settings; wins over the base of the space.")
    ] = None,
    model: ModelOptions,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Of every trial's training, and of what is tried next.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting that is not searched, many times."),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="STUDY", help="Go on with a search; --trials and --minutes may be new.")
    ] = None,
) -> None:
    """Search for the settings that do best on dev; the test set is never looked at.

    `routepool tune reviews.csv --space space.toml --out runs/search`

    `routepool train reviews.csv --preset runs/search/best.toml`

    `routepool tune sst2 --space space.toml --sampler tpe --prune median --minutes 60`

    `routepool tune --resume runs/search`

    A line of space.toml is a setting that --set takes: `learning_rate = [1e-4, 3e-4, 1e-3]` for some values,
    `dropout = { low = 0.1, high = 0.7 }` for a range, with step = 0.2 or log = true; base = "paper" names the preset of
    the other settings. Every trial that ended is kept, whatever ends the search. `pip install "routepool[tune]"` first.
    """
    if (data is None) == (resume is None):
        raise typer.BadParameter("give either DATA, a file or a known set, or --resume STUDY")
    # Here and not above: what trains needs torch.
    from routepool.cli.preparing import Request  # noqa: PLC0415
    from routepool.cli.tuning import Wanted, resume_search, start_search  # noqa: PLC0415

    if data is None:
        resume_search(str(resume), trials=trials, minutes=minutes)
        return
    start_search(
        Request(
            data=data,
            dev=dev,
            out=out,
            reading=reading.chosen(),
            asked=Asked(options=model.settings(seed), assignments=set_ or ()),
            vectors=model.vectors,
            threads=model.threads,
            device=model.device,
        ),
        Wanted(space=space, preset=preset, sampler=sampler, prune=prune, trials=trials, minutes=minutes),
    )
