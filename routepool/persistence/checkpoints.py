"""Checkpoints: each is a new folder that appears complete or not at all; the one before stays until then."""

import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from routepool.errors import InputError
from routepool.files.disk import parse_json, sync_folder, to_json, writing
from routepool.persistence.folder import Folder, parse, read_entry, read_manifest, temporary
from routepool.persistence.saving import stream, write_files
from routepool.settings.declarations import whole_number

logger = logging.getLogger(__name__)

CHECKPOINTS, STATE, TENSORS = "checkpoints", "state.json", "tensors.safetensors"
_NAME = re.compile(r"(\d{6,})(-step-\d+)?")
_TEMPORARY = re.compile(rf"\.{_NAME.pattern}\.new")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where training stood."""

    path: Path
    tensors: dict[str, Tensor]
    state: dict[str, Any]


def write_checkpoint(run: Folder, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> Path:
    """Write RUN/checkpoints/NUMBER-step-STEP, and remove what interrupted writes left there.

    Args:
        run: the model folder.
        tensors: of any type and device; two names may share one tensor.
        state: anything JSON can hold, infinities included; its "step", if any, becomes a part of the name.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as run:
    ...     write_checkpoint(run, {}, {"step": 3400}).name
    ...     latest_checkpoint(run).state
    '000001-step-3400'
    {'step': 3400}
    """
    folder = Path(run) / CHECKPOINTS
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _new_name(folder, state)
        for left in folder.iterdir():
            if _TEMPORARY.fullmatch(left.name):
                shutil.rmtree(left)
        part = temporary(path)
        try:
            part.mkdir()
            write_files(part, {STATE: [to_json(dict(state))], TENSORS: stream(tensors)}, sealed=(STATE, TENSORS))
            part.rename(path)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        sync_folder(folder)
    logger.debug("wrote %s", path)
    return path


def latest_checkpoint(run: Folder) -> Checkpoint | None:
    """The newest undamaged checkpoint; for a damaged one it warns and takes the one before."""
    for path in reversed(_finished(Path(run) / CHECKPOINTS)):
        try:
            return _read(path)
        except InputError as error:
            logger.warning("a checkpoint cannot be used, the one before is tried: %s", error)
    return None


def prune(run: Folder, *, keep: int = 2) -> None:
    """Remove all but the newest checkpoints; two are kept by default, in case the disk damages one."""
    whole_number("keep", keep)
    folder = Path(run) / CHECKPOINTS
    with writing(folder):
        for path in _finished(folder)[:-keep]:
            # Renamed first, so that a kill leaves no half checkpoint.
            shutil.rmtree(path.rename(temporary(path)))


def _read(path: Path) -> Checkpoint:
    entries = read_manifest(path, (STATE, TENSORS))
    state = parse_json(*read_entry(path, entries[STATE]))
    return Checkpoint(path, parse(*read_entry(path, entries[TENSORS])), state)


def _new_name(folder: Path, state: Mapping[str, Any]) -> str:
    """A number above all that are there, those of unfinished checkpoints included."""
    found = [_NAME.fullmatch(path.name) or _TEMPORARY.fullmatch(path.name) for path in folder.iterdir()]
    number = 1 + max((int(match[1]) for match in found if match), default=0)
    step = state.get("step")
    return f"{number:06d}" + (f"-step-{step}" if type(step) is int and step >= 0 else "")


def _finished(folder: Path) -> list[Path]:
    try:
        paths = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{folder}: wanted a folder of checkpoints, got {error.strerror}; correct the path") from error
    return sorted(paths, key=lambda path: int(path.name.split("-")[0]))
