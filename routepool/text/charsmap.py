"""The table of a `Precompiled` normalizer: what sentencepiece replaces characters by, checked before it is followed.

The engine takes offsets from the table without asking whether they lie inside it. The layout: the size of a double
array in bytes (4), its units (4 each), then the replacements, each ended by a zero. A unit holds a label, an offset to
its children, and whether one of these is a leaf; a leaf holds the place of a replacement.
"""

import base64

import numpy as np

_LEAF = np.uint32(1 << 31)


def is_charsmap(encoded: str) -> bool:
    """Whether no step in a table, given in base64, can lead outside.

    >>> is_charsmap("AAAA")
    False
    """
    try:
        return _is_whole(base64.b64decode(encoded, validate=True))
    except ValueError:  # no base64, or replacements that are no UTF-8
        return False


def _is_whole(content: bytes) -> bool:
    size = int.from_bytes(content[:4], "little")
    replacements = content[4 + size :]
    replacements.decode()
    if len(content) < 4 + size or size % 4 or not size or not replacements.endswith(b"\0"):
        return False
    units = np.frombuffer(content, dtype="<u4", count=size // 4, offset=4)
    places = np.arange(len(units), dtype=np.uint64)
    inner = (units & _LEAF) == 0
    # Children lie in the block of 256 that the offset names; the engine looks at any of them.
    children = places ^ ((units >> 10).astype(np.uint64) << ((units & 512) >> 6))
    if ((children | 255) >= len(units))[inner].any():
        return False
    leaves = units[children[inner & (units & 256 != 0)]]
    starts = np.frombuffer(b"\0" + replacements[:-1], dtype=np.uint8) == 0  # where a replacement begins
    within = ((leaves & _LEAF) != 0) & (leaves ^ _LEAF < len(starts))
    return bool(within.all() and starts[leaves ^ _LEAF].all())
