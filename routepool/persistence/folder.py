"""A model folder, read and checked: the files that its manifest names, by size and SHA-256, and the model they make.

What costs little comes first: settings, words and the size of each file must fit the weights' header before anything is
built. manifest.json also holds a digest of its own list.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from routepool.errors import InputError
from routepool.files.disk import digest_of, parse_json, read_file, read_json, reason_of
from routepool.files.headers import read_header, unreadable
from routepool.model import Classifier
from routepool.persistence.description import FORMAT_VERSION, Description, SavedModel
from routepool.text import read_tokenizer

CONFIG, TOKENIZER, WEIGHTS = NEEDED = ("config.json", "tokenizer.json", "model.safetensors")
CARD, MANIFEST = "README.md", "manifest.json"
SOURCE = "for the settings and labels of config.json"  # of the tensors, in messages
_BIAS = "head.output.bias"  # a number for each label
# Bytes that a file may have beyond what its labels or words account for, and for each of these.
LITTLE, _OF_A_LABEL, _OF_A_WORD = 2**20, 10_000, 2_000
OF_A_MANIFEST = 100_000  # bytes: it has a line or four for each of three files
_SHA256 = re.compile("[0-9a-f]{64}")
_DAMAGE = (SafetensorError, KeyError, ValueError, TypeError, RuntimeError, AssertionError)
TYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "C64": torch.complex64,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip

Folder = str | os.PathLike[str]
Tensors = Mapping[str, Tensor]


class Entry(NamedTuple):
    """What a manifest says of a file."""

    name: str
    size: int
    sha256: str


def load_model(folder: Folder) -> SavedModel:
    """Read and check a model folder; the classifier is on the CPU, ready to predict.

    >>> from tempfile import TemporaryDirectory
    >>> from routepool.persistence import save_model
    >>> from routepool.settings import ModelConfig
    >>> from routepool.text import Tokenizer
    >>> tokenizer = Tokenizer.build(["good film", "bad film"])
    >>> config = ModelConfig(embedding_size=4, hidden_size=4, aggregator="mean")
    >>> model = Classifier.build(config, vocabulary_size=len(tokenizer.words), classes=2)
    >>> saved = SavedModel(classifier=model, tokenizer=tokenizer, model_config=config, labels=("neg", "pos"))
    >>> with TemporaryDirectory() as run:
    ...     save_model(run, saved, card={})
    ...     load_model(run).labels
    ('neg', 'pos')
    """
    folder = Path(folder)
    _check_finished(folder)
    entries = read_manifest(folder, NEEDED)
    description, model = _read_shape(folder, entries)
    check_size(folder / TOKENIZER, entries[TOKENIZER].size, words=model.rows)
    path, content = read_entry(folder, entries[TOKENIZER])
    with _naming(path):
        tokenizer = read_tokenizer(content, rows=model.rows)
    path, content = read_entry(folder, entries[WEIGHTS])
    tensors = parse(path, content)
    with _naming(path):
        classifier = _filled(description, model, tensors)
    return SavedModel(classifier=classifier, tokenizer=tokenizer, **vars(description))


def _read_shape(folder: Path, entries: Mapping[str, Entry]) -> tuple[Description, Classifier]:
    """The settings, and a model without memory that the weights, by their header, will fit."""
    weights = _place_of(folder, entries[WEIGHTS])
    header = read_header(weights).items()
    tensors = {name: torch.empty(tuple(shape), dtype=TYPES[kind], device="meta") for name, (kind, shape) in header}
    labels = tensors[_BIAS].numel() if _BIAS in tensors else 0
    check_size(folder / CONFIG, entries[CONFIG].size, labels=labels)
    path, content = read_entry(folder, entries[CONFIG])
    values = parse_json(path, content)
    _check_version(path, values.get("format_version"))
    with _naming(path):
        description = Description.from_config(values)
        model = description.blank(tensors)
    with _naming(weights):
        check_tensors(tensors, model.state_dict(), source=SOURCE)
    return description, model


def _filled(description: Description, model: Classifier, tensors: Tensors) -> Classifier:
    """The blank model with these weights, checked."""
    check_tensors(tensors, model.state_dict(), source=SOURCE)
    if any(name not in tensors for name, _ in model.named_buffers()):
        with torch.random.fork_rng(devices=[]):  # loading must not disturb the user's random numbers
            model = description.build(model.rows)  # a registered class computes a table that it does not save
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def check_tensors(tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], *, source: str) -> None:
    """Refuse tensors whose names, shapes or types are not those of the model, and NaN and infinity.

    Args:
        tensors: what came.
        wanted: tensors of the right shapes and types; their values do not matter.
        source: what the model was built from, for the message.
    """
    missing, extra = sorted(wanted.keys() - tensors.keys()), sorted(tensors.keys() - wanted.keys())
    if missing or extra:
        kind, names = ("lacks", missing) if missing else ("has also", extra)
        raise InputError(f"wanted the {len(wanted)} tensors {source}, but it {kind} {', '.join(names):.200}")
    for name, model in wanted.items():
        tensor = tensors[name]
        came, right = (f"{tuple(one.shape)} {one.dtype}" for one in (tensor, model))
        if came != right:
            raise InputError(f"{name} must be {right} {source}, got {came}")
        if not _finite(tensor):
            raise InputError(f"{name} must hold finite numbers, got NaN or infinity")


def _finite(tensor: Tensor) -> bool:
    if tensor.is_meta or not tensor.is_floating_point() or not tensor.numel():
        return True
    # Both ends are NaN if any number is; torch.isfinite of the whole would take twice the tensor's memory.
    return all(map(math.isfinite, (end.item() for end in tensor.aminmax())))


def parse(path: Path, content: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        return load(content)
    except _DAMAGE as error:
        raise unreadable(path, error) from error


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors about its content."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}; copy the folder again or train again") from error
    except RecursionError as error:
        raise InputError(f"{path}: it is nested too deeply; copy the folder again or train again") from error


def check_size(path: Path, size: int, *, labels: int = 0, words: int = 0) -> None:
    """Refuse a file out of proportion to its labels or words."""
    most = LITTLE + _OF_A_LABEL * labels + _OF_A_WORD * words
    if size > most:
        raise InputError(f"{path}: wanted at most {most} bytes for a model of this size, got {size}; train again")


def _check_finished(folder: Path) -> None:
    stat_folder(folder, "the folder of a model")
    if os.path.lexists(folder / MANIFEST):
        return
    if any(os.path.lexists(folder / name) for name in (*NEEDED, "checkpoints")):
        raise InputError(f"{folder}: training was not finished, there is no {MANIFEST}; use --resume to go on with it")
    raise InputError(f"{folder}: wanted the folder of a model, got one without {MANIFEST}; correct the path")


def stat_folder(folder: Path, wanted: str) -> None:
    """Refuse what is missing or no folder; the error says what was wanted."""
    try:
        folder.stat()
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: wanted {wanted}, got nothing ({reason_of(error)}); correct the path") from error
    if not folder.is_dir():
        raise InputError(f"{folder}: wanted {wanted}, got a file; correct the path")


def read_manifest(folder: Path, names: Collection[str]) -> dict[str, Entry]:
    """The entries of a folder's manifest, by name. It must list exactly these names, so that no path is smuggled in."""
    path = folder / MANIFEST
    values = read_json(path, at_most=OF_A_MANIFEST)
    digest = values.pop("sha256", None)
    if digest != digest_of_table(values):
        raise InputError(f"{path}: it is damaged, its digest is not that of its content; copy the folder again")
    _check_version(path, values.get("format_version"))
    files = values.get("files")
    if not isinstance(files, list) or not all(isinstance(item, dict) for item in files):
        raise InputError(f"{path}: wanted a list of files, got {files!r:.80}; copy the folder again")
    entries = [_entry(path, item) for item in files]
    if sorted(entry.name for entry in entries) != sorted(names):
        listed = ", ".join(repr(entry.name) for entry in entries)
        raise InputError(f"{path}: wanted it to list {', '.join(names)}, got {listed:.200}; copy the folder again")
    return {entry.name: entry for entry in entries}


def read_entry(folder: Path, entry: Entry) -> tuple[Path, bytes]:
    """The content that the manifest promises, and the file it was read from."""
    for path in _places(folder, entry):
        content = read_file(path, at_most=entry.size)
        if len(content) == entry.size and hashlib.sha256(content).hexdigest() == entry.sha256:
            return path, content
    raise _refusal(folder, entry)


def _place_of(folder: Path, entry: Entry) -> Path:
    """The file that the manifest promises, found by its size; of two such files the hash decides."""
    places = _places(folder, entry)
    if len(places) > 1:
        places = [path for path in places if digest_of(path) == entry.sha256]
    if not places:
        raise _refusal(folder, entry)
    return places[0]


def _check_version(path: Path, version: Any) -> None:
    if type(version) is not int or version < 1:
        raise InputError(f"{path}: wanted a format_version from 1 to {FORMAT_VERSION}, got {version!r:.80}")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path}: made by a newer routepool (format {version}, this one reads up to {FORMAT_VERSION}): upgrade, "
            "pip install -U routepool"
        )


def digest_of_table(values: Mapping[str, Any]) -> str:
    """The SHA-256 of a JSON table, however it is laid out."""
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _entry(path: Path, item: dict[str, Any]) -> Entry:
    name, size, sha256 = (item.get(key) for key in Entry._fields)
    named = isinstance(name, str) and isinstance(sha256, str) and _SHA256.fullmatch(sha256)
    if not named or type(size) is not int or size < 0:
        raise InputError(f"{path}: wanted name, size and sha256 of a file, got {item!r:.200}; copy the folder again")
    return Entry(str(name), size, str(sha256))


def _places(folder: Path, entry: Entry) -> list[Path]:
    """Files of the right size under the usual and the temporary name.

    A save that was killed just after its manifest was in place leaves files under their temporary names.
    """
    usual = folder / entry.name
    return [path for path in (usual, temporary(usual)) if path.is_file() and _size(path) == entry.size]


def _refusal(folder: Path, entry: Entry) -> InputError:
    path = folder / entry.name
    size = _size(path)
    if size is None:
        what = "the file is missing or cannot be read"
    elif size != entry.size:
        what = f"wanted {entry.size} bytes, got {size}"
    else:
        what = f"the file is damaged, its SHA-256 is not the {entry.sha256[:12]}... of {MANIFEST}"
    return InputError(f"{path}: {what}; copy the folder again or train again")


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def temporary(path: Path) -> Path:
    """The name a file or folder has in the same place until it is complete."""
    return path.with_name(f".{path.name}.new")
