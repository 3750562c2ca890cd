"""Fair figures on a shared machine: contenders in turn, processor time, medians; peaks in processes of their own."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import torch

DOCS = Path(__file__).parent.parent / "docs"
MEGABYTE = 1e6


def milliseconds(
    contenders: Mapping[str, Callable[[], object]], *, rounds: int = 7, at_least: float = 0.05
) -> dict[str, float]:
    """Median processor time of one call of each contender, all of them timed in turn in every round."""
    calls = {name: _calls_that_take(call, at_least) for name, call in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            times[name].append(_processor_time(call, calls[name]))
    return {name: 1e3 * median(values) for name, values in times.items()}


def milliseconds_of_one(call: Callable[[], object]) -> float:
    """Processor time of a single call, for those that take minutes."""
    return 1e3 * _processor_time(call, 1)


def _calls_that_take(call: Callable[[], object], seconds: float) -> int:
    call()  # the first call allocates and compiles
    return max(1, round(seconds / max(_processor_time(call, 1), 1e-6)))


def _processor_time(call: Callable[[], object], number: int) -> float:
    start = time.process_time()
    for _ in range(number):
        call()
    return (time.process_time() - start) / number


def peak_megabytes(script: str, **arguments: object) -> float:
    """Peak memory above the inputs of `python SCRIPT --peak ARGUMENTS`, a process of its own."""
    command = [sys.executable, script, "--peak", json.dumps(arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak_of(prepare: Callable[..., Callable[[], object]]) -> bool:
    """In such a process: prepare the inputs, make the call once, print by how much the peak rose."""
    if "--peak" not in sys.argv:
        return False
    call = prepare(**json.loads(sys.argv[-1]))
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
    before = _peak_kilobytes()
    call()
    print((_peak_kilobytes() - before) * 1024 / MEGABYTE)
    return True


def _peak_kilobytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0])


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
    return ["| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *rows]]


def machine() -> str:
    """One line on what the figures were taken with."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown processor")
    return f"torch {torch.__version__}, one thread of a {model}, {torch.backends.cpu.get_cpu_capability()}."


def write_section(name: str, lines: list[str], *, page: str = "performance.md") -> None:
    """Replace the part of a page of docs/ between the marks of that name."""
    path = DOCS / page
    marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
    body = "\n".join([marks[0], *lines, marks[1]])
    pattern = re.compile(re.escape(marks[0]) + ".*?" + re.escape(marks[1]), re.DOTALL)
    path.write_text(pattern.sub(lambda _: body, path.read_text()))
    print("\n".join(lines))
