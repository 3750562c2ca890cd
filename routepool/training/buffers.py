"""Memory that a step frees, kept for the next one."""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # of malloc.h
_NEVER = 2**31 - 1
# Where glibc's own adjustment arrives after a few large buffers; touching it once ends that adjustment.
_AFTERWARDS = ((_MMAP_MAX, 65_536), (_MMAP_THRESHOLD, 32 * 2**20), (_TRIM_THRESHOLD, 64 * 2**20))


@contextmanager
def kept_buffers() -> Iterator[None]:
    """Let freed memory stay with the process meanwhile; afterwards what is free goes back to the system.

    A step takes and frees the same hundreds of megabytes as the one before. glibc hands large buffers back each time,
    and the system clears every page of the next, which costs more the longer the texts are; the peak is somewhat higher
    for it. With any other C library nothing is done.
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
