"""Read bad files one after the other, and tell what each cost: a process of its own, so that its memory can be seen.

    python tests/programmes/bad_files.py FOLDER

prints a line of JSON for each file: its name, the error, seconds of the processor, and the megabytes by which the peak
of the process has grown since it stood idle. Word vectors are the files whose names begin with `vectors`.
"""

import json
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from routepool.datasets import load_dataset
from routepool.errors import InputError
from routepool.vectors.word_files import FileSource


def read(path: Path) -> str:
    try:
        if path.name.startswith("vectors"):
            with TemporaryDirectory() as cache:
                FileSource(str(path), cache=Path(cache)).lookup(["good"])
        else:
            load_dataset(path)
    except InputError as error:
        return str(error)
    return ""


def peak() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main() -> None:
    files = sorted(Path(sys.argv[1]).iterdir())
    if any(path.suffix == ".parquet" for path in files):
        import pyarrow.parquet  # noqa: F401  so that it counts as idle
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
    idle = peak()
    for path in files:
        start = time.process_time()
        error = read(path)
        cost = {"seconds": time.process_time() - start, "megabytes": peak() - idle}
        sys.stdout.write(json.dumps({"name": path.name, "error": error, **cost}) + "\n")


if __name__ == "__main__":
    main()
