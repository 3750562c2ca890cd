"""States of a frozen encoder kept on disk, so that only the first epoch of the first training computes them.

The folder is `states-1/DIGEST` in routepool's cache folder (`$ROUTEPOOL_CACHE`, else `~/.cache/routepool`); the digest
is that of the encoder's weights, its architecture and the packages that compute it. A file holds the states of one
window as 32-bit floats behind a checksum that its name is part of: states whose file is cut short, damaged or foreign
are computed again. The folder has a size limit; what does not fit is computed each time.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor

from routepool.arrays import Floats32
from routepool.files.caching import default_folder
from routepool.files.disk import whole

logger = logging.getLogger(__name__)

MOST = 8 * 2**30  # bytes of one encoder's folder
_LAYOUT = "states-1"
_SUM = 16  # bytes of a checksum


class StatesCache:
    """The states of windows by their ids.

    Args:
        folder: of one encoder, see `folder_of`; made if missing.
        size: of a state.
        most: bytes that the folder may hold.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     cache = StatesCache(Path(folder), size=2)
    ...     ids = torch.tensor([7, 8])
    ...     first = cache.get(ids, lambda ids: torch.ones(2, 2))
    ...     cache.get(ids, lambda ids: torch.zeros(2, 2)).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, folder: Path, *, size: int, most: int = MOST) -> None:
        self.folder, self.size = folder, size
        self.room = most - _bytes_in(folder)
        self._warned = False

    def get(self, ids: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """The states of a window, (L,) -> (L, size); computed and kept where they are not there yet."""
        digest = hashlib.blake2b(ids.to("cpu", torch.int64).numpy().astype("<i8").tobytes(), digest_size=20)
        found = self._read(self.folder / digest.hexdigest(), digest.digest(), len(ids))
        if found is not None:
            return torch.from_numpy(found).to(ids.device)
        states = compute(ids).detach()
        self._write(self.folder / digest.hexdigest(), digest.digest(), states)
        return states

    def _read(self, path: Path, key: bytes, length: int) -> Floats32 | None:
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if len(content) != _SUM + 4 * length * self.size or content[:_SUM] != _checksum(content[_SUM:], key):
            if not self._warned:  # once, however many there are
                logger.warning("%s: the cache is broken and made again: states are not what was written", path)
            self._warned = True
            return None
        return np.frombuffer(bytearray(content[_SUM:]), dtype="<f4").reshape(length, self.size)

    def _write(self, path: Path, key: bytes, states: Tensor) -> None:
        content = states.cpu().float().contiguous().numpy().astype("<f4").tobytes()
        if len(content) + _SUM > self.room:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole(path, sync=False) as file:
                file.write(_checksum(content, key) + content)
        except OSError as error:
            self.room = 0
            logger.warning("%s: states are not kept, they are computed each time (%s)", self.folder, error)
        else:
            self.room -= len(content) + _SUM


def folder_of(weights: Mapping[str, Tensor], settings: Mapping[str, Any]) -> Path:
    """Where the states of an encoder are kept: another encoder, or another package to compute it, has another place."""
    digest = hashlib.sha256()
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    digest.update(json.dumps([versions, settings], sort_keys=True, default=str).encode())
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return default_folder() / _LAYOUT / digest.hexdigest()[:40]


def _checksum(content: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SUM, key=key).digest()


def _bytes_in(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat().st_size for entry in entries)
    except OSError:
        return 0
