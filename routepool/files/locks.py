"""One process at a time in a folder; the system releases the lock when the process ends, however it ends."""

import errno
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from routepool.errors import InputError
from routepool.files.disk import writing

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_FAR = 2**30  # a byte that is never written: Windows lets nobody read the one that is locked


@contextmanager
def sole_process(folder: Path, doing: str) -> Iterator[None]:
    """Keep other processes out of a folder, which is made if missing, and then removed again if it ends up empty.

    Args:
        folder: any; the lock is a file in it that holds the number of the process.
        doing: what the process does, for the error in other processes.
    """
    is_new = not folder.exists()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = _locked(folder, doing)
    try:
        yield
    finally:
        _release(file, folder / LOCK_FILE)
        if is_new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def _locked(folder: Path, doing: str) -> BinaryIO:
    path = folder / LOCK_FILE
    while True:
        # Never through a link: its target would be written over.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        file = os.fdopen(handle, "r+b", buffering=0)
        if not _lock(file):
            holder = _holder(file)
            file.close()
            number = f", number {holder}" if holder else ""
            raise InputError(f"{folder}: another process is {doing} here{number}; wait for it or stop it")
        if _is_there(file, path):
            break
        file.close()  # the process that held the lock before has removed the file
    file.truncate(0)
    file.write(b"%d\n" % os.getpid())
    return file


def _holder(file: BinaryIO) -> str:
    """The number of the process that holds the lock, which writes it a moment after it has it."""
    for _ in range(20):
        if holder := file.read(20).decode("ascii", "replace").strip():
            return holder
        time.sleep(0.01)
        file.seek(0)
    return ""


def _lock(file: BinaryIO) -> bool:
    try:
        if sys.platform == "win32":
            file.seek(_FAR)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            file.seek(0)
            return False
        logger.warning("%s: this file system has no locks (%s); use the folder from one process only", file.name, error)
    file.seek(0)
    return True


def _is_there(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _release(file: BinaryIO, path: Path) -> None:
    if sys.platform == "win32":  # removes no open file; a process that opens it now may keep it
        file.close()
    with suppress(OSError):
        path.unlink()
    file.close()
