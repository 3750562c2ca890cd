"""The command line, from `routepool train` to `routepool demo`.

Each command is declared in a file of its own that imports nothing heavy, since `routepool --help` must not wait for
torch. What a command does is imported when it runs.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import routepool
from routepool.cli import (
    data,
    demo,
    distill,
    encode,
    evaluate,
    explain,
    predict,
    presets,
    screen,
    serve,
    train,
    tune,
    vectors,
)
from routepool.cli.options import MultiLabelCommand
from routepool.errors import InterruptedTrainingError, RoutepoolError

logger = logging.getLogger(__name__)

# Read by torch on first use. Waiting threads sleep: spinning ones take the processor from others on a busy machine, and
# from each other. oneDNN keeps the kernels of 64 shapes, not of 1,024: batches of texts have any length.
_PROCESS = {"OMP_WAIT_POLICY": "PASSIVE", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}
BROKEN_PIPE = 141  # what a shell reports of a program ended by this signal
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class TerminatedError(KeyboardInterrupt):
    """What KeyboardInterrupt is for Ctrl-C, for another signal: code that cleans up after one does so after both."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals_raised() -> Iterator[None]:
    """Raise signals that would end the process at once as errors; a second one does end it at once.

    Signals that are ignored, as under `nohup`, stay so.
    """
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield
        return
    taken = [number for number in _SIGNALS if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise TerminatedError(number)

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def exit_code(error: BaseException) -> int:
    """What a shell reports of a program ended by a signal: 130 for Ctrl-C, 143 for SIGTERM.

    >>> exit_code(KeyboardInterrupt()), exit_code(TerminatedError(signal.SIGTERM))
    (130, 143)
    """
    return 128 + int(getattr(error, "number", signal.SIGINT))


class _Commands(TyperGroup):
    """All commands, with errors in one line: no traceback for what a user can correct."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with signals_raised():
                result = super().invoke(ctx)
                sys.stdout.flush()  # here, where a reader who went away can still be handled
        except BrokenPipeError as error:
            _forget_output()
            raise typer.Exit(BROKEN_PIPE) from error
        except (KeyboardInterrupt, InterruptedTrainingError) as error:
            screen.note(str(error) if isinstance(error, InterruptedTrainingError) else "stopped")
            raise typer.Exit(exit_code(error)) from error
        except (RoutepoolError, OSError, MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not _is_memory(error):
                raise
            logger.debug("the error in full", exc_info=True)
            screen.note(f"error: {_message(error)}")
            raise typer.Exit(1) from error
        return result


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _Notes(logging.Handler):
    """Log records as notes; the traceback of one follows it as it is."""

    def emit(self, record: logging.LogRecord) -> None:
        screen.note(f"{record.levelname.lower()}: {record.getMessage()}")
        if record.exc_info:
            sys.stderr.write(logging.Formatter().formatException(record.exc_info) + "\n")


def _set_up_logging(*, verbose: bool) -> None:
    """Warnings of the library as lines on standard error; with `verbose`, everything it logs."""
    root = logging.getLogger("routepool")
    for old in [handler for handler in root.handlers if isinstance(handler, _Notes)]:
        root.removeHandler(old)
    root.addHandler(_Notes())
    root.setLevel(logging.DEBUG if verbose else logging.WARNING)


def _print_version(asked: bool) -> None:
    if asked:
        screen.say(f"routepool {routepool.__version__}")
        raise typer.Exit


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", help="Show what happens in detail, errors in full.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Text classification by dynamic routing: small models that train on a laptop and show which word went where.

    From a CSV of labelled texts to predictions in three commands:

    `routepool train reviews.csv --out runs/reviews`

    `routepool evaluate runs/reviews more-reviews.csv`

    `routepool predict runs/reviews new-texts.csv`
    """
    _set_up_logging(verbose=verbose)


app.command("train", cls=MultiLabelCommand)(train.train)
app.command("tune", cls=MultiLabelCommand)(tune.tune)
app.command("distill", cls=MultiLabelCommand)(distill.distill)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("encode")(encode.encode)
app.command("explain")(explain.explain)
app.command("serve")(serve.serve)
app.add_typer(data.app, name="data")
app.command("vectors")(vectors.vectors)
app.command("presets")(presets.presets)
app.command("demo")(demo.demo)


def main() -> None:
    """Run the command line and leave with its exit code.

    1 for an error, 2 for a wrong command, 130 after Ctrl-C, 143 after SIGTERM, 141 if the reader of the output is gone.
    """
    if sys.stdout is None:  # closed by the caller, >&-
        sys.exit("error: standard output is closed; open it, or send it to a file")
    for name, value in _PROCESS.items():
        os.environ.setdefault(name, value)
    app(prog_name="routepool")


def _message(error: BaseException) -> str:
    if isinstance(error, RoutepoolError):
        return str(error)
    if _is_memory(error):
        return "not enough memory; use a smaller batch_size, or cut long texts with --set max_words=..."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _is_memory(error: BaseException) -> bool:
    """Whether memory ran out, by the words of the message: torch, whose error it may be, is not imported here."""
    return isinstance(error, MemoryError) or "allocate" in str(error) or "out of memory" in str(error)


def _forget_output() -> None:
    """Let the interpreter close standard output without an error: its reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
