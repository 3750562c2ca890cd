"""One thread for each test process, Ctrl-C, hypothesis profiles, tests that need a system program, a browser."""

import os
import shutil
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
# A shell starts what runs in the background with Ctrl-C ignored, nohup with SIGHUP, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

suite = settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", suite)
settings.register_profile("thorough", suite, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What lies in a folder `reproduce`, here or beside the package, is research."""
    for item in items:
        if "reproduce" in item.path.relative_to(item.config.rootpath).parts:
            item.add_marker("research")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A missing system program skips its tests, and fails them under ROUTEPOOL_STRICT=1."""
    for mark in item.iter_markers("system"):
        program, package = mark.args
        if shutil.which(program) is None:
            reason = f"needs {program}: apt-get install {package} (or: make system)"
            if os.environ.get("ROUTEPOOL_STRICT") == "1":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A real one, for the tests of the page."""
    from support.browser import chromium

    with chromium() as started:
        yield started
