"""A run from its request to its model folder: train, score, save; or take a stopped one up again."""

import shutil
from dataclasses import replace
from pathlib import Path

import torch

from routepool.files.locks import sole_process
from routepool.persistence import Checkpoint, latest_checkpoint, load_model, save_model
from routepool.runs.preparing import Prepared, check_run_folder, prepare
from routepool.runs.record import RUN_FILE, RunRecord, note_other_versions, refuse_changed
from routepool.runs.reporter import Reporter
from routepool.runs.request import Request
from routepool.runs.scores import facts_of, score_sets
from routepool.runs.sets import read_sets, remembered
from routepool.scoring.predictor import Predictor, of_saved
from routepool.training import LOGGERS, DivergedError, Fitted, MetricsFile, Task, check_device, fit

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
    if (run / "manifest.json").exists() and (saved := load_model(run)).provenance.get("run") == record.id:
        reporter.say(f"{run}: this run is finished already; next: routepool predict {run} FILE")
        return of_saved(saved)
    refuse_changed(record.files)
    note_other_versions(record, reporter)
    check_device(record.device)
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
    logs = run / "logs"
    try:
        with reporter.epochs(record.preset.training.epochs, "micro F1" if multi_label else "accuracy") as watching:
            fitted = fit(
                task,
                record.preset,
                hooks=[watching, MetricsFile(logs / "metrics.jsonl"), *(LOGGERS[log](logs) for log in record.loggers)],
                run=run,
                checkpoint=checkpoint,
                columns=remembered(record.data, sets),
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
    scores = score_sets(predictor, sets, reporter)
    facts = facts_of(record, sets, fitted, scores)
    save_model(run, replace(fitted.saved, provenance=facts), card=facts["card"], force=record.force)
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
