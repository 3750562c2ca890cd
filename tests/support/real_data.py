"""Tests of the real sets: they skip where the folder is absent."""

import os
from pathlib import Path

import pytest

from routepool.datasets import Parts

DATA = os.environ.get("ROUTEPOOL_DATA", "")


def needs(folder: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not (Path(DATA) / folder).is_dir() or not DATA, reason=f"ROUTEPOOL_DATA has no {folder}")


def sizes(parts: Parts) -> tuple[int, ...]:
    return tuple(len(part.examples) for part in parts)
