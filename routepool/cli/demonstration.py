"""What `routepool demo` does: four aggregators side by side, each on one core, and the couplings of three sentences."""

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import active_children, get_context
from pathlib import Path

import torch

from routepool.cli import screen
from routepool.cli.painting import paint
from routepool.cli.report import scores_of
from routepool.config import Preset, change
from routepool.datasets import load_named
from routepool.evaluation import Evaluation
from routepool.explaining import Subject, explain
from routepool.persistence import SavedModel, check_free, save
from routepool.predictor import of_saved
from routepool.settings import default_preset
from routepool.training import Task, fit

DATA, VECTORS = "rotten-tomatoes", "wordllama"
AGGREGATORS = {
    "routing": "standard routing",
    "max": "max pooling",
    "mean": "average pooling",
    "attention": "self-attention",
}
SENTENCES = (
    "The plot is thin, but the two leads are a joy to watch.",
    "I wanted to like it; after an hour I only wanted to leave.",
    "Slow, quiet and never dull.",
)


def demonstrate(out: str, *, epochs: int, force: bool) -> None:
    """Train, compare, show, save."""
    run = Path(out)
    check_free(run, force=force)
    parts = load_named(DATA)
    screen.say(f"{DATA}: {len(parts.train.examples)} sentences to learn from, {len(parts.dev.examples)} to stop by, "
               f"{len(parts.test.examples)} to score; word vectors: {VECTORS}; {epochs} epochs each")  # fmt: skip
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), mp_context=get_context("spawn")) as processes:
        trained = {name: processes.submit(train_one, name, epochs) for name in AGGREGATORS}
        results = {}
        try:
            for name, future in trained.items():
                results[name] = future.result()
                screen.note(f"{AGGREGATORS[name]}: trained")
        except KeyboardInterrupt:  # else it would wait until all are trained
            processes.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                child.terminate()
            raise
    _compare({name: scores for name, (_, scores) in results.items()})
    saved, scores = results["routing"]
    for sentence in SENTENCES:
        screen.say("")
        screen.say(sentence)
        paint(explain(Subject.of(saved), [sentence])[0])
    card = {"title": "Text classifier of the demonstration", "scores": [_row(scores)]}
    save(run, saved, card=card, force=force)
    screen.say(f"saved in {run}. Next:")
    screen.say(f'  echo "A film to see twice." | routepool predict {run} -')


def train_one(aggregator: str, epochs: int) -> tuple[SavedModel, Evaluation]:
    """One model on one core; settings are fixed beforehand, so the test part is only looked at here."""
    torch.set_num_threads(1)
    parts = load_named(DATA)
    task = Task(parts.train.examples, parts.dev.examples, parts.train.labels, vectors=VECTORS)
    saved = fit(task, _preset(aggregator, epochs)).saved
    return saved, scores_of(of_saved(saved), parts.test)


def _preset(aggregator: str, epochs: int) -> Preset:
    preset = default_preset()
    options = preset.model.aggregator_options if aggregator == "routing" else {}
    model = change(preset.model, aggregator=aggregator, aggregator_options=options)
    return replace(preset, model=model, training=change(preset.training, epochs=epochs))


def _compare(scores: dict[str, Evaluation]) -> None:
    rows = [
        (
            AGGREGATORS[name],
            f"{100 * one.accuracy:.1f}",
            f"{100 * one.accuracy_low:.1f} to {100 * one.accuracy_high:.1f}",
        )
        for name, one in scores.items()
    ]
    screen.table("accuracy on the test part, in %", ("aggregator", "accuracy", "95 % interval"), rows)
    screen.say("One seed and a small test set: differences within the intervals decide nothing.")


def _row(scores: Evaluation) -> dict[str, object]:
    ends = {"low": scores.accuracy_low, "high": scores.accuracy_high}
    return {"set": "test", "score": "accuracy", "value": scores.accuracy, **ends}
