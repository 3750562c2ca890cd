"""What a kill, a full disk or a read-only folder leaves: the old model or the new one, and no litter."""

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from support.crashing import fast, killed_at, posix  # noqa: F401 - fast is used by being here
from support.model_folders import logits, tiny_model

from routepool.errors import InputError
from routepool.persistence import checkpoints, load_model, save_model

OLD, NEW, THIRD = (tiny_model(seed=seed) for seed in (1, 2, 3))
COMPLETE = sorted([*("config.json", "tokenizer.json", "model.safetensors"), "manifest.json", "README.md"])
linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the names of open files")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@posix
def test_a_kill_at_any_moment_of_replacing_leaves_the_old_or_the_new_model(tmp_path: Path) -> None:
    step, seen = 0, set()
    while True:
        run = tmp_path / str(step)
        save_model(run, OLD, card={})
        died = killed_at(step, lambda run=run: save_model(run, NEW, card={}, force=True))  # type: ignore[misc]
        found = logits(load_model(run))
        assert torch.equal(found, logits(OLD)) or torch.equal(found, logits(NEW))
        seen.add(torch.equal(found, logits(NEW)))
        # A second kill at the same step of the next save keeps the promise too, and a whole save leaves no litter.
        killed_at(step, lambda run=run: save_model(run, THIRD, card={}, force=True))  # type: ignore[misc]
        found = logits(load_model(run))
        assert any(torch.equal(found, logits(model)) for model in (OLD, NEW, THIRD))
        save_model(run, THIRD, card={}, force=True)
        assert torch.equal(logits(load_model(run)), logits(THIRD))
        assert names(run) == COMPLETE
        if not died:
            break
        step += 1
    assert seen == {False, True}
    assert step > 15


@posix
def test_a_kill_at_any_moment_of_a_first_save_leaves_nothing_or_the_model(tmp_path: Path) -> None:
    step, seen = 0, set()
    while True:
        run = tmp_path / str(step)
        (run / "checkpoints").mkdir(parents=True)
        died = killed_at(step, lambda run=run: save_model(run, NEW, card={}))  # type: ignore[misc]
        try:
            assert torch.equal(logits(load_model(run)), logits(NEW))
            seen.add("model")
        except InputError as error:
            assert "use --resume" in str(error)  # noqa: PT017 - the model is a right answer too
            seen.add("nothing")
            save_model(run, NEW, card={})  # what a resumed training does, without force
            assert names(run) == sorted([*COMPLETE, "checkpoints"])
        if not died:
            break
        step += 1
    assert seen == {"nothing", "model"}


@pytest.mark.parametrize("call", range(12))
def test_a_full_disk_leaves_the_old_model_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    save_model(tmp_path, OLD, card={})
    left = call

    def full(handle: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    try:
        save_model(tmp_path, NEW, card={}, force=True)
    except InputError as error:
        assert f"{tmp_path}: cannot be written (No space left on device); free some space" in str(error)  # noqa: PT017
    monkeypatch.undo()
    committed = call > 6  # 1 before, 5 files, their folder: then the new manifest is in place
    assert torch.equal(logits(load_model(tmp_path)), logits(NEW if committed else OLD))
    assert committed or names(tmp_path) == COMPLETE


@linux
def test_all_is_on_the_disk_before_the_manifest_is_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    real_replace = os.replace

    def replace(source: Path, target: Path) -> None:
        events.append(f"-> {target.name}")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", lambda handle: events.append(Path(f"/proc/self/fd/{handle}").readlink().name))
    monkeypatch.setattr(os, "replace", replace)
    run, files = tmp_path / "run", ["config.json", "tokenizer.json", "model.safetensors", "README.md"]
    written = ["run", *(f".{name}.new" for name in [*files, "manifest.json"]), "run"]
    placed = [event for name in files for event in (f"-> {name}", "run")]
    save_model(run, OLD, card={})
    assert events == [*written, *placed, "-> manifest.json", "run"]
    events.clear()
    save_model(run, NEW, card={}, force=True)
    assert events == [*written, "-> manifest.json", "run", *placed]


LIMITED = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import torch
from support.crashing import fast, killed_at, posix  # noqa: F401 - fast is used by being here
from support.model_folders import logits, tiny_model
from routepool.errors import InputError
from routepool.persistence import latest_checkpoint, load_model, save_model, write_checkpoint

run = Path(sys.argv[1])
old, new = tiny_model(seed=1), tiny_model(seed=2)
save_model(run, old, card={})
write_checkpoint(run, {"a": torch.zeros(9)}, {"step": 1})
before = sorted(str(path) for path in run.rglob("*"))
for limit in (0, 1, 300, 600, 1500):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for write in (
        lambda: save_model(run, new, card={}, force=True),
        lambda: write_checkpoint(run, {"a": torch.zeros(900)}, {"step": 2}),
    ):
        try:
            write()
        except InputError as error:
            assert "cannot be written (File too large)" in str(error), error
        else:
            raise SystemExit(f"written within {limit} bytes")
    assert torch.equal(logits(load_model(run)), logits(old))
    assert latest_checkpoint(run).state == {"step": 1}
    assert sorted(str(path) for path in run.rglob("*")) == before
sys.stderr.write("kept")
"""


@posix
def test_a_limit_on_file_size_leaves_the_old_model_and_no_litter(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "run"), str(Path(__file__).parents[1])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "kept")


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody may write there, this process included: root becomes another user for a while."""
    for path in (folder, folder / "checkpoints"):
        path.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path in (folder, folder / "checkpoints"):
            path.chmod(0o755)


@posix
def test_a_read_only_folder_is_loaded_and_refused_for_writing() -> None:
    with tempfile.TemporaryDirectory() as outer:
        Path(outer).chmod(0o755)
        run = Path(outer) / "run"
        save_model(run, OLD, card={})
        (run / "checkpoints").mkdir()
        with read_only(run):
            with pytest.raises(InputError, match=r"run: cannot be written \(Permission denied\).* you may write to"):
                save_model(run, NEW, card={}, force=True)
            with pytest.raises(InputError, match=r"checkpoints: cannot be written \(Permission denied\)"):
                checkpoints.write_checkpoint(run, {}, {})
            assert torch.equal(logits(load_model(run)), logits(OLD))
        assert names(run) == sorted([*COMPLETE, "checkpoints"])


def test_an_interruption_while_writing_leaves_the_old_model_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(tmp_path, OLD, card={})

    def interrupted(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("routepool.persistence.saving.seal", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_model(tmp_path, NEW, card={}, force=True)
    assert torch.equal(logits(load_model(tmp_path)), logits(OLD))
    assert names(tmp_path) == COMPLETE
