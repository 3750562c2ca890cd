"""`routepool tune`: labelled texts -> the settings that do best on dev."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from routepool.cli.options import Data, unfold
from routepool.tuning.search_request import SearchRequest, TrialRequest


@unfold
def tune(
    data: Data = None,
    *,
    search: SearchRequest,
    request: TrialRequest,
    resume: Annotated[
        str | None, typer.Option(metavar="STUDY", help="Resume a search; --trials and --minutes may be new.")
    ] = None,
) -> None:
    """Search for the settings that do best on dev; the test set is never looked at.

    `routepool tune reviews.csv --space space.toml --out runs/search`

    `routepool train reviews.csv --preset runs/search/best.toml`

    `routepool tune sst2 --space space.toml --sampler tpe --prune median --minutes 60`

    `routepool tune --resume runs/search`

    A line of space.toml is a setting that --set takes: `learning_rate = [1e-4, 3e-4, 1e-3]` for some values,
    `dropout = { low = 0.1, high = 0.7 }` for a range, with step = 0.2 or log = true; base = "paper" names the preset of
    the other settings. Trials that ended are kept, however the search ends. `pip install "routepool[tune]"` first.
    """
    if (data is None) == (resume is None):
        raise typer.BadParameter("give either DATA, a file or a known set, or --resume STUDY")
    # Here and not above: what trains needs torch.
    from routepool.cli.progress import ScreenReporter  # noqa: PLC0415
    from routepool.cli.trial_table import TrialTable  # noqa: PLC0415
    from routepool.tuning.search import resume_search, start_search  # noqa: PLC0415

    if resume is not None:
        resume_search(Path(resume), search, ScreenReporter(), TrialTable)
    else:
        start_search(replace(request, data=data or ""), search, ScreenReporter(), TrialTable)
