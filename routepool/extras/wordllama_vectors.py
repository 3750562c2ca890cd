"""The 256-d vectors of sub-word pieces inside the wordllama wheel: every word has one, the mean of its pieces.

The files are read directly: importing that package would set up logging and its loader may download.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from safetensors.numpy import load
from tokenizers import Tokenizer

from routepool.arrays import Flags, Floats32
from routepool.errors import InputError
from routepool.vectors import SOURCES

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_START = "▁"  # marks a piece that begins a word
# Their components have a standard deviation of 0.9, twice that of GloVe's, and training hardly moves them unscaled.
# Chosen on dev of rotten-tomatoes with one seed, against 1.
SCALE = 0.3

_spec = find_spec("wordllama")
if _spec is None or _spec.origin is None:
    raise ModuleNotFoundError("No module named 'wordllama'", name="wordllama")
FOLDER = Path(_spec.origin).parent


@SOURCES.register("wordllama")
class WordllamaSource:
    """Vectors of pieces, so that every word has one.

    >>> table, known = WordllamaSource().lookup(["film", "filmic", "zzyzx"])
    >>> table.shape, known.tolist()
    ((3, 256), [True, True, True])
    """

    name = "wordllama"

    def __init__(self) -> None:
        self._tokenizer = _tokenizer(_content(_TOKENIZER))
        self._pieces = load(_content(_WEIGHTS))["embedding.weight"].astype(np.float32) * np.float32(SCALE)

    def frequent(self, limit: int) -> list[str]:
        """Words that are one piece; their ids are in the order of frequency."""
        pieces = sorted(self._tokenizer.get_vocab().items(), key=lambda item: item[1])
        words = [piece.removeprefix(_START) for piece, _ in pieces if piece.startswith(_START)]
        return [word for word in words if word and _START not in word][:limit]

    def lookup(self, words: Sequence[str]) -> tuple[Floats32, Flags]:
        """One row for each word (N, 256), and which words it has (N,): all but the empty one."""
        table = np.zeros((len(words), self._pieces.shape[1]), dtype=np.float32)
        known = np.zeros(len(words), dtype=bool)
        for row, encoding in enumerate(self._tokenizer.encode_batch(list(words), add_special_tokens=False)):
            if encoding.ids:
                table[row], known[row] = self._pieces[encoding.ids].mean(axis=0), True
        return table, known


@lru_cache(maxsize=1)
def _tokenizer(content: bytes) -> Tokenizer:
    """Made once in a process: each new one leaves 6 MB behind when it goes."""
    return Tokenizer.from_buffer(content)


def _content(name: str) -> bytes:
    """A file of the package, which must be the one that was installed."""
    try:
        content = (FOLDER / name).read_bytes()
    except OSError as error:
        raise InputError(
            f"the installed wordllama has no {name}; version 0.4.0.post1 does: install that one"
        ) from error
    digest = urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    if _recorded(name) not in (None, digest):
        raise InputError(f"the installed wordllama is damaged: {name} is not what was installed; install it again")
    return content


def _recorded(name: str) -> str | None:
    """The digest that the installer noted, if it did."""
    try:
        noted = [file.hash for file in files("wordllama") or [] if str(file) == f"wordllama/{name}"]
    except PackageNotFoundError:
        return None
    return noted[0].value if noted and noted[0] is not None else None
