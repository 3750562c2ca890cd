"""Where model folders can be shared: the table of model hubs, filled by an optional part."""

import os
from pathlib import Path
from typing import Protocol

from routepool.registry import Extra, Registry

Token = bool | str | None


class Hub(Protocol):
    """A place that keeps model folders under names such as `someone/some-model`."""

    def download(
        self,
        name: str,
        *,
        revision: str | None = None,
        token: Token = None,
        cache_dir: str | os.PathLike[str] | None = None,
        local_files_only: bool = False,
    ) -> Path:
        """The files that a model needs, in a folder."""

    def upload(
        self,
        folder: Path,
        name: str,
        *,
        revision: str | None = None,
        token: Token = None,
        private: bool | None = None,
        commit_message: str | None = None,
    ) -> str:
        """Put a model folder there, and say where it is to be seen."""


HUBS: Registry[Hub] = Registry("model hub", extras={"huggingface": Extra("routepool.extras.hub", "hub")})
