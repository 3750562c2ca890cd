"""The command line called from tests, and tiny data it learns in a second."""

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from routepool.cli import app

TINY = [
    "--vectors", "none", "--threads", "1", "--set", "hidden_size=8", "--set", "embedding_size=8",
    "--set", "head_size=8", "--set", "capsules=2", "--set", "capsule_size=8", "--set", "epochs=4",
    "--set", "learning_rate=0.02", "--set", "dropout=0", "--set", "word_dropout=0", "--set", "batch_size=16",
]  # fmt: skip
ENGLISH = {
    "good": ("great", "lovely", "superb", "warm"),
    "bad": ("awful", "dull", "grim", "cold"),
    "": ("the", "film", "was", "a", "story", "of", "people"),
}


class Called(NamedTuple):
    code: int
    out: str
    err: str


def call(*arguments: object, stdin: bytes | None = None) -> Called:
    """A command in this process: quick, torch is loaded once."""
    result = CliRunner().invoke(app, [str(one) for one in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception  # what a user would see as a traceback
    return Called(result.exit_code, result.stdout, result.stderr)


def succeed(*arguments: object, stdin: bytes | None = None) -> Called:
    called = call(*arguments, stdin=stdin)
    assert called.code == 0, called.err
    return called


def refused(*arguments: object) -> str:
    """The one line of an error."""
    called = call(*arguments)
    assert called.code == 1, called
    errors = [line for line in called.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, called.err
    assert called.err.splitlines()[-1] == errors[0]
    return errors[0].removeprefix("error: ")


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "routepool", *(str(one) for one in arguments)]


def run_process(*arguments: object, stdin: bytes = b"", **options: object) -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        command(*arguments), input=stdin, capture_output=True, env=environment, check=False, **options
    )


def sentences(count: int, words: dict[str, tuple[str, ...]] = ENGLISH, *, space: str = " ") -> list[tuple[str, str]]:
    """Texts with their labels: two telling words among four that mean nothing."""
    chance = random.Random(0)
    labels = [label for label in words if label]
    rows = []
    for number in range(count):
        label = labels[number % len(labels)]
        text = chance.sample(words[""], 4) + chance.sample(words[label], 2)
        chance.shuffle(text)
        rows.append((space.join(text), label))
    return rows


def write_space(folder: Path, content: str) -> Path:
    path = folder / "space.toml"
    path.write_text(content, encoding="utf-8")
    return path


def write_csv(path: Path, rows: Sequence[tuple[str, str]], *, header: str = "text,label") -> Path:
    path.write_text(header + "\n" + "".join(f'"{text}",{label}\n' for text, label in rows), encoding="utf-8")
    return path


def train_tiny(folder: Path, *options: object) -> Path:
    """A model that tells good from bad, in folder/run."""
    data = write_csv(folder / "reviews.csv", sentences(120))
    succeed("train", data, "--out", folder / "run", *TINY, *options)
    return folder / "run"
