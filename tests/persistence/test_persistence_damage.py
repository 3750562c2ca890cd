"""What a damaged or foreign folder gives: one sentence with the file and the remedy, never another prediction."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.model_folders import change_config, change_model_config, change_tensors, logits, reseal, tiny_model

from routepool.errors import InputError, MissingPackageError
from routepool.persistence import load_model, save_model
from routepool.persistence.folder import Entry
from routepool.persistence.saving import seal
from routepool.registry import Extra

FILES = ("config.json", "tokenizer.json", "model.safetensors", "manifest.json", "README.md")
MODEL = tiny_model()
BIAS = "head.output.bias"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    save_model(folder, MODEL, card={})
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def refused(folder: Path, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)


@given(name=st.sampled_from(FILES), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_a_flipped_bit_or_a_cut_never_changes_a_prediction_silently(
    whole: Path, name: str, place: float, bit: int, cut: bool
) -> None:
    spoiled = whole.parent / "spoiled"
    shutil.copytree(whole, spoiled, dirs_exist_ok=True)
    content = bytearray((whole / name).read_bytes())
    index = int(place * len(content))
    content[index] ^= 1 << bit
    (spoiled / name).write_bytes(content[:index] if cut else content)
    try:
        loaded = load_model(spoiled)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - a whole file is a right answer too
        return
    assert name in ("README.md", "manifest.json")  # nothing that predicts was changed
    assert torch.equal(logits(loaded), logits(MODEL))
    assert (loaded.labels, loaded.temperature) == (MODEL.labels, MODEL.temperature)


def test_what_is_no_model_folder_is_told_apart(tmp_path: Path) -> None:
    refused(tmp_path / "none", r"none: wanted the folder of a model, got nothing \(No such file or directory\)")
    (tmp_path / "file").touch()
    refused(tmp_path / "file", "wanted the folder of a model, got a file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(tmp_path / "loop", "symbolic links")
    refused(tmp_path / "a\0b", "null byte")
    refused(tmp_path, r"got one without manifest\.json")
    (tmp_path / "checkpoints").mkdir()
    refused(tmp_path, r"training was not finished, there is no manifest\.json; use --resume")


def test_a_manifest_that_is_no_file_is_refused_at_once(run: Path) -> None:
    path = run / "manifest.json"
    path.unlink()
    path.symlink_to(path)
    refused(run, "symbolic links")
    path.unlink()
    path.mkdir()
    refused(run, "wanted a regular file")
    path.rmdir()
    os.mkfifo(path)
    refused(run, "wanted a regular file")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_or_changed_file_is_named(run: Path, name: str) -> None:
    content = (run / name).read_bytes()
    (run / name).write_bytes(content + b" ")
    refused(run, rf"{name}: wanted {len(content)} bytes, got {len(content) + 1}; copy the folder again")
    (run / name).write_bytes(content[:-1] + b"\xff")
    refused(run, rf"{name}: the file is damaged, its SHA-256")
    (run / name).unlink()
    refused(run, rf"{name}: the file is missing")
    os.mkfifo(run / name)
    refused(run, rf"{name}: wanted \d+ bytes, got 0")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "wanted JSON"),
        (b"\xff\xfe{", "wanted JSON"),
        (b"[" * 90_000, "wanted JSON"),
        (b" " * 200_000, "wanted at most 100000 bytes"),
        (b"[1]", r"wanted a JSON table, got \[1\]"),
        (b"{}", "digest is not that of its content"),
        (b'{"sha256": NaN, "files": 1e999}', "digest is not that of its content"),
    ],
)
def test_a_foreign_manifest_is_refused(run: Path, content: bytes, message: str) -> None:
    (run / "manifest.json").write_bytes(content)
    refused(run, rf"manifest\.json: .*{message}")


@pytest.mark.parametrize("name", ["../config.json", "/etc/passwd", "checkpoints/config.json", "", "config.json\n"])
def test_a_manifest_cannot_name_other_files(run: Path, name: str) -> None:
    entries = [Entry(each, 1, "0" * 64) for each in (name, "tokenizer.json", "model.safetensors")]
    (run / "manifest.json").write_bytes(seal(entries))
    refused(run, r"manifest\.json: wanted it to list config\.json, tokenizer\.json, model\.safetensors, got ")


@pytest.mark.parametrize("entry", [("config.json", -1, "0" * 64), ("config.json", 1, "0"), (1, 1, "0" * 64)])
def test_an_entry_of_another_shape_is_refused(run: Path, entry: tuple[Any, Any, Any]) -> None:
    (run / "manifest.json").write_bytes(seal([Entry(*entry)]))
    refused(run, r"manifest\.json: wanted name, size and sha256 of a file")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 2}, "made by a newer routepool .*upgrade"),
        ({"format_version": "1"}, "wanted a format_version from 1 to 1, got '1'"),
        ({"format_version": 0}, "wanted a format_version from 1 to 1, got 0"),
        ({"labels": 2}, "labels must be different strings"),
        ({"labels": []}, "labels must be different strings"),
        ({"labels": ["a", "a"]}, "labels must be different strings"),
        ({"labels": ["a", ["b"]]}, "labels must be different strings"),
        ({"labels": ["a", "b", "c"]}, r"head\.output\.weight must be .* and labels of config"),
        ({"multi_label": 1}, "multi_label must be true or false"),
        ({"temperature": 0}, "temperature must be a number from 0.001 to 1000, got 0"),
        ({"temperature": 5e-324}, "temperature must be a number from 0.001 to 1000, got 5e-324"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"temperature": 10**400}, "temperature must be"),
        ({"temperature": True}, "temperature must be"),
        ({"thresholds": [0.5]}, "thresholds must be null or 2 numbers from 0 to 1"),
        ({"thresholds": [0.5, 2]}, "thresholds must be"),
        ({"thresholds": 0.5}, "thresholds must be"),
        ({"columns": []}, "columns must be null or a table"),
        ({"provenance": None}, "provenance must be a table"),
        ({"training": {"epoch": 3}}, "unknown setting 'epoch', did you mean 'epochs'"),
        ({"model_config": None}, "model_config must be a table"),
        ({"lables": 1}, "unknown key 'lables', did you mean 'labels'"),
    ],
)
def test_a_config_of_another_content_is_refused(run: Path, change: dict[str, Any], message: str) -> None:
    change_config(run, **change)
    refused(run, rf"run/\w+\.\w+: .*{message}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": "os.system"}, r"config\.json: unknown encoder 'os.system'"),
        ({"aggregator": "rooting"}, "unknown aggregator 'rooting', did you mean 'routing'"),
        ({"hidden_size": 3}, r"must be \(12,.* for the settings .*, got \(8,"),
        (
            {"hidden_size": 60_000},
            r"config\.json: the settings must fit a model of \d+ weights, got a size of 60000",
        ),
        ({"aggregator_options": {"capsules": 10**9}}, r"config\.json: the settings must fit"),
        ({"depth": 2}, r"but it lacks levels\.1\."),
        ({"encoder": "none"}, r"but it has also levels\.0\.encoder"),
        ({"encoder": "cnn", "encoder_options": {"widths": 3}}, r"config\.json: no model can be built"),
        ({"aggregator_options": {"cls": 3}}, r"config\.json: .*option"),
    ],
)
def test_settings_of_another_model_are_refused(run: Path, change: dict[str, Any], message: str) -> None:
    change_model_config(run, **change)
    refused(run, message)


def test_a_config_without_a_key_or_too_large_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = json.loads((run / "config.json").read_bytes())
    reseal(run, "config.json", json.dumps({key: config[key] for key in config if key != "labels"}).encode())
    refused(run, r"config\.json: wanted the key labels, got none")
    reseal(run, "config.json", b'{"format_version": 1}' + b" " * 10_000)
    monkeypatch.setattr("routepool.persistence.folder.LITTLE", -10_000)
    refused(run, r"config\.json: wanted at most 10000 bytes for a model of this size, got 10021")


def test_a_model_of_a_package_that_is_not_installed_gives_the_pip_line(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from routepool.settings import ENCODERS

    monkeypatch.setitem(ENCODERS.extras, "far", Extra("routepool_far_away", "far"))
    change_model_config(run, encoder="far")
    with pytest.raises(MissingPackageError, match=r'pip install "routepool\[far\]"'):
        load_model(run)


def test_another_vocabulary_is_refused(run: Path) -> None:
    content = json.loads((run / "tokenizer.json").read_bytes())
    content["counts"].append(1)
    reseal(run, "tokenizer.json", json.dumps(content).encode())
    refused(run, r"tokenizer\.json: the tokenizer must have a count")
    content["words"].append("more")
    reseal(run, "tokenizer.json", json.dumps(content).encode())
    refused(run, r"tokenizer\.json: the tokenizer must have 12 words, as the weights do, got 13")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda bias: {"more": bias}, "but it has also more"),
        (lambda bias: {BIAS: None}, "but it lacks head.output.bias"),
        (lambda bias: {BIAS: bias[:1]}, r"head\.output\.bias must be \(2,\) torch\.float32 .*got \(1,\)"),
        (lambda bias: {BIAS: bias.double()}, r"got \(2,\) torch\.float64"),
        (lambda bias: {BIAS: bias * float("nan")}, "finite numbers"),
        (lambda bias: {BIAS: bias + float("inf")}, "finite numbers"),
        (lambda bias: {BIAS: torch.empty(0, 2**40)}, r"got \(0, 1099511627776\)"),
    ],
)
def test_other_tensors_are_refused(run: Path, spoil: Callable[[torch.Tensor], Any], message: str) -> None:
    change_tensors(run, spoil(torch.zeros(2)))
    refused(run, rf"model\.safetensors: .*{message}")


def test_weights_that_are_no_safetensors_are_refused(run: Path) -> None:
    import pickle

    for content in (b"", pickle.dumps({"a": 1}), b"\xff" * 100):
        reseal(run, "model.safetensors", content)
        refused(run, r"model\.safetensors: wanted safetensors")
