"""Processes that die in the middle of writing."""

import os
from collections.abc import Callable
from typing import Any

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="needs fork, limits and owners")


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it wrote: only a power cut needs the real fsync, which takes its time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def killed_at(step: int, action: Callable[[], object]) -> bool:
    """Run in a child that dies, with no chance to clean up, before its step-th write, rename or sync."""
    child = os.fork()
    if child == 0:
        left = step

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    os._exit(9)
                return function(*args, **options)

            return call

        try:
            for name in ("fsync", "replace", "rename", "unlink", "mkdir", "rmdir"):
                setattr(os, name, counted(getattr(os, name)))
            action()
            os._exit(0)
        except BaseException:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 9
