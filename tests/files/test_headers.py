"""What both who write safetensors row by row and who read a stranger's header rely on."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load

from routepool.errors import InputError
from routepool.files.headers import Promise, header_of, read_header

ARRAYS = {"a": np.arange(6, dtype="<f4").reshape(2, 3), "b": np.arange(3, dtype=np.uint8)}
PROMISES = {"a": Promise("F32", (2, 3)), "b": Promise("U8", (3,))}


@pytest.mark.parametrize("length", [0, 500])
def test_the_package_reads_what_follows_our_header(tmp_path: Path, length: int) -> None:
    content = header_of(PROMISES, length=length) + b"".join(array.tobytes() for array in ARRAYS.values())
    found = load(content)
    assert all(np.array_equal(found[name], array) for name, array in ARRAYS.items())
    (tmp_path / "file").write_bytes(content)
    assert read_header(tmp_path / "file") == {"a": ("F32", [2, 3]), "b": ("U8", [3])}
    assert content.index(ARRAYS["a"].tobytes()) >= 8 + length


def test_a_header_is_as_long_for_no_rows_as_for_all() -> None:
    assert len(header_of({"a": Promise("F32", (0, 0))}, length=512)) == 8 + 512
    assert len(header_of({"a": Promise("F32", (10**9, 1000))}, length=512)) == 8 + 512


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2**62, 2**62]},
        {"dtype": "F32", "shape": [0, 2**40, 2**40]},
        {"dtype": "F32", "shape": [1] * 1_000_000},
        {"dtype": "F32", "shape": [-1]},
        {"dtype": "F32", "shape": [1.0]},
        {"dtype": "F32", "shape": [True]},
        {"dtype": "F32", "shape": 3},
        {"dtype": "F33", "shape": []},
        {"dtype": [], "shape": []},
        {"shape": []},
        [],
        None,
    ],
    ids=lambda entry: str(entry)[:40],
)
def test_a_promise_that_no_array_can_keep_is_refused(tmp_path: Path, entry: Any) -> None:
    if isinstance(entry, dict):
        entry = {**entry, "data_offsets": [0, 0]}
    head = json.dumps({"a": entry}).encode()
    (tmp_path / "file").write_bytes(struct.pack("<Q", len(head)) + head)
    with pytest.raises(InputError, match="file: wanted safetensors, got something else"):
        read_header(tmp_path / "file")


def test_a_file_shorter_or_longer_than_its_header_says_is_refused(tmp_path: Path) -> None:
    content = header_of({"a": Promise("U8", (3,))}) + b"abc"
    for wrong in (content[:-1], content + b"d", content[:20], struct.pack("<Q", 2**40), b"\xff" * 100, b""):
        (tmp_path / "file").write_bytes(wrong)
        with pytest.raises(InputError, match="wanted safetensors"):
            read_header(tmp_path / "file")
