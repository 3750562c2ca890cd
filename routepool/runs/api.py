"""`routepool.train` and `routepool.resume`: what the command line trains, from Python."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec

from routepool.runs.reporter import Reporter
from routepool.runs.request import AnyPath, Request
from routepool.runs.run import resume_run, start_run
from routepool.scoring.predictor import Predictor
from routepool.training.process import caller_unchanged

P = ParamSpec("P")


def _takes(request: Callable[P, Request]) -> Callable[[Callable[..., Predictor]], Callable[P, Predictor]]:
    """Give a function the signature of a request, so that its arguments are declared once."""

    def declared(function: Callable[..., Predictor]) -> Callable[P, Predictor]:
        function.__signature__ = signature(request).replace(return_annotation=Predictor)  # type: ignore[attr-defined]
        return function

    return declared


@_takes(Request)
def train(*data: Any, **options: Any) -> Predictor:
    r"""Train a model on a file of labelled texts, or on a known set, in a folder that can be resumed.

    The arguments are the options of `routepool train`, whose help describes each: `data`, then by name `out`, `dev`,
    `test`, `text_column`, `label_column`, `multi_label` (True, or what separates labels), `preset`, `settings` (a
    table, `--set` of the command line), `aggregator`, `encoder`, `vectors`, `seed`, `threads`, `device`, `init_from`,
    `force` and the rest. Model, card and record are those of the same command. What is done is logged under
    `routepool.runs`.

    Ctrl-C leaves a checkpoint, from which `resume` goes on.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> rows = [f"a {word} day number {n},{word}" for n in range(20) for word in ("merry", "gloomy")]
    >>> tiny = {"epochs": 5, "hidden_size": 8, "embedding_size": 8, "head_size": 8, "learning_rate": 0.02}
    >>> with TemporaryDirectory() as folder:
    ...     data = Path(folder) / "days.csv"
    ...     _ = data.write_text("\n".join(["text,label", *rows]))
    ...     model = train(data, out=Path(folder) / "run", aggregator="max", vectors="none", settings=tiny)
    ...     again = resume(Path(folder) / "run")  # finished already
    >>> model.predict(["a merry tea", "a gloomy tea"]) == again.predict(["a merry tea", "a gloomy tea"])
    True
    """
    with caller_unchanged():
        return start_run(Request(*data, **options), Reporter())


def resume(run: AnyPath) -> Predictor:
    """Resume a run that was stopped, with everything it began with; it ends with the weights it would have had."""
    with caller_unchanged():
        return resume_run(Path(run), Reporter())
