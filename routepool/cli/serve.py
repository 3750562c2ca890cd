"""`routepool serve`: a model behind HTTP, and a page in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from routepool.cli import screen
from routepool.cli.options import RunFolder, unfold
from routepool.errors import InputError
from routepool.serving import SERVERS, Limits, Service

_LEAST_KEY = 16  # characters


@unfold
def serve(
    run: RunFolder,
    *,
    host: Annotated[str, typer.Option(metavar="H", help="Address to listen on; any but loopback needs a key.")] = (
        Service.host
    ),
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0 for any that is free.")] = Service.port,
    api_key_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file whose one line is the key that clients must send.")
    ] = None,
    threads: Annotated[
        int, typer.Option(metavar="N", min=1, max=1024, help="Of the model's computations.")
    ] = Service.threads,
    limits: Limits,
) -> None:
    """Answer requests for predictions, explanations and vectors, and show a page in the browser.

    `routepool serve runs/reviews`

    `curl http://127.0.0.1:8000/predict -H 'Content-Type: application/json' -d '{"text": "A fine day out."}'`

    The page is at /, the description of all requests at /docs. Texts of many clients are read together. On SIGTERM
    and Ctrl-C it answers what was accepted, then ends; on SIGHUP it loads the folder again without a pause. Texts are
    never logged.

    For other machines, with a key:

    `routepool serve runs/reviews --host 0.0.0.0 --api-key-file key.txt`
    """
    key = None if api_key_file is None else _read_key(Path(api_key_file))
    service = Service(run=run, host=host, port=port, key=key, threads=threads, limits=limits)
    SERVERS["http"](service, lambda address: screen.say(f"serving {run} at {address}"))


def _read_key(path: Path) -> str:
    key = path.read_bytes().strip()
    if len(key) < _LEAST_KEY or not all(33 <= byte <= 126 for byte in key):
        raise InputError(f"{path}: wanted a key of {_LEAST_KEY} or more ASCII letters, digits or signs on one line")
    return key.decode("ascii")
