"""Ctrl-C and SIGTERM as a request to stop after the step under way."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class StopRequest(threading.Event):
    """An event that remembers the signal that set it."""

    number: int = signal.SIGINT


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """An event that Ctrl-C and SIGTERM set: the step under way is finished first. A second one ends at once."""
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield stop
        return
    before: dict[signal.Signals, Any] = {}

    def ask(number: int, frame: object) -> None:
        stop.number = number
        stop.set()
        _restore(before)

    for name in (signal.SIGINT, signal.SIGTERM):
        before[name] = signal.signal(name, ask)
    try:
        yield stop
    finally:
        _restore(before)


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    for name, handler in handlers.items():
        signal.signal(name, handler)
