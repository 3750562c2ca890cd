"""A command that is ended by a signal leaves nothing half written, and the exit code that a shell gives the signal."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli_runs import TINY, command, refused, run_process, sentences, succeed, train_tiny, write_csv

from routepool.cli import TerminatedError, exit_code, signals_raised

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("ending"))


def ended_while_writing(number: int, folder: Path, *arguments: object) -> tuple[int, list[str]]:
    """Start a command that reads texts without end, and end it once it has begun to write."""
    reader, writer = os.pipe()
    process = subprocess.Popen(command(*arguments), stdin=reader, stderr=subprocess.PIPE)
    os.close(reader)
    os.set_blocking(writer, False)
    try:
        while not list(folder.glob(".*.new")):
            assert process.poll() is None, process.stderr and process.stderr.read()
            with contextlib.suppress(BlockingIOError):
                os.write(writer, b"a lovely story of people\n" * 100)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        os.close(writer)
    return process.returncode, err.decode().splitlines()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_what_is_half_written_goes_when_a_command_is_ended(run: Path, tmp_path: Path, name: str) -> None:
    number = signal.Signals[name]
    code, err = ended_while_writing(number, tmp_path, "predict", run, "-", "--out", tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
    assert err[-1] == "stopped"
    assert code == 128 + number


def test_encode_leaves_nothing_half_written_either(run: Path, tmp_path: Path) -> None:
    code, err = ended_while_writing(signal.SIGTERM, tmp_path, "encode", run, "-", "--out", tmp_path / "out.npy")
    assert (code, err[-1], list(tmp_path.iterdir())) == (143, "stopped", [])


def end_by_signal(seen: list[object]) -> None:
    with signals_raised():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            seen += [signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)]


def test_a_second_signal_ends_at_once_and_ignored_ones_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    seen: list[object] = []
    try:
        with pytest.raises(TerminatedError) as caught:
            end_by_signal(seen)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert seen == [signal.SIG_DFL, signal.SIG_IGN]
    assert exit_code(caught.value) == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


HOLD = """
import sys
from pathlib import Path
from routepool.files.locks import sole_process
with sole_process(Path(sys.argv[1]), "training"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_run_that_is_being_trained_is_left_to_that_process(run: Path, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(20))
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    with holder(run) as other:
        said = f"{run}: another process is training here, number {other.pid}; wait for it or stop it"
        assert refused("train", "--resume", run) == said
        assert refused("train", data, "--out", run, "--force", *TINY) == said
        other.kill()  # the system lets go of what it held
    assert {name: (run / name).read_bytes() for name in before} == before
    assert "finished already" in succeed("train", "--resume", run).out
    assert {path.name for path in run.iterdir() if path.is_file()} == before.keys()


def test_a_run_that_fails_leaves_neither_its_folder_nor_a_lock(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(20))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("great 1 2\nawful 1\n", encoding="utf-8")
    assert "line 2" in refused("train", data, "--out", tmp_path / "run", *TINY, "--vectors", vectors)
    assert not (tmp_path / "run").exists()


def test_of_two_that_begin_anew_at_once_one_is_refused_and_the_model_is_whole(run: Path, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(400))
    one, two = (
        subprocess.Popen(command("train", data, "--out", run, "--force", *TINY), stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    errors = [process.communicate(timeout=120)[1] for process in (one, two)]
    codes = [one.returncode, two.returncode]
    assert 0 in codes, errors
    for code, error, other in zip(codes, errors, (two, one), strict=True):
        assert code == 0 or f"another process is training here, number {other.pid}" in error
    assert run_process("predict", run, stdin=b"a lovely film\n").returncode == 0
