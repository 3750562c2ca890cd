"""The cache folder: files are named by the digest of their content, so that damage is noticed.

The folder is `$ROUTEPOOL_CACHE`, else `~/.cache/routepool`. Files are found by a key; a damaged one is made again, with
a warning.
"""

import logging
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from routepool.files.disk import digest_of, whole

logger = logging.getLogger(__name__)

ENVIRONMENT = "ROUTEPOOL_CACHE"
_NAME = re.compile(r"\.([0-9a-f]{64})\.safetensors")


def default_folder() -> Path:
    """The cache folder, unless another one is named."""
    chosen = os.environ.get(ENVIRONMENT)
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "routepool"


def find(folder: Path, key: str) -> Path | None:
    """The file kept under a key; a damaged one is removed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = keep(Path(folder), "key", lambda output: output.write(b"content"))
    ...     whole = find(Path(folder), "key") == file
    ...     _ = file.write_bytes(b"c0ntent")
    ...     whole, find(Path(folder), "key")
    (True, None)
    """
    for file in sorted(folder.glob(f"{key}.*.safetensors")):
        named = _NAME.fullmatch(file.name.removeprefix(key))
        try:
            if named and digest_of(file) == named[1]:
                return file
            file.unlink()
        except OSError as error:
            logger.warning("%s: the cache cannot be read, this part is made again (%s)", file, error)
        else:
            logger.warning("%s: the cache is broken and made again: the content is not what was written", file)
    return None


def keep(folder: Path, key: str, write: Callable[[BinaryIO], object]) -> Path:
    """Write a file through to the disk under a key, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    unnamed = folder / f"{key}.{secrets.token_hex(4)}"  # until its content, and so its name, is known
    with whole(unnamed) as output:
        write(output)
    return unnamed.replace(folder / f"{key}.{digest_of(unnamed)}.safetensors")
