"""The command line as a whole: quick to answer, one line for an error, help that teaches."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest
import torch
from rich.console import Console
from support.cli_runs import call, command, refused, run_process, sentences, succeed, train_tiny, write_csv

from routepool.cli import screen

COMMANDS = [
    *("train", "tune", "distill", "evaluate", "predict", "encode", "explain"),
    *("data", "vectors", "presets", "serve"),
]


@pytest.mark.parametrize("name", ["train", "tune"])
def test_help_imports_nothing_heavy(name: str) -> None:
    heavy = ("torch", "accelerate", "sklearn", "numpy", "tokenizers", "optuna", "sqlalchemy")
    code = (
        "import sys, routepool.cli\n"
        f"try: routepool.cli.app(['{name}', '--help'])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_by_an_example(name: str) -> None:
    arguments = [name, "check"] if name == "data" else [name]
    assert f"routepool {name}" in succeed(*arguments, "--help").out


def test_a_wrong_option_is_a_usage_error() -> None:
    assert call("train", "--no-such-option").code == 2
    assert call("train").code == 2
    assert call("train", "a.csv", "--resume", "run").code == 2


def test_threads_that_wait_sleep_unless_the_user_has_another_wish() -> None:
    """torch reads it once, when it is imported; a child process can still be asked what it was given."""
    code = (
        "import os, sys, routepool.cli; sys.argv = ['routepool', '--version']\n"
        "try: routepool.cli.main()\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])"
    )
    for given, expected in ((None, "PASSIVE"), ("ACTIVE", "ACTIVE")):
        environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
        environment |= {"OMP_WAIT_POLICY": given} if given else {}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.splitlines()[-1] == f"False {expected}"


def test_the_version_is_told() -> None:
    assert succeed("--version").out.startswith("routepool 0.")


def test_an_error_is_one_line_on_standard_error_in_a_real_process(tmp_path: Path) -> None:
    done = run_process("data", "check", tmp_path / "none.csv")
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.decode().splitlines() == [
        f"error: {tmp_path / 'none.csv'}: no such file; check the name and the folder"
    ]


def test_a_lack_of_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def allocate(*_: object) -> None:
        torch.empty(2**50)

    monkeypatch.setattr("routepool.runs.run.prepare", allocate)
    assert "not enough memory; use a smaller batch_size" in refused("train", tmp_path / "reviews.csv")


def test_a_closed_output_is_told() -> None:
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command("presets")], stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == ["error: standard output is closed; open it, or send it to a file"]


def test_verbose_shows_the_traceback(tmp_path: Path) -> None:
    done = run_process("--verbose", "data", "check", tmp_path / "none.csv")
    assert b"Traceback" in done.stderr
    assert done.returncode == 1


def test_a_reader_who_goes_away_is_no_error(tmp_path: Path) -> None:
    run = train_tiny(tmp_path)
    many = write_csv(tmp_path / "many.csv", sentences(20_000))
    arguments = command("predict", run, many)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_control_c_while_reading_ends_quietly(tmp_path: Path) -> None:
    run = train_tiny(tmp_path)
    process = subprocess.Popen(command("predict", run), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(3)  # it waits for standard input
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1].decode().splitlines() == ["stopped"]
    # By the signal itself where it came inside an exec() of an import, which Python remembers; a shell reports 130 too.
    assert process.returncode in (130, -signal.SIGINT)


def test_a_terminal_shows_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(screen, "err", terminal)
    run = train_tiny(tmp_path)
    succeed("predict", run, tmp_path / "reviews.csv", "--out", tmp_path / "out.csv")
    shown = cast(io.StringIO, terminal.file).getvalue()
    for part in ("epoch 4/4", "loss 0.", "dev 1.", "examples/s", "left at most", "120 texts"):
        assert part in shown


def test_data_check_says_what_is_wrong_and_fails_on_errors(tmp_path: Path) -> None:
    first = write_csv(tmp_path / "first.csv", sentences(40))
    report = json.loads(succeed("data", "check", first, "--json").out)
    assert report["examples"] == 40
    leaking = call("data", "check", first, "--against", first)
    assert leaking.code == 1
    assert "error: overlap" in leaking.out


def test_data_list_names_the_known_sets() -> None:
    listed = succeed("data", "list").out
    assert "sst2" in listed
    assert "ROUTEPOOL_DATA" in listed


def test_a_mistyped_set_suggests_the_right_one() -> None:
    assert "did you mean 'sst2'?" in refused("data", "check", "sst22")


def test_vectors_reports_coverage(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "data.csv", sentences(20))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 2\nfilm 3 4\ngreat 5 6\n", encoding="utf-8")
    told = succeed("vectors", vectors, "--data", data).out
    assert told.startswith("vectors.txt: ")
    assert "size of a vector: 2" in told
    assert "without a vector: " in told
