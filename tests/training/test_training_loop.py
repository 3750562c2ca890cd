"""When training stops, what it keeps, and what it tells on the way."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support import planted

from routepool.arrays import Floats32
from routepool.batching import Batch, Schedule
from routepool.errors import InputError
from routepool.persistence import latest_checkpoint, load_model, save_model
from routepool.settings import TrainingConfig
from routepool.training import (
    DivergedError,
    EpochReport,
    Hook,
    MetricsFile,
    Objective,
    Progress,
    StepReport,
    Trainer,
    loop,
    process,
)

TABLE = "levels.0.embedding.weight"


@dataclass(frozen=True)
class Scripted(Objective):
    """An objective whose dev scores are given."""

    scores: Iterator[float] = field(kw_only=True)

    def score(self, logits: Floats32, targets: NDArray[np.int64]) -> float:
        return next(self.scores)


class Watching(Hook):
    """Writes down what it is told, and the weights after each epoch."""

    def __init__(self, model: torch.nn.Module | None = None) -> None:
        self.model = model
        self.steps: list[StepReport] = []
        self.epochs: list[EpochReport] = []
        self.tables: list[torch.Tensor] = []

    def on_step(self, report: StepReport) -> None:
        self.steps.append(report)

    def on_epoch(self, report: EpochReport) -> None:
        self.epochs.append(report)
        if self.model is not None:
            self.tables.append(self.model.get_parameter(TABLE).detach().clone())


def scripted(scores: Sequence[float], *, hooks: Sequence[Hook] = (), **settings: Any) -> tuple[Trainer, Watching]:
    made = planted.train(planted.tiny(epochs=1)).saved
    watching = Watching(made.classifier)
    config = planted.tiny(**{"epochs": 50, **settings}).training
    objective = Scripted(planted.LABELS, scores=iter(scores))
    return planted.trainer(made, config, objective=objective, hooks=[watching, *hooks]), watching


def test_training_stops_after_patience_epochs_without_a_better_score_and_keeps_the_best_weights() -> None:
    trainer, watching = scripted([0.5, 0.7, 0.7, 0.6, 0.65, 0.9], patience=3)  # an equal score is not better
    progress = trainer.fit()
    assert (progress.epoch, progress.best_epoch, progress.best_score, progress.stale) == (5, 1, 0.7, 3)
    assert torch.equal(trainer.model.get_parameter(TABLE), watching.tables[1])
    assert not torch.equal(watching.tables[1], watching.tables[4])
    assert not trainer.model.training


def test_a_better_score_begins_the_count_anew() -> None:
    trainer, _ = scripted([0.5, 0.4, 0.6, 0.5, 0.5, 0.9], patience=2)
    assert (trainer.fit().epoch, trainer.progress.best_epoch) == (5, 2)


def test_the_last_epoch_is_kept_whatever_dev_says_if_that_is_asked_for() -> None:
    trainer, watching = scripted([0.5, 0.7, 0.4, 0.3], epochs=4, patience=1, kept_epoch="last")
    progress = trainer.fit()
    assert (progress.epoch, progress.best_epoch, progress.best_score) == (4, 3, 0.3)
    assert torch.equal(trainer.model.get_parameter(TABLE), watching.tables[3])
    assert {each.batch_size for each in watching.epochs} == {8}


def test_training_ends_with_its_epochs() -> None:
    trainer, watching = scripted([0.1, 0.2, 0.3], epochs=3)
    assert trainer.fit().epoch == 3
    assert torch.equal(trainer.model.get_parameter(TABLE), watching.tables[2])


def test_the_batch_is_halved_and_the_window_doubled_after_an_epoch_without_a_better_score() -> None:
    trainer, watching = scripted([0.5, 0.4, 0.6, 0.5, 0.5, 0.5], patience=3)  # batch 8 down to 2, window 16 up to 60
    trainer.fit()
    assert [(each.batch_size, each.window) for each in watching.epochs] == [
        (8, 16), (8, 16), (4, 32), (4, 32), (2, 60), (2, 60),
    ]  # fmt: skip
    assert [sum(step.epoch == epoch for step in watching.steps) for epoch in range(6)] == [8, 8, 15, 15, 30, 30]


def test_progress_is_the_same_after_a_round_through_json() -> None:
    config = TrainingConfig()
    start = Progress(Schedule(config.batch_size, config.window), index=1, step=1)
    progress = start.after_epoch(0.1, config, 9000).after_epoch(0.05, config, 9000)
    assert Progress.from_dict(json.loads(json.dumps(asdict(progress)))) == progress
    assert (progress.schedule.batch_size, progress.schedule.window, progress.stale) == (32, 9000, 1)


class Poison(Hook):
    """Spoils the weights after a step, as a gradient that overflowed would."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.model: torch.nn.Module | None = None

    def on_step(self, report: StepReport) -> None:
        if report.step == self.step:
            assert self.model is not None
            torch.nn.init.constant_(self.model.get_parameter("head.output.bias"), float("nan"))


@pytest.mark.parametrize(
    ("step", "told"),
    [(9, "the loss is nan in epoch 2, batch 3 "), (15, "answers on dev are no longer numbers after epoch 2;")],
    ids=["in an epoch", "at its end"],
)
def test_a_loss_that_is_no_number_stops_at_once_and_leaves_the_best_model(step: int, told: str) -> None:
    poison = Poison(step)
    trainer, watching = scripted([0.5, 0.9], hooks=[poison])
    poison.model = trainer.model
    with pytest.raises(DivergedError, match=told):
        trainer.fit()
    assert len(watching.steps) == step + 1
    assert torch.equal(trainer.model.get_parameter(TABLE), watching.tables[0])
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
    assert not trainer.model.training


def test_the_error_names_rows_of_the_batch() -> None:
    poison = Poison(0)
    trainer, _ = scripted([], hooks=[poison])
    poison.model = trainer.model
    rows = trainer.bucket.rows(0, 1, batch_size=8, window=16)
    with pytest.raises(DivergedError, match=rf"training rows {', '.join(map(str, rows[:5]))}, \.\.\."):
        trainer.fit()


class Diverging(Hook):
    """Says after an epoch that the loss is no number."""

    def __init__(self, after: int) -> None:
        self.after = after

    def on_epoch(self, report: EpochReport) -> None:
        if report.epoch == self.after:
            raise DivergedError("as if the loss were nan")


def test_fit_hands_over_the_last_good_model_so_that_it_can_be_saved(tmp_path: Path) -> None:
    whole = planted.train(planted.tiny(epochs=2))
    with pytest.raises(DivergedError) as caught:
        planted.train(planted.tiny(epochs=5), hooks=[Diverging(1)])
    fitted = caught.value.fitted
    assert fitted.progress.best_epoch == whole.progress.best_epoch
    assert planted.identical(fitted, whole)
    save_model(tmp_path / "kept", fitted.saved, card={})
    assert planted.identical(load_model(tmp_path / "kept"), whole.saved)


def test_fit_hands_over_nothing_where_no_epoch_was_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Objective, "loss", lambda self, logits, *_: logits.sum() * float("inf"))
    with pytest.raises(DivergedError, match="epoch 1, batch 1 ") as caught:
        planted.train()
    assert caught.value.fitted is None


def test_hooks_are_called_in_their_order_after_the_checkpoint(tmp_path: Path) -> None:
    calls: list[tuple[str, str, int]] = []

    class Named(Hook):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_step(self, report: StepReport) -> None:
            calls.append((self.name, "step", report.step))

        def on_epoch(self, report: EpochReport) -> None:
            checkpoint = latest_checkpoint(tmp_path)
            assert checkpoint is not None
            assert checkpoint.state["epoch"] == report.epoch + 1
            calls.append((self.name, "epoch", report.epoch))

    planted.train(planted.tiny(epochs=2, batch_size=30), hooks=[Named("a"), Named("b")], run=tmp_path)
    wanted = [("step", 0), ("step", 1), ("epoch", 0), ("step", 2), ("step", 3), ("epoch", 1)]
    assert calls == [(name, *call) for call in wanted for name in "ab"]


def test_reports_add_up() -> None:
    watching = Watching()
    planted.train(planted.tiny(epochs=2, decay=0.5, decay_steps=4), hooks=[watching])
    assert [step.index for step in watching.steps] == [*range(8), *range(8)]
    assert [step.rate for step in watching.steps] == [0.01 * 0.5 ** (number // 4) for number in range(16)]
    assert {step.batches for step in watching.steps} == {8}
    assert sum(step.examples for step in watching.steps) == 2 * 60
    first = watching.epochs[0]
    assert first.loss == pytest.approx(sum(step.loss for step in watching.steps[:8]) / 8)
    assert first.step == 8
    assert 0 <= first.waited <= first.seconds
    assert first.examples_per_second == pytest.approx(60 / first.seconds)


def test_the_metrics_file_has_one_line_of_json_for_each_epoch(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "metrics.jsonl"
    planted.train(planted.tiny(epochs=2), hooks=[MetricsFile(path)])
    lines = [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1]
    assert all(line["loss"] > 0 and 0 <= line["score"] <= 1 for line in lines)


def test_an_epoch_resumed_after_its_last_batch_has_no_loss_and_still_a_line_of_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = planted.train(planted.tiny(epochs=1))
    score = Objective.score
    monkeypatch.setattr(Objective, "score", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        planted.train(planted.tiny(epochs=1, checkpoint_steps=8), run=tmp_path)
    monkeypatch.setattr(Objective, "score", score)
    path = tmp_path / "metrics.jsonl"
    again = planted.train(planted.tiny(epochs=1), checkpoint=latest_checkpoint(tmp_path), hooks=[MetricsFile(path)])
    assert json.loads(path.read_text(), parse_constant=pytest.fail)["loss"] is None
    assert planted.identical(again, whole)


def test_a_training_without_dev_texts_is_refused() -> None:
    with pytest.raises(InputError, match="needs a dev set"):
        planted.train(of=planted.task(dev=0))


@pytest.mark.parametrize(("library", "expected"), [("glibc", [(-4, 0), (-4, 65_536)]), ("", [])])
def test_memory_is_kept_between_steps_under_glibc_alone_and_given_back_after_an_error_too(
    library: str, expected: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, ...]] = []

    class Recorder:
        def mallopt(self, name: int, value: int) -> None:
            calls.append((name, value))

        def malloc_trim(self, left: int) -> None:
            calls.append((left,))

    monkeypatch.setattr("routepool.training.process.ctypes.CDLL", lambda name: Recorder())
    monkeypatch.setattr("routepool.training.process.platform.libc_ver", lambda: (library, ""))
    with pytest.raises(ZeroDivisionError), process.kept_buffers():
        raise ZeroDivisionError
    assert [call for call in calls if call[0] == -4] == expected
    assert calls[-1:] == ([(0,)] if library else [])


@pytest.mark.parametrize("sentences", [1, 3])
def test_a_large_batch_read_in_parts_teaches_the_same(monkeypatch: pytest.MonkeyPatch, sentences: int) -> None:
    task = planted.task(sentences=sentences)
    settings = planted.tiny(depth=min(sentences, 2), dropout=0.0, class_weight="balanced", epochs=2)
    parts: list[int] = []

    def trained(words: int) -> dict[str, torch.Tensor]:
        monkeypatch.setattr(loop, "WORDS_AT_ONCE", words)
        return planted.train(settings, of=task, hooks=[Watching()]).saved.classifier.state_dict()

    cut = Batch.parts

    def counted(batch: Batch, words: int) -> list[Batch]:
        parts.append(len(cut(batch, words)))
        return cut(batch, words)

    monkeypatch.setattr(Batch, "parts", counted)
    whole = trained(10**6)
    assert set(parts) == {1}
    read_in_parts = trained(12)
    assert max(parts) > 2
    for name, tensor in whole.items():
        torch.testing.assert_close(read_in_parts[name], tensor, rtol=1e-4, atol=1e-5)
