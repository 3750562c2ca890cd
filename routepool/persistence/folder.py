"""The model folder: saved so that a crash at any moment leaves the old model, the new one, or none; loaded checked.

Every file is first written in full under a temporary name. In a new folder the files get their names and manifest.json
comes last. Over an old model (`force`) the new manifest comes first: from then on the folder is the new model, whose
files are still found under their temporary names until each has replaced its predecessor.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from routepool.errors import InputError
from routepool.files.disk import (
    Entry,
    foreign,
    parse_json,
    stat_folder,
    sync_folder,
    temporary,
    to_json,
    told,
    write_file,
    writing,
)
from routepool.model import Classifier
from routepool.persistence.building import BIAS, blank, check_weights, check_words, fill
from routepool.persistence.card import render
from routepool.persistence.description import Description, SavedModel
from routepool.persistence.manifest import (
    MANIFEST,
    check_version,
    has_manifest,
    place_of,
    read_entry,
    read_manifest,
    seal,
)
from routepool.persistence.tensors import parse, read_header, stream
from routepool.text import read_tokenizer

logger = logging.getLogger(__name__)

CONFIG, TOKENIZER, WEIGHTS, CARD = "config.json", "tokenizer.json", "model.safetensors", "README.md"
NEEDED = (CONFIG, TOKENIZER, WEIGHTS)
# Bytes that a file may have beyond what its labels or words account for, and for each of these.
_LITTLE, _OF_A_LABEL, _OF_A_WORD = 2**20, 10_000, 2_000

Folder = str | os.PathLike[str]


def save(folder: Folder, saved: SavedModel, *, card: Mapping[str, Any], force: bool = False) -> None:
    """Write a model folder.

    Args:
        folder: RUN; made if missing. Its checkpoints and logs are left alone.
        saved: the model, checked here so that whatever is saved can be loaded.
        card: what README.md tells; `routepool.persistence.card.render` lists the fields.
        force: replace the model that is there. It stays loadable until the new one is.
    """
    folder = Path(folder)
    check_free(folder, force=force)
    tensors = {name: tensor.detach().cpu() for name, tensor in saved.classifier.state_dict().items()}
    model = blank(saved, tensors)
    check_weights(model, tensors, saved)
    check_words(saved.tokenizer, model)
    config, tokenizer = to_json(saved.to_config()), saved.tokenizer.to_json().encode()
    _check_size(folder / CONFIG, len(config), _LITTLE + _OF_A_LABEL * len(saved.labels))
    _check_size(folder / TOKENIZER, len(tokenizer), _LITTLE + _OF_A_WORD * model.rows)
    contents: dict[str, Iterable[bytes | memoryview]] = {
        CONFIG: [config],
        TOKENIZER: [tokenizer],
        WEIGHTS: stream(tensors),
        CARD: [render(saved, card).encode("utf-8", "replace")],
    }
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _settle(folder)
        _stage(folder, contents)
        _commit(folder)
    logger.info("saved the model in %s", folder)


def load(folder: Folder) -> SavedModel:
    """Read and check a model folder; the classifier is on the CPU, ready to predict.

    >>> from tempfile import TemporaryDirectory
    >>> from routepool.settings import ModelConfig
    >>> from routepool.model import Classifier
    >>> from routepool.text import Tokenizer
    >>> tokenizer = Tokenizer.build(["good film", "bad film"])
    >>> config = ModelConfig(embedding_size=4, hidden_size=4, aggregator="mean")
    >>> model = Classifier.build(config, vocabulary_size=len(tokenizer.words), classes=2)
    >>> saved = SavedModel(classifier=model, tokenizer=tokenizer, model_config=config, labels=("neg", "pos"))
    >>> with TemporaryDirectory() as run:
    ...     save(run, saved, card={})
    ...     load(run).labels
    ('neg', 'pos')
    """
    folder = Path(folder)
    _check_finished(folder)
    entries = {entry.name: entry for entry in read_manifest(folder, NEEDED)}
    description, model = _read_shape(folder, entries)
    _check_size(folder / TOKENIZER, entries[TOKENIZER].size, _LITTLE + _OF_A_WORD * model.rows)
    path, content = read_entry(folder, entries[TOKENIZER])
    tokenizer = told(path, read_tokenizer, content, rows=model.rows)
    path, content = read_entry(folder, entries[WEIGHTS])
    classifier = told(path, fill, model, parse(path, content), description)
    plain = {item.name: getattr(description, item.name) for item in fields(description)}
    return SavedModel(classifier=classifier, tokenizer=tokenizer, **plain)


def _read_shape(folder: Path, entries: Mapping[str, Entry]) -> tuple[Description, Classifier]:
    """The settings and a model without memory, which the weights are promised to fit: what costs little comes first."""
    weights = place_of(folder, entries[WEIGHTS])
    promised = read_header(weights)
    labels = sum(tensor.numel() for name, tensor in promised.items() if name == BIAS)
    _check_size(folder / CONFIG, entries[CONFIG].size, _LITTLE + _OF_A_LABEL * labels)
    path, content = read_entry(folder, entries[CONFIG])
    description = _read_config(path, content)
    model = told(path, blank, description, promised)
    told(weights, check_weights, model, promised, description)
    return description, model


def _check_size(path: Path, size: int, most: int) -> None:
    if size > most:
        raise InputError(f"{path}: wanted at most {most} bytes for a model of this size, got {size}; train again")


def check_free(folder: Folder, *, force: bool = False) -> None:
    """Refuse a folder in which `save` would write over something; ask before hours of training, not after.

    Args:
        folder: RUN, which need not exist.
        force: a model may be replaced; a file that routepool did not write, or a folder in the place of one, not.
    """
    folder = Path(folder)
    if folder.exists():
        stat_folder(folder, "a folder for the model")
    for name in (*NEEDED, MANIFEST, CARD):
        if (folder / name).is_dir():
            raise InputError(f"{folder / name}: wanted room for a file of that name, got a folder; choose another RUN")
    taken = [name for name in (MANIFEST, *NEEDED, CARD) if os.path.lexists(folder / name)]
    # A save into a new folder that was killed while it gave the files their names has left this.
    unfinished = temporary(folder / MANIFEST).exists() and MANIFEST not in taken
    if taken and not force and not unfinished:
        held = "a finished model" if taken[0] == MANIFEST else taken[0]
        raise InputError(f"{folder}: it holds {held} already; choose another folder, or use --force to replace it")
    if taken and not unfinished and not has_manifest(folder):
        raise foreign(folder / taken[0], f"the {MANIFEST} that says so is missing or damaged")


def _settle(folder: Path) -> None:
    """Finish what a killed save left: give a committed model's files their names, remove what belongs to none."""
    try:
        for entry in read_manifest(folder, NEEDED):
            path, _ = read_entry(folder, entry)
            if path.name != entry.name:
                path.replace(folder / entry.name)
    except InputError:
        logger.debug("%s: no model to keep", folder)
    sync_folder(folder)
    _remove_temporary(folder)


def _remove_temporary(folder: Path) -> None:
    for name in (*NEEDED, CARD, MANIFEST):
        temporary(folder / name).unlink(missing_ok=True)


def _stage(folder: Path, contents: Mapping[str, Iterable[bytes | memoryview]]) -> None:
    """Write every file under its temporary name: all that can fill a disk happens before anything is replaced."""
    try:
        entries: list[Entry] = []
        for name, chunks in contents.items():
            entries.append(write_file(temporary(folder / name), chunks, name=name))
        manifest = seal([entry for entry in entries if entry.name in NEEDED])
        write_file(temporary(folder / MANIFEST), [manifest])
        sync_folder(folder)
    except BaseException:
        _remove_temporary(folder)
        raise


def _commit(folder: Path) -> None:
    replacing = (folder / MANIFEST).exists()
    for name in (MANIFEST, *NEEDED, CARD) if replacing else (*NEEDED, CARD, MANIFEST):
        temporary(folder / name).replace(folder / name)
        sync_folder(folder)  # each time: the disk must see the manifest in this order too


def _check_finished(folder: Path) -> None:
    stat_folder(folder, "the folder of a model")
    if os.path.lexists(folder / MANIFEST):
        return
    if any(os.path.lexists(folder / name) for name in (*NEEDED, "checkpoints")):
        raise InputError(f"{folder}: training was not finished, there is no {MANIFEST}; use --resume to go on with it")
    raise InputError(f"{folder}: wanted the folder of a model, got one without {MANIFEST}; correct the path")


def _read_config(path: Path, content: bytes) -> Description:
    values = parse_json(path, content)
    check_version(path, values.get("format_version"))
    return told(path, Description.from_config, values)
