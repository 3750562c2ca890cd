"""A command that is ended by a signal: it removes what is half written and leaves with the exit code of the signal."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class TerminatedError(KeyboardInterrupt):
    """What Ctrl-C is in Python, for another signal: whoever cleans up after the one does so after the other."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals_raised() -> Iterator[None]:
    """Signals that would end the process on the spot are raised as errors; a second one does end it on the spot.

    Those that are ignored, as `nohup` wants it, stay so.
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
