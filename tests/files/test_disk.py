"""What a written file promises: it is there whole or not at all, and a write that fails leaves no litter."""

import os
from pathlib import Path

import pytest
from support.crashing import fast, killed_at, posix  # noqa: F401 - fast is used by being here

from routepool.errors import InputError
from routepool.files.disk import replace_file, whole


def write(path: Path, content: bytes) -> None:
    with whole(path) as file:
        file.write(content)


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, SystemExit])
def test_an_error_while_writing_leaves_the_old_file_and_no_litter(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a"
    write(path, b"old")
    with pytest.raises(error), whole(path) as file:  # noqa: PT012 - what is raised is in the middle of writing
        file.write(b"new")
        raise error
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"old")]


def test_a_full_disk_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "a"
    write(path, b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\); free some space"):
        replace_file(path, b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"old")]


@posix
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    step, seen = 0, set()
    while True:
        path = tmp_path / str(step) / "a"
        replace_file(path, b"old")
        died = killed_at(step, lambda path=path: replace_file(path, b"new"))  # type: ignore[misc]
        seen.add(path.read_bytes())
        if not died:
            break
        step += 1
    assert seen == {b"old", b"new"}
    assert step >= 3


def test_two_who_write_the_same_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with whole(path) as first, whole(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"first")]  # the last to end


def test_what_is_written_has_the_rights_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write(tmp_path / "a", b"content")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"theirs")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    write(tmp_path / "a", b"ours")
    assert (tmp_path / "elsewhere").read_bytes() == b"theirs"
    assert (tmp_path / "a").read_bytes() == b"ours"
