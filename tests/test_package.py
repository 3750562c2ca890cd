"""The package as a user meets it: light to import, complete, and honest about what is missing."""

import ast
import contextlib
import importlib
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import routepool
from routepool.errors import InputError, MissingPackageError, UnknownNameError
from routepool.registry import PLUGINS, Extra, Registry

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "routepool"


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
    heavy = run(f"import sys, {module}; print([m for m in ('torch', 'sklearn') if m in sys.modules])")
    assert heavy.strip() == "[]"


def imported(file: Path) -> Iterator[str]:
    """The packages that a file imports, at once or when something is called."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_outside_extras_only_what_every_installation_has_is_imported() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    needed = {re.split(r"[^\w-]", one)[0].lower().replace("_", "-") for one in declared}
    brought = {
        package
        for package, distributions in packages_distributions().items()
        if needed & {name.lower().replace("_", "-") for name in distributions}
    }
    known = brought | sys.stdlib_module_names | {"routepool"}
    files = [file for file in PACKAGE.rglob("*.py") if "extras" not in file.relative_to(PACKAGE).parts]
    assert len(files) > 50
    assert {(str(file), name) for file in files for name in imported(file) if name not in known} == set()


def test_the_picture_of_the_rooms_is_what_its_script_draws() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_architecture.py"))["draw"]()
    assert (ROOT / "docs" / "architecture.svg").read_text("utf-8") == drawn, "run: python docs/draw_architecture.py"


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.name
)
def test_links_between_the_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def exists(name: str) -> bool:
    """Whether a dotted name leads to a module, or to something in one."""
    module, _, rest = name.partition(".")
    found: Any = importlib.import_module(module)
    for part in rest.split("."):
        if not hasattr(found, part):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part, None)
    return found is not None


def test_what_the_pages_name_is_there() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    named = {name for page in pages for name in re.findall(r"`(routepool(?:\.[a-zA-Z_]+)+)", page.read_text("utf-8"))}
    assert len(named) > 10
    assert sorted(name for name in named - {PLUGINS} if not exists(name)) == []


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
