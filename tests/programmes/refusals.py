"""Load each folder in a folder, without a network: what was said, and what it cost. One JSON a line."""

import json
import os
import re
import socket
import sys
import time
from pathlib import Path

from routepool.errors import InputError
from routepool.persistence import load_model

calls: list[str] = []


def refuse(*arguments: object, **options: object) -> None:
    calls.append(repr(arguments[-1]))
    raise OSError("no network here")


def peak() -> int:
    """Of memory in use since the last call, in kB."""
    (found,) = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    Path("/proc/self/clear_refs").write_text("5")
    return int(found)


def forbid_network() -> None:
    """For the rest of the life of the process."""
    for name in ("connect", "connect_ex"):
        setattr(socket.socket, name, refuse)
    socket.getaddrinfo = refuse  # type: ignore[assignment]
    os.environ.pop("HF_HUB_OFFLINE", None)


def main() -> None:
    place, *usual = map(Path, sys.argv[1:])
    for whole in usual:
        load_model(whole)  # imports what an idle process has
    for folder in sorted(path for path in place.iterdir() if path not in usual):
        sys.stdout.write(json.dumps({"begins": folder.name}) + "\n")
        sys.stdout.flush()
        peak()
        before, start = peak(), time.process_time()
        try:
            load_model(folder)
            said = None
        except InputError as error:
            said = str(error)
        except BaseException as error:  # a panic of the tokenizers package is no Exception
            said = f"{type(error).__name__}\n{error}"
        seconds = time.process_time() - start
        told = {"name": folder.name, "said": said, "seconds": seconds, "kilobytes": peak() - before, "calls": [*calls]}
        sys.stdout.write(json.dumps(told) + "\n")
        calls.clear()


if __name__ == "__main__":
    forbid_network()
    main()
