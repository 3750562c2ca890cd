"""What a resumed training relies on: the newest whole checkpoint, bit for bit, whatever happened to the others."""

import json
import logging
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.crashing import fast, killed_at, posix  # noqa: F401 - fast is used by being here

from routepool.errors import InputError
from routepool.persistence import latest_checkpoint, prune, write_checkpoint

TENSORS = {
    "weight": torch.arange(6.0).reshape(2, 3).t(),
    "half": torch.ones(3, dtype=torch.bfloat16),
    "step": torch.tensor(2**53 + 1),
    "generator": torch.get_rng_state(),
    "seen": torch.tensor([True, False]),
    "double": torch.tensor([1 / 3, float("nan"), float("inf")], dtype=torch.float64),
    "empty": torch.empty(0, 4),
}


def names(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def step_of(run: Path) -> int:
    found = latest_checkpoint(run)
    return 0 if found is None else int(found.state["step"])


def test_tensors_of_every_type_and_the_state_come_back_bit_for_bit(tmp_path: Path) -> None:
    state = {"step": 7, "epoch": 1, "best": -float("inf"), "rate": 0.1 + 0.2, "order": [3, 1, 2], "none": None}
    path = write_checkpoint(str(tmp_path), {**TENSORS, "alias": TENSORS["weight"]}, state)
    found = latest_checkpoint(str(tmp_path))
    assert found is not None
    assert (found.path, found.state) == (path, state)
    assert found.tensors.keys() == {*TENSORS, "alias"}
    for name, tensor in TENSORS.items():
        assert (found.tensors[name].dtype, found.tensors[name].shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(found.tensors[name].nan_to_num(7), tensor.nan_to_num(7)), name
    found.tensors["weight"] += 1  # writable, and no longer the alias
    assert torch.equal(found.tensors["alias"], TENSORS["weight"])


def test_a_name_is_never_used_again_and_says_the_step(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    assert write_checkpoint(tmp_path, {}, {"step": 3400}).name == "000001-step-3400"
    assert write_checkpoint(tmp_path, {}, {"step": 3400}).name == "000002-step-3400"
    assert write_checkpoint(tmp_path, {}, {}).name == "000003"
    (tmp_path / "checkpoints" / "999999-step-1").mkdir()
    (tmp_path / "checkpoints" / "notes").mkdir()
    assert write_checkpoint(tmp_path, {}, {"step": 5}).name == "1000000-step-5"
    assert step_of(tmp_path) == 5


def test_the_newest_are_kept(tmp_path: Path) -> None:
    prune(tmp_path)
    for step in range(1, 6):
        write_checkpoint(tmp_path, {}, {"step": step})
    prune(tmp_path)
    assert names(tmp_path) == ["000004-step-4", "000005-step-5"]
    prune(tmp_path, keep=1)
    assert names(tmp_path) == ["000005-step-5"]
    assert write_checkpoint(tmp_path, {}, {"step": 6}).name == "000006-step-6"
    with pytest.raises(InputError, match="keep must be a whole number of at least 1, got 0"):
        prune(tmp_path, keep=0)


@given(name=st.sampled_from(["state.json", "tensors.safetensors", "manifest.json"]), place=st.floats(0, 0.999))
def test_a_damaged_checkpoint_is_passed_over(tmp_path_factory: pytest.TempPathFactory, name: str, place: float) -> None:
    run = tmp_path_factory.mktemp("run")
    write_checkpoint(run, TENSORS, {"step": 1})
    damaged = write_checkpoint(run, TENSORS, {"step": 2}) / name
    content = damaged.read_bytes()
    damaged.write_bytes(content[: int(place * len(content))])
    assert step_of(run) == 1 or (name == "manifest.json" and json.loads(damaged.read_bytes()))


def test_a_damaged_checkpoint_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_checkpoint(tmp_path, TENSORS, {"step": 1})
    (path / "state.json").write_bytes(b'{"step": 9}')
    with caplog.at_level(logging.WARNING, logger="routepool"):
        assert latest_checkpoint(tmp_path) is None
    assert "a checkpoint cannot be used, the one before is tried: " in caplog.text
    assert "state.json: wanted 16 bytes, got 11" in caplog.text


@posix
def test_a_kill_at_any_moment_leaves_the_checkpoint_before_or_the_new_one(tmp_path: Path) -> None:
    step, seen = 0, set()
    while True:
        run = tmp_path / str(step)
        write_checkpoint(run, TENSORS, {"step": 1})

        def write_and_prune(run: Path = run) -> None:
            write_checkpoint(run, TENSORS, {"step": 2})
            prune(run, keep=1)

        died = killed_at(step, write_and_prune)
        seen.add(step_of(run))
        write_checkpoint(run, TENSORS, {"step": 3})
        assert all(name[0] != "." for name in names(run))
        prune(run, keep=1)
        assert step_of(run) == 3
        assert len(names(run)) == 1
        if not died:
            break
        step += 1
    assert seen == {1, 2}


def test_a_file_in_the_place_of_the_checkpoints_is_told(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").touch()
    with pytest.raises(InputError, match="checkpoints: wanted a folder of checkpoints, got Not a directory"):
        latest_checkpoint(tmp_path)
    with pytest.raises(InputError, match="checkpoints: cannot be written"):
        write_checkpoint(tmp_path, {}, {})


def test_what_cannot_be_written_leaves_no_litter(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {}, {"step": 1})
    with pytest.raises(InputError, match="wanted values that JSON can hold"):
        write_checkpoint(tmp_path, {}, {"step": 2, "bad": {1}})
    with pytest.raises(InputError, match=r"tensor 'bad' must be dense and of a common type, got .*sparse"):
        write_checkpoint(tmp_path, {"bad": torch.eye(2).to_sparse()}, {"step": 2})
    assert names(tmp_path) == ["000001-step-1"]
