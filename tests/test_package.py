"""The package as a user meets it: light to import, complete, and honest about what is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

import routepool
from routepool.errors import InputError, MissingPackageError, UnknownNameError
from routepool.registry import Extra, Registry

pytest_plugins = ["pytester"]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    "module",
    [
        *("routepool", "routepool.settings", "routepool.text", "routepool.datasets", "routepool.vectors"),
        *("routepool.runs.request", "routepool.runs.sets", "routepool.tuning.search_request"),
    ],
)
def test_light_modules_do_not_import_the_heavy_packages(module: str) -> None:
    heavy = run(f"import sys, {module}; print([m for m in ('torch', 'accelerate', 'sklearn') if m in sys.modules])")
    assert heavy.strip() == "[]"


@pytest.mark.parametrize("name", routepool.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(routepool, name).__name__ == name
    assert name in dir(routepool)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Rooting'"):
        routepool.Rooting  # noqa: B018


def test_a_name_is_registered_once() -> None:
    table = Registry[type]("shape")
    table.register("round")(int)
    table.register("round")(int)
    with pytest.raises(InputError, match="shape 'round' is already registered"):
        table.register("round")(str)


def test_a_missing_package_gives_the_pip_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("needs_it.py").write_text("import a_package_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    table = Registry[type]("shape", extras={"odd": Extra("needs_it", "odd-shapes")})
    assert table.names() == ["odd"]
    with pytest.raises(
        MissingPackageError, match=r'needs .*a_package_nobody_has.*: pip install "routepool\[odd-shapes\]"'
    ):
        table["odd"]
    with pytest.raises(UnknownNameError, match=r"unknown shape 'even'\. Known: odd"):
        table["even"]


@pytest.mark.parametrize(("strict", "outcome"), [("0", "skipped"), ("1", "errors")])
def test_a_test_that_needs_a_system_program_skips_or_fails_with_the_apt_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, strict: str, outcome: str
) -> None:
    monkeypatch.setenv("ROUTEPOOL_STRICT", strict)
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text())
    pytester.makeini("[pytest]\nmarkers = system(program, package): needs a program")
    pytester.makepyfile("import pytest\n@pytest.mark.system('no-such-program', 'its-package')\ndef test_it(): pass")
    result = pytester.runpytest_subprocess("-rs", "-p", "no:xdist")
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(["*needs no-such-program: apt-get install its-package*"])
