"""`routepool.train` and `routepool.resume`: what the command line trains, from Python."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import ParamSpec

import torch

from routepool.runs.reporter import Reporter
from routepool.runs.request import AnyPath, Request
from routepool.runs.run import resume_run, start_run
from routepool.scoring.predictor import Predictor
from routepool.training import InterruptedTrainingError

P = ParamSpec("P")


def _in_words_of(request: Callable[P, Request]) -> Callable[[Callable[[Request], Predictor]], Callable[P, Predictor]]:
    """Turn a function of a request into one that takes the request's fields, so that they are declared once."""

    def with_words(function: Callable[[Request], Predictor]) -> Callable[P, Predictor]:
        @wraps(function)
        def called(*data: P.args, **words: P.kwargs) -> Predictor:
            return function(request(*data, **words))

        called.__signature__ = signature(request).replace(return_annotation=Predictor)  # type: ignore[attr-defined]
        return called

    return with_words


@_in_words_of(Request)
def train(request: Request) -> Predictor:
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
    with _python():
        return start_run(request, Reporter())


def resume(run: AnyPath) -> Predictor:
    """Resume a run that was stopped, with everything it began with; it ends with the weights it would have had."""
    with _python():
        return resume_run(Path(run), Reporter())


@contextmanager
def _python() -> Iterator[None]:
    """Keep the random numbers and threads of the calling program, and raise KeyboardInterrupt after Ctrl-C."""
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    except InterruptedTrainingError as error:
        raise KeyboardInterrupt(str(error)) from error
    finally:
        torch.set_num_threads(threads)
