"""What `routepool train` does: train, score, save; or take a stopped run up again."""

import shutil
from dataclasses import replace
from pathlib import Path

import torch
import typer

from routepool.cli import exit_code, report, screen
from routepool.cli.preparing import Request, check_run_folder, prepare
from routepool.cli.progress import TrainingScreen
from routepool.cli.reading import Material, load_material, remembered
from routepool.cli.record import RUN_FILE, RunRecord, refuse_changed, versions
from routepool.files.locks import sole_process
from routepool.persistence import Checkpoint, SavedModel, latest_checkpoint, load_model, save_model
from routepool.scoring.predictor import of_saved
from routepool.settings.declarations import SEPARATOR
from routepool.training import (
    LOGGERS,
    DivergedError,
    Fitted,
    InterruptedTrainingError,
    MetricsFile,
    Task,
    check_device,
    fit,
)

_DOING = "training"  # for others who would


def start_run(request: Request) -> None:
    """Train a new model."""
    run, record, material, start = prepare(request)
    with sole_process(run, _DOING):
        check_run_folder(run, force=request.force)  # again: another process may have ended its run here since
        _clear(run)
        record.write(run)
        try:
            _execute(run, record, material, start, None)
        except Exception:
            _forget_unless_begun(run)
            raise


def resume_run(folder: str) -> None:
    """Take a stopped run up, with everything it was begun with."""
    run = Path(folder)
    RunRecord.read(run)  # where there is none, nothing is made
    with sole_process(run, _DOING):
        _resume(run, RunRecord.read(run))


def _resume(run: Path, record: RunRecord) -> None:
    if _is_finished(run, record):
        screen.say(f"{run}: this run is finished already; next: routepool predict {run} FILE")
        return
    refuse_changed(record.files)
    note_other_versions(record)
    check_device(record.device)
    start = load_model(record.init_from) if record.init_from else None
    checkpoint = latest_checkpoint(run)
    where = f"after step {checkpoint.state['step']}" if checkpoint else "from the beginning, no checkpoint is there"
    screen.say(f"{run}: resumed {where}")
    _execute(run, record, load_material(record.data), start, checkpoint)


def note_other_versions(record: RunRecord) -> None:
    """Warn that a run begun with other packages may not end as it would have."""
    now = versions()
    changed = [f"{name} {old}, now {now.get(name)}" for name, old in record.versions.items() if now.get(name) != old]
    if changed:
        screen.note(f"warning: begun with {'; '.join(changed)}: the weights may differ in their last bits")


def _execute(
    run: Path, record: RunRecord, material: Material, start: SavedModel | None, checkpoint: Checkpoint | None
) -> None:
    torch.set_num_threads(record.threads)
    training = record.preset.training
    multi_label = material.train.multi_label
    columns = remembered(material.train)
    if multi_label:
        columns["separator"] = record.data.options.get("separator", SEPARATOR)
    labels = start.labels if start else material.train.labels
    task = Task(material.train.examples, material.dev.examples, labels, multi_label, record.vectors)
    screen.say(f"model folder: {run}")
    if record.lesson is not None:
        task = record.lesson.teach(task, record.data, material)
    logs = run / "logs"
    try:
        with TrainingScreen(training.epochs, "micro F1" if multi_label else "accuracy") as watching:
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
    except InterruptedTrainingError as error:
        screen.note(str(error))
        raise typer.Exit(exit_code(error)) from error
    except DivergedError as error:
        if error.fitted is not None:
            _finish(run, record, material, error.fitted)
        raise
    _finish(run, record, material, fitted)
    shutil.rmtree(run / "checkpoints", ignore_errors=True)  # several times the model, and of no more use


def _finish(run: Path, record: RunRecord, material: Material, fitted: Fitted) -> None:
    """Score, save and say what to do next."""
    predictor = of_saved(fitted.saved)
    sets = {"dev": material.dev} | ({"test": material.test} if material.test else {})
    scores = {name: report.scores_of(predictor, data) for name, data in sets.items()}
    for name, one in scores.items():
        screen.say(f"{name}: {report.summary(one)}")
    limits = report.limits_of(fitted.truncation, fitted.coverage)
    limits += [record.lesson.told()] if record.lesson else []
    known = {"datasets": [record.data.title], "language": "en"} if record.data.is_named else {}
    card = report.card_of(record.data.title, material, scores, versions=dict(record.versions), limits=limits, **known)
    facts = {
        "run": record.id,
        "created": record.created,
        "preset": record.preset_name,
        "data": report.data_facts(material),
        "vectors": record.vectors and [Path(part).name for part in record.vectors.split(",")],
        "teachers": record.lesson and [Path(folder).name for folder in record.lesson.teachers],
        "threads": record.threads,
        "versions": record.versions,
        "scores": {name: {**one.to_dict(), "classes": None, "confusion": None} for name, one in scores.items()},
        "best_epoch": fitted.progress.best_epoch + 1,
        "card": card,  # so that a copy of the model can have the same one
    }
    save_model(run, replace(fitted.saved, provenance=facts), card=card, force=record.force)
    screen.say(f"saved in {run}. Next:")
    screen.say(f"  routepool evaluate {run} LABELLED-FILE")
    screen.say(f"  routepool predict {run} FILE")


def _clear(run: Path) -> None:
    """Remove the state of an older run in this folder, which a resume would take up; its model stays until replaced."""
    if (run / RUN_FILE).exists():
        shutil.rmtree(run / "checkpoints", ignore_errors=True)
        (run / "logs" / "metrics.jsonl").unlink(missing_ok=True)


def _forget_unless_begun(run: Path) -> None:
    """Leave no trace of a run that failed before its first checkpoint: the same command can be given again."""
    if not (run / "checkpoints").exists():
        (run / RUN_FILE).unlink(missing_ok=True)


def _is_finished(run: Path, record: RunRecord) -> bool:
    return (run / "manifest.json").exists() and load_model(run).provenance.get("run") == record.id
