"""A run from its request to its model folder: train, score, save; or take a stopped one up again."""

import shutil
from dataclasses import replace
from pathlib import Path

import torch

from routepool.files.locks import sole_process
from routepool.persistence import Checkpoint, latest_checkpoint, load, save
from routepool.runs.preparing import Prepared, check_run_folder, prepare
from routepool.runs.record import RUN_FILE, RunRecord, note_other_versions, refuse_changed
from routepool.runs.reporter import Reporter
from routepool.runs.request import SEPARATOR, Request
from routepool.runs.scores import card_of, data_facts, limits_of, scores_of, summary
from routepool.runs.sets import read_sets, remembered
from routepool.scoring.predictor import Predictor, of_saved
from routepool.training import LOGGERS, DivergedError, Fitted, MetricsFile, Task, fit
from routepool.training.engine import check_device

_DOING = "training"  # for others who would


def start_run(request: Request, reporter: Reporter) -> Predictor:
    """Train a new model."""
    prepared = prepare(request, reporter)
    run = prepared.run
    with sole_process(run, _DOING):
        check_run_folder(run, force=request.force)  # again: another process may have ended its run here since
        _clear(run)
        prepared.record.write(run)
        try:
            return _execute(prepared, reporter)
        except Exception:
            _forget_unless_begun(run)
            raise


def resume_run(run: Path, reporter: Reporter) -> Predictor:
    """Take a stopped run up, with everything it was begun with."""
    RunRecord.read(run)  # where there is none, nothing is made
    with sole_process(run, _DOING):
        return _resume(run, RunRecord.read(run), reporter)


def _resume(run: Path, record: RunRecord, reporter: Reporter) -> Predictor:
    if (run / "manifest.json").exists() and (saved := load(run)).provenance.get("run") == record.id:
        reporter.say(f"{run}: this run is finished already; next: routepool predict {run} FILE")
        return of_saved(saved)
    refuse_changed(record.files)
    note_other_versions(record, reporter)
    check_device(record.device)
    start = load(record.init_from) if record.init_from else None
    checkpoint = latest_checkpoint(run)
    where = f"after step {checkpoint.state['step']}" if checkpoint else "from the beginning, no checkpoint is there"
    reporter.say(f"{run}: resumed {where}")
    return _execute(Prepared(run, record, read_sets(record.data, reporter), start), reporter, checkpoint)


def _execute(prepared: Prepared, reporter: Reporter, checkpoint: Checkpoint | None = None) -> Predictor:
    run, record, sets, start = prepared
    torch.set_num_threads(record.threads)
    multi_label = sets.train.multi_label
    columns = remembered(sets.train)
    if multi_label:
        columns["separator"] = record.data.options.get("separator", SEPARATOR)
    labels = start.labels if start else sets.train.labels
    task = Task(sets.train.examples, sets.dev.examples, labels, multi_label, record.vectors)
    reporter.say(f"model folder: {run}")
    if record.distillation is not None:
        task = record.distillation.teach(task, record.data, sets, reporter)
    logs = run / "logs"
    try:
        with reporter.epochs(record.preset.training.epochs, "micro F1" if multi_label else "accuracy") as watching:
            fitted = fit(
                task,
                record.preset,
                hooks=[watching, MetricsFile(logs / "metrics.jsonl"), *(LOGGERS[log](logs) for log in record.loggers)],
                run=run,
                checkpoint=checkpoint,
                columns=None if record.data.is_named else columns,  # a known set's are its publisher's, not the user's
                start=start,
                device=record.device,
            )
    except DivergedError as error:
        if error.fitted is not None:
            _finish(prepared, error.fitted, reporter)
        raise
    predictor = _finish(prepared, fitted, reporter)
    shutil.rmtree(run / "checkpoints", ignore_errors=True)  # several times the model, and of no more use
    return predictor


def _finish(prepared: Prepared, fitted: Fitted, reporter: Reporter) -> Predictor:
    """Score, save and say what to do next."""
    run, record, sets, _ = prepared
    predictor = of_saved(fitted.saved)
    scored = {"dev": sets.dev} | ({"test": sets.test} if sets.test else {})
    scores = {name: scores_of(predictor, data, reporter.note) for name, data in scored.items()}
    for name, one in scores.items():
        reporter.say(f"{name}: {summary(one)}")
    limits = limits_of(fitted.truncation, fitted.coverage)
    limits += [record.distillation.limit()] if record.distillation else []
    known = {"datasets": [record.data.title], "language": "en"} if record.data.is_named else {}
    card = card_of(record.data.title, sets, scores, versions=dict(record.versions), limits=limits, **known)
    facts = {
        "run": record.id,
        "created": record.created,
        "preset": record.preset_name,
        "data": data_facts(sets),
        "vectors": record.vectors and [Path(part).name for part in record.vectors.split(",")],
        "teachers": record.distillation and [Path(folder).name for folder in record.distillation.teachers],
        "threads": record.threads,
        "versions": record.versions,
        "scores": {name: {**one.to_dict(), "classes": None, "confusion": None} for name, one in scores.items()},
        "best_epoch": fitted.progress.best_epoch + 1,
        "card": card,  # so that a copy of the model can have the same one
    }
    save(run, replace(fitted.saved, provenance=facts), card=card, force=record.force)
    reporter.say(f"saved in {run}. Next:")
    reporter.say(f"  routepool evaluate {run} LABELLED-FILE")
    reporter.say(f"  routepool predict {run} FILE")
    return predictor


def _clear(run: Path) -> None:
    """Remove the state of an older run in this folder, which a resume would take up; its model stays until replaced."""
    if (run / RUN_FILE).exists():
        shutil.rmtree(run / "checkpoints", ignore_errors=True)
        (run / "logs" / "metrics.jsonl").unlink(missing_ok=True)


def _forget_unless_begun(run: Path) -> None:
    """Leave no trace of a run that failed before its first checkpoint: the same command can be given again."""
    if not (run / "checkpoints").exists():
        (run / RUN_FILE).unlink(missing_ok=True)
