"""What training asks of the process: a device and its random numbers, memory, and a warning before it is stopped."""

import ctypes
import platform
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from routepool.errors import InputError, InterruptedTrainingError

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # of malloc.h
_NEVER = 2**31 - 1
# Where glibc's own adjustment arrives after a few large buffers; touching it once ends that adjustment.
_AFTERWARDS = ((_MMAP_MAX, 65_536), (_MMAP_THRESHOLD, 32 * 2**20), (_TRIM_THRESHOLD, 64 * 2**20))


def check_device(name: str) -> None:
    """Raise InputError for a device that torch cannot use on this machine."""
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise InputError(f"device {name} cannot be used here ({error!s:.100}); use cpu") from error


def seed_device(device: torch.device, number: int) -> None:
    """Seed the random numbers of the processor, and of the device if it is another.

    `torch.manual_seed` does the same, but records a stack trace for every kind of device that is absent.

    >>> seed_device(torch.device("cpu"), 7)
    >>> here = torch.rand(3)
    >>> bool((here == torch.rand(3, generator=torch.Generator().manual_seed(7))).all())
    True
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(number)
    else:
        torch.manual_seed(number)


@contextmanager
def caller_unchanged(threads: int | None = None) -> Iterator[None]:
    """Around a training in a program: keep its random numbers and torch's threads; Ctrl-C is KeyboardInterrupt.

    Args:
        threads: of torch in the meantime; None for as many as before.
    """
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads or before)
        with torch.random.fork_rng(devices=[]):
            yield
    except InterruptedTrainingError as error:
        # A search of scikit-learn takes any other error for a bad fit and goes on.
        raise KeyboardInterrupt(str(error)) from error
    finally:
        torch.set_num_threads(before)


@contextmanager
def kept_buffers() -> Iterator[None]:
    """Keep freed memory in the process; on leaving, return it to the system.

    A step takes and frees the same hundreds of megabytes as the one before. By default glibc returns large buffers each
    time, and the system clears every page of the next, which costs more the longer the texts are. Keeping them makes
    the peak of memory somewhat higher. With any other C library nothing is done.
    """
    library = ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
    if library is None:
        yield
        return
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, _NEVER)
    try:
        yield
    finally:
        for name, value in _AFTERWARDS:
            library.mallopt(name, value)
        library.malloc_trim(0)


class StopRequest(threading.Event):
    """An event with the number of the signal that set it."""

    number: int = signal.SIGINT


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """An event that Ctrl-C and SIGTERM set, so that the step under way ends first; a second signal ends at once."""
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
