"""The route through the code: what one `routepool predict` and one `routepool train` pass, and how the house is built.

python benchmarks/house.py [FOLDER]     FOLDER holds another state of the package, to compare with

Files and functions that are entered by calls, imports excluded; switches are pairs of a function and one it calls in
another file; the stack is counted in functions of the package.
"""

import ast
import csv
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import measure

ROOT = Path(__file__).parent.parent
MOST_LINES = 40  # of a function


class Route:
    """Watches calls from one function of the package to another."""

    def __init__(self, package: Path) -> None:
        self._package = str(package) + os.sep
        self.files: set[str] = set()
        self.functions: set[tuple[str, str]] = set()
        self.switches: set[tuple[tuple[str, str], tuple[str, str]]] = set()
        self.deepest = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not self._is_function(frame):
            return
        stack = [outer for outer in _outwards(frame) if outer.f_code.co_filename.startswith(self._package)]
        if any(outer.f_code.co_name == "<module>" for outer in stack):  # something is imported
            return
        called, *callers = [_name(outer) for outer in stack if self._is_function(outer)]
        self.files.add(called[0])
        self.functions.add(called)
        self.deepest = max(self.deepest, 1 + len(callers))
        if callers and callers[0][0] != called[0]:
            self.switches.add((callers[0], called))

    def _is_function(self, frame: FrameType) -> bool:
        """One with a name: no comprehension, no lambda."""
        return frame.f_code.co_filename.startswith(self._package) and not frame.f_code.co_name.startswith("<")


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _name(frame: FrameType) -> tuple[str, str]:
    return frame.f_code.co_filename, frame.f_code.co_qualname


def walk(package: str, *arguments: str) -> None:
    """In a process of its own: run a command and print its route."""
    import routepool.cli  # noqa: PLC0415

    route = Route(Path(package))
    sys.argv = ["routepool", *arguments]
    threading.setprofile(route)
    sys.setprofile(route)
    try:
        routepool.cli.main()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    found = (len(route.files), len(route.functions), len(route.switches), route.deepest)
    sys.stderr.write(json.dumps(found) + "\n")


def routes(root: Path) -> list[list[str]]:
    """The routes of both commands, of the package in a folder."""
    rows = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "texts.csv").open("w", newline="") as file:
            words = ("bread", "tea", "soup", "rain", "snow", "wind")
            texts = [
                (f"{words[row % 6]} and {words[row // 6 % 6]} {'hot' if row % 2 else 'cold'}", row % 2)
                for row in range(60)
            ]
            csv.writer(file).writerows([("text", "label"), *texts])
        run, data = str(folder / "run"), str(folder / "texts.csv")
        for arguments in (("train", data, "--out", run, "--set", "epochs=1"), ("predict", run, data)):
            command = [sys.executable, __file__, "--walk", str(root / "routepool"), *arguments]
            environment = {**os.environ, "PYTHONPATH": str(root)}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            rows.append([arguments[0], *map(str, json.loads(done.stderr.splitlines()[-1]))])
    return rows


def build(root: Path) -> list[list[str]]:
    """How large the rooms are."""
    files = sorted((root / "routepool").rglob("*.py"))
    lines = {file: len(file.read_text().splitlines()) for file in files}
    long, longest = functions(files)
    of_commands = sum(number for file, number in lines.items() if "cli" in file.parts)
    names = Counter(file.stem for file in files if "cli" not in file.parts and file.stem != "__init__")
    twice = [name for name, number in names.items() if number > 1]
    return [
        ["files", str(len(files))],
        ["lines", f"{sum(lines.values()):,}"],
        ["lines of a file, median and most", f"{median(lines.values()):.0f} and {max(lines.values())}"],
        ["lines of the longest function", longest],
        [f"functions above {MOST_LINES} lines", ", ".join(long) or "none"],
        ["share of cli/", f"{100 * of_commands / sum(lines.values()):.1f} %"],
        ["base names that stand twice, cli/ apart", ", ".join(sorted(twice)) or "none"],
    ]


def functions(files: list[Path]) -> tuple[list[str], str]:
    """Names of those that are too long, and the longest; docstrings count."""
    sizes: dict[str, int] = {}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                sizes[f"{file.stem}.{node.name}"] = (node.end_lineno or node.lineno) - node.lineno + 1
    longest = max(sizes, key=lambda name: sizes[name])
    return [name for name, size in sizes.items() if size > MOST_LINES], f"{sizes[longest]} ({longest})"


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--walk"]:
        walk(*arguments[1:])
        return
    for root in (ROOT, *map(Path, arguments)):
        print(
            f"{root.name}:",
            "",
            *measure.table(["command", "files", "functions", "switches", "stack"], routes(root)),
            sep="\n",
        )
        print("", *measure.table(["", ""], build(root)), "", sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
