"""A tiny file of vectors, and how tests write, find and damage files."""

from pathlib import Path

GLOVE = "the 0.5 -1\ngut 2 3e-1\n电影 4 5\n👩‍👩‍👧 6 7\n. . . 8 9\n"
WORDS = ["电影", "absent", "the", ". . ."]
ROWS: list[list[float]] = [[4, 5], [0, 0], [0.5, -1], [8, 9]]


def cached_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def written(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def flipped(content: bytes, place: int) -> bytes:
    """The content with one bit turned over."""
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)
