"""Ways to spoil one thing in a model folder whose manifest is right again afterwards."""

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from routepool.persistence.folder import Entry
from routepool.persistence.saving import seal
from support import tiny_encoder
from support.model_folders import change_model_config, change_tensors, reseal

Spoil = Callable[[Path], object]


def model_setting(**values: Any) -> Spoil:
    def spoil(folder: Path) -> None:
        change_tensors(folder, {"padding": torch.zeros(300_000)})  # so that no size is out of proportion
        change_model_config(folder, **values)

    return spoil


def options(kind: str, part: str = "aggregator", /, **values: Any) -> Spoil:
    return model_setting(**{part: kind, f"{part}_options": values})


def config_key(name: str, value: Any) -> Spoil:
    return lambda folder: reseal(
        folder, "config.json", json.dumps({**_read(folder, "config.json"), name: value}).encode()
    )


def content(name: str, data: bytes) -> Spoil:
    return lambda folder: reseal(folder, name, data)


def tokenizer_key(name: str, value: Any) -> Spoil:
    def spoil(folder: Path) -> None:
        reseal(folder, "tokenizer.json", json.dumps({**_read(folder, "tokenizer.json"), name: value}).encode())

    return spoil


def header(entries: Any, *, size: int = 0, length: int | None = None) -> Spoil:
    """Weights that begin like this; `size` bytes follow, which no disk has to hold."""

    def spoil(folder: Path) -> None:
        path, head = folder / "model.safetensors", json.dumps(entries).encode()
        with path.open("wb") as file:
            file.write(struct.pack("<Q", len(head) if length is None else length) + head)
            file.truncate(8 + len(head) + size)
        _seal_unread(folder)

    return spoil


def promised(**changes: Any) -> Spoil:
    """The header of the weights with some entries changed; the file is as long as its header says."""

    def spoil(folder: Path) -> None:
        whole = (folder / "model.safetensors").read_bytes()
        entries = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
        entries.update({name.replace("__", "."): entry for name, entry in changes.items()})
        header(entries, size=max(entry["data_offsets"][1] for entry in entries.values()))(folder)

    return spoil


def tensor(*shape: Any, dtype: str = "F32", size: int = 0) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, size]}


def architecture(**values: Any) -> Spoil:
    def change(settings: dict[str, Any]) -> None:
        settings["architecture"].update(values)

    return _encoder_options(change)


def encoder_option(name: str, value: Any) -> Spoil:
    return _encoder_options(lambda settings: settings.update({name: value}))


def pieces(**values: Any) -> Spoil:
    """Parts of the tokenizer replaced; its model's settings are changed."""

    def spoil(folder: Path) -> None:
        whole = _read(folder, "tokenizer.json")
        model = {**whole["pieces"]["model"], **values.pop("model", {})}
        whole["pieces"].update({"model": model, **values})
        reseal(folder, "tokenizer.json", json.dumps(whole).encode())

    return spoil


def place_of_a_piece(place: Any) -> Spoil:
    return pieces(model={"vocab": {**tiny_encoder.vocabulary(), "more": place}})


def model_of_pieces(**model: Any) -> Spoil:
    def spoil(folder: Path) -> None:
        whole = _read(folder, "tokenizer.json")
        whole["pieces"]["model"] = model
        reseal(folder, "tokenizer.json", json.dumps(whole).encode())

    return spoil


def charsmap(data: bytes) -> Spoil:
    encoded = base64.b64encode(data).decode()
    return pieces(normalizer={"type": "Precompiled", "precompiled_charsmap": encoded})


def in_order(part: Mapping[str, Any], times: int) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": [part] * times}


def nested(times: int) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "Lowercase"}
    for _ in range(times):
        part = {"type": "Sequence", "normalizers": [part]}
    return part


def replacing(pattern: Mapping[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _encoder_options(change: Callable[[dict[str, Any]], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        settings = _read(folder, "config.json")["model_config"]["encoder_options"]
        change(settings)
        change_model_config(folder, encoder_options=settings)

    return spoil


def _read(folder: Path, name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / name).read_bytes())
    return values


def _seal_unread(folder: Path) -> None:
    names = ("config.json", "tokenizer.json", "model.safetensors")
    entries = [Entry(name, (folder / name).stat().st_size, "0" * 64) for name in names]
    manifest = json.loads((folder / "manifest.json").read_bytes())
    hashes = {item["name"]: item["sha256"] for item in manifest["files"]}
    entries = [entry if entry.name == names[2] else entry._replace(sha256=hashes[entry.name]) for entry in entries]
    (folder / "manifest.json").write_bytes(seal(entries))


def words_of(number: int) -> Iterator[str]:
    return (f"w{place}" for place in range(number))


def nested_table(times: int) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for _ in range(times):
        table = {"a": table}
    return table
