"""The options of a search and of its trials. Imports nothing heavy: `routepool --help` reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routepool.runs.request import AnyPath, Request, option


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """How to search."""

    space: str | None = option(None, "Settings to search and their values; else the paper's grid.", metavar="FILE.toml")
    sampler: str = option("grid", "What to try next: all, what looks best so far, anything.", metavar="grid|tpe|random")
    prune: str = option("none", "When to give up a trial that is behind the others.", metavar="none|median|halving")
    trials: int | None = option(None, "At most, those before a resume included.", metavar="N", least=1)
    minutes: float | None = option(None, "Begin no trial that would not end by then.", metavar="M", least=0)


@dataclass(frozen=True)
class TrialRequest(Request):
    """The run that each trial is, apart from the searched settings; it scores no test set and keeps no model."""

    dev: AnyPath | None = option(None, "What is scored; else a part of DATA.", metavar="FILE")
    out: AnyPath | None = option(None, "The search's folder; else runs/tune-DATA-TIME.", metavar="STUDY")
    preset: AnyPath = option("", "The other settings; wins over the base of the space.", metavar="NAME|FILE.toml")
    settings: Mapping[str, Any] = option(
        {}, "Any setting that is not searched, many times.", metavar="KEY=VALUE", flag="--set"
    )
    seed: int | None = option(None, "Of every trial's training, and of what is tried next.", metavar="N")
    # No options of a search:
    test: AnyPath | None = None
    score_test: bool = False
    init_from: AnyPath | None = None
    tensorboard: bool = False
    force: bool = False
