"""What `routepool demo` does: four aggregators side by side, each on one core, and the couplings of three sentences."""

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from routepool.cli import screen
from routepool.cli.painting import paint
from routepool.cli.report import scores_of
from routepool.datasets import load_named
from routepool.explaining import Subject, explain
from routepool.persistence import SavedModel, check_free, save_model
from routepool.scoring.metrics import Difference, Evaluation, difference
from routepool.scoring.predictor import of_saved
from routepool.settings import Preset, change, default_preset
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
    _compare(results)
    saved, scores, _ = results["routing"]
    for sentence in SENTENCES:
        screen.say("")
        screen.say(sentence)
        paint(explain(Subject.of(saved), [sentence])[0])
    card = {"title": "Text classifier of the demonstration", "scores": [_row(scores)]}
    save_model(run, saved, card=card, force=force)
    screen.say(f"saved in {run}. Next:")
    screen.say(f'  echo "A film to see twice." | routepool predict {run} -')


class Trained(NamedTuple):
    """A model and how it did on the test part."""

    saved: SavedModel
    scores: Evaluation
    right: NDArray[np.bool_]  # for each text


def train_one(aggregator: str, epochs: int) -> Trained:
    """One model on one core; settings are fixed beforehand, so the test part is only looked at here."""
    torch.set_num_threads(1)
    parts = load_named(DATA)
    task = Task(parts.train.examples, parts.dev.examples, parts.train.labels, vectors=VECTORS)
    saved = fit(task, _preset(aggregator, epochs)).saved
    predictor, test = of_saved(saved), parts.test
    answers = predictor.predict([example.text for example in test.examples])
    wanted = [(example.labels or ("",))[0] for example in test.examples]
    return Trained(saved, scores_of(predictor, test), np.array(answers) == np.array(wanted))


def _preset(aggregator: str, epochs: int) -> Preset:
    preset = default_preset()
    options = preset.model.aggregator_options if aggregator == "routing" else {}
    model = change(preset.model, aggregator=aggregator, aggregator_options=options)
    return replace(preset, model=model, training=change(preset.training, epochs=epochs))


def _compare(results: dict[str, Trained]) -> None:
    routing = results["routing"].right
    gaps = {name: difference(one.right, routing) for name, one in results.items() if name != "routing"}
    rows = [
        (
            AGGREGATORS[name],
            f"{100 * one.scores.accuracy:.1f}",
            f"{100 * one.scores.accuracy_low:.1f} to {100 * one.scores.accuracy_high:.1f}",
            _points(gaps[name]) if name in gaps else "",
        )
        for name, one in results.items()
    ]
    columns = ("aggregator", "accuracy", "95 % interval", "less routing, same texts")
    screen.table("accuracy on the test part, in %", columns, rows)
    screen.say(_verdict(gaps))


def _points(gap: Difference) -> str:
    return f"{100 * gap.value:+.1f} ({100 * gap.low:+.1f} to {100 * gap.high:+.1f})"


def _verdict(gaps: dict[str, Difference]) -> str:
    """What the table says, and what it does not."""
    better = [AGGREGATORS[name] for name, gap in gaps.items() if gap.low > 0]
    worse = [AGGREGATORS[name] for name, gap in gaps.items() if gap.high < 0]
    said = [f"{' and '.join(better)} did better here than routing"] if better else []
    said += [f"{' and '.join(worse)} did worse"] if worse else []
    first = "; ".join(said) or "No difference from routing is larger than chance"
    return (
        f"{first}. This is one seed of short trainings: over many seeds and sets the aggregator decides little "
        "(docs/reproduction.md). Routing is here for what it shows: where each word went."
    )


def _row(scores: Evaluation) -> dict[str, object]:
    ends = {"low": scores.accuracy_low, "high": scores.accuracy_high}
    return {"set": "test", "score": "accuracy", "value": scores.accuracy, **ends}
