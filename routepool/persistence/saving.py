"""A model folder, written so that a crash at any moment leaves the old model, the new one, or none.

Every file is first written in full under a temporary name. In a new folder the files get their names and manifest.json
comes last. Over an old model (`force`) the new manifest comes first: from then on the folder is the new model, whose
files are still found under their temporary names until each has replaced its predecessor.
"""

import hashlib
import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from routepool.errors import InputError
from routepool.files.disk import foreign, fresh_file, sync_folder, to_json, writing
from routepool.persistence.card import render
from routepool.persistence.description import FORMAT_VERSION, SavedModel
from routepool.persistence.folder import (
    CARD,
    CONFIG,
    MANIFEST,
    NEEDED,
    TOKENIZER,
    WEIGHTS,
    Entry,
    Folder,
    check_size,
    digest_of_table,
    has_manifest,
    read_entry,
    read_manifest,
    stat_folder,
    temporary,
)
from routepool.persistence.tensors import stream

logger = logging.getLogger(__name__)

Contents = Mapping[str, Iterable[bytes | memoryview]]


def save_model(folder: Folder, saved: SavedModel, *, card: Mapping[str, Any], force: bool = False) -> None:
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
    saved.check(tensors)
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


def check_free(folder: Folder, *, force: bool = False) -> None:
    """Refuse a folder in which `save_model` would write over something; ask before hours of training, not after.

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


def _commit(folder: Path) -> None:
    replacing = (folder / MANIFEST).exists()
    for name in (MANIFEST, *NEEDED, CARD) if replacing else (*NEEDED, CARD, MANIFEST):
        temporary(folder / name).replace(folder / name)
        sync_folder(folder)  # each time: the disk must see the manifest in this order too


def write_files(folder: Path, contents: Contents, *, sealed: Collection[str], staged: bool = False) -> None:
    """Write new files through to the disk, and at last the manifest of those that are sealed.

    Args:
        folder: holds none of these names, so that nothing is written through a link.
        contents: of each file, in pieces.
        sealed: names that the manifest lists.
        staged: give each its temporary name.
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


def seal(entries: Sequence[Entry]) -> bytes:
    """The content of a manifest for these files."""
    values = {"format_version": FORMAT_VERSION, "files": [entry._asdict() for entry in entries]}
    return to_json({**values, "sha256": digest_of_table(values)})
