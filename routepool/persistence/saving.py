"""A model folder, written so that a crash at any moment leaves the old model, the new one, or none.

Every file is first written in full under a temporary name. In a new folder the files get their names and manifest.json
comes last. Over an old model (`force`) the new manifest comes first: from then on the folder is the new model, whose
files are still found under their temporary names until each has replaced its predecessor.
"""

import hashlib
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from routepool.errors import InputError
from routepool.files.disk import foreign, fresh_file, read_json, sync_folder, to_json, writing
from routepool.files.headers import Promise, header_of
from routepool.persistence.card import render
from routepool.persistence.description import FORMAT_VERSION, SavedModel
from routepool.persistence.folder import (
    CARD,
    CONFIG,
    MANIFEST,
    NEEDED,
    OF_A_MANIFEST,
    SOURCE,
    TOKENIZER,
    TYPES,
    WEIGHTS,
    Entry,
    Folder,
    check_size,
    check_tensors,
    digest_of_table,
    read_entry,
    read_manifest,
    stat_folder,
    temporary,
)
from routepool.text import Tokenizer

logger = logging.getLogger(__name__)

_NAMES = {kind: name for name, kind in TYPES.items()}

Contents = Mapping[str, Iterable[bytes | memoryview]]


def save_model(folder: Folder, saved: SavedModel, *, card: Mapping[str, Any], force: bool = False) -> None:
    """Write a model folder.

    Args:
        folder: RUN; made if missing. Its checkpoints and logs are left alone.
        saved: the model, checked here so that whatever is saved can be loaded.
        card: what README.md says; `routepool.persistence.card.render` lists the fields.
        force: replace the model that is there. It stays loadable until the new one is.
    """
    folder = Path(folder)
    check_free(folder, force=force)
    tensors = {name: tensor.detach().cpu() for name, tensor in saved.classifier.state_dict().items()}
    _check(saved, tensors)
    config, tokenizer = to_json(saved.to_config()), saved.tokenizer.to_json().encode()
    check_size(folder / CONFIG, len(config), labels=len(saved.labels))
    check_size(folder / TOKENIZER, len(tokenizer), words=saved.classifier.rows)
    contents: Contents = {
        CONFIG: [config],
        TOKENIZER: [tokenizer],
        WEIGHTS: stream(tensors),
        CARD: [render(saved, card).encode("utf-8", "replace")],
    }
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _settle(folder)
        try:  # all that can fill a disk happens before anything is replaced
            write_files(folder, contents, sealed=NEEDED, staged=True)
        except BaseException:
            _remove_temporary(folder)
            raise
        _commit(folder)
    logger.info("saved the model in %s", folder)


def _check(saved: SavedModel, tensors: Mapping[str, Tensor]) -> None:
    """Refuse to save what could not be loaded: weights of another model, or a tokenizer of other words."""
    model = saved.blank(tensors)
    check_tensors(tensors, model.state_dict(), source=SOURCE)
    words = len(saved.tokenizer.words)  # each has a row; of pieces there may be fewer
    if words > model.rows or (isinstance(saved.tokenizer, Tokenizer) and words < model.rows):
        raise InputError(f"the model must have a row for each of the {words} words of its tokenizer, got {model.rows}")


def check_free(folder: Folder, *, force: bool = False) -> None:
    """Refuse a folder in which `save_model` would write over something: ask this before hours of training.

    Args:
        folder: RUN, which need not exist.
        force: a model may be replaced, but no file that routepool did not write, and no folder.
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
    if taken and not unfinished and not _has_manifest(folder):
        raise foreign(folder / taken[0], f"the {MANIFEST} that says so is missing or damaged")


def _has_manifest(folder: Path) -> bool:
    """Did routepool write the manifest there, in this format or another? Its digest shows it."""
    try:
        values = read_json(folder / MANIFEST, at_most=OF_A_MANIFEST)
    except InputError:
        return False
    return bool(values.pop("sha256", None) == digest_of_table(values))


def _settle(folder: Path) -> None:
    """Finish an interrupted save: rename the files of a committed model, remove those of any other."""
    try:
        for entry in read_manifest(folder, NEEDED).values():
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


def _commit(folder: Path) -> None:
    replacing = (folder / MANIFEST).exists()
    for name in (MANIFEST, *NEEDED, CARD) if replacing else (*NEEDED, CARD, MANIFEST):
        temporary(folder / name).replace(folder / name)
        sync_folder(folder)  # each time: the disk must see the manifest in this order too


def write_files(folder: Path, contents: Contents, *, sealed: Collection[str], staged: bool = False) -> None:
    """Write new files through to the disk, last of all the manifest of the sealed ones.

    Args:
        folder: holds none of these names, so that nothing is written through a link.
        contents: the content of each file, in pieces.
        sealed: names that the manifest lists.
        staged: give each file its temporary name.
    """
    entries: list[Entry] = []
    place = temporary if staged else Path
    for name, chunks in contents.items():
        digest, size = hashlib.sha256(), 0
        with fresh_file(place(folder / name)) as file:
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        if name in sealed:
            entries.append(Entry(name, size, digest.hexdigest()))
    with fresh_file(place(folder / MANIFEST)) as file:
        file.write(seal(entries))
    sync_folder(folder)


def stream(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """The content of a safetensors file, piece by piece.

    The package's own writer copies everything in memory twice, or renames a file readable by its owner alone over the
    target. It also refuses two names for one tensor, which a checkpoint may have.

    >>> from safetensors.torch import load
    >>> content = b"".join(stream({"step": torch.tensor(3), "row": torch.ones(1, 2)}))
    >>> load(content)["step"]
    tensor(3)
    """
    # Wide types first, so that each tensor begins at a multiple of its item's size.
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    for name in order:
        tensor = tensors[name]
        if tensor.dtype not in _NAMES or tensor.layout != torch.strided:
            raise InputError(f"tensor {name!r} must be dense and of a common type, got {tensor.dtype} {tensor.layout}")
    yield header_of({name: Promise(_NAMES[tensors[name].dtype], tensors[name].shape) for name in order})
    for name in order:
        values = tensors[name].detach().cpu().contiguous()
        yield values.reshape(-1).view(torch.uint8).numpy().data


def seal(entries: Sequence[Entry]) -> bytes:
    """The content of a manifest for these files."""
    values = {"format_version": FORMAT_VERSION, "files": [entry._asdict() for entry in entries]}
    return to_json({**values, "sha256": digest_of_table(values)})
