"""The training loop: batches in, the best model on dev out; a stopped training resumes as if it had never stopped."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from routepool.arrays import Floats32
from routepool.batching import Batch, Prefetched, Schedule, SlidingBucket, forget_words, length_of
from routepool.errors import InterruptedTrainingError, RoutepoolError
from routepool.layers.encoders import PretrainedEncoder
from routepool.model import Classifier
from routepool.persistence import Checkpoint, prune, write_checkpoint
from routepool.printable import plural
from routepool.scoring.torch_backend import depth_of, logits_of
from routepool.settings import TrainingConfig
from routepool.training.averaging import AveragedWeights
from routepool.training.hooks import EpochReport, Hook, StepReport
from routepool.training.objective import Examples, Objective
from routepool.training.optimizer import Optimizer, learning_rate
from routepool.training.process import StopRequest, kept_buffers, seed_device, stop_requests

WORDS_AT_ONCE = 2**13  # whose states a step holds, whatever the length of the texts and the size of the batch


@dataclass(frozen=True)
class Progress:
    """The state of a training that is not a tensor; a checkpoint holds it."""

    schedule: Schedule
    epoch: int = 0
    index: int = 0  # of the next batch in this epoch
    step: int = 0
    best_score: float = -1.0
    best_epoch: int = -1  # whose weights are kept: with kept_epoch=last every epoch counts as better
    stale: int = 0  # epochs since the best

    def after_epoch(self, score: float, config: TrainingConfig, examples: int) -> Self:
        """The next epoch; if the score is no better, the batch is halved and the window doubled."""
        if score > self.best_score or config.kept_epoch == "last":
            return replace(self, epoch=self.epoch + 1, index=0, stale=0, best_score=score, best_epoch=self.epoch)
        schedule = self.schedule.after_no_improvement(config.smallest_batch, examples)
        return replace(self, epoch=self.epoch + 1, index=0, stale=self.stale + 1, schedule=schedule)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read what `dataclasses.asdict` gave."""
        return cls(**{**values, "schedule": Schedule(**values["schedule"])})


class DivergedError(RoutepoolError):
    """The loss is no longer a number.

    Attributes:
        fitted: the model of the best epoch, ready to save, if `fit` raises it; None if no epoch was finished.
    """

    fitted: Any = None


class Trainer:
    """Trains one model.

    Every batch, and the dropout in it, is a function of the seed, the epoch and the place in it, so the same seed gives
    the same weights to the last bit (on the same machine, with as many threads), whether or not training was
    interrupted.

    Args:
        model: learns in place; afterwards, also when the loss diverged, it holds the weights of the best epoch on dev
            (or of the last, by the setting `kept_epoch`), averaged over the steps before if the setting
            `average_weights` is above 0.
        train: what it learns from.
        dev: decides which epoch is the best and when training ends.
        objective: loss and score.
        config: the settings of training.
        known: (V,) bool, words with a pre-trained vector, which may be frozen at first.
        hooks: watch it.
        run: where checkpoints are written; None for none.
        device: where to compute.
    """

    def __init__(
        self,
        model: Classifier,
        train: Examples,
        dev: Examples,
        objective: Objective,
        config: TrainingConfig,
        *,
        known: Tensor | None = None,
        hooks: Sequence[Hook] = (),
        run: Path | None = None,
        device: str = "cpu",
    ) -> None:
        self.device = torch.device(device)
        self.model, self.train, self.dev = model.to(self.device), train, dev
        self.objective, self.config, self.hooks, self.run = objective, config, hooks, run
        self.optimizer = Optimizer(model, config)
        self.average = AveragedWeights(model, config.average_weights) if config.average_weights else None
        self.depth = depth_of(model)
        self.progress = Progress(Schedule(config.batch_size, config.window))
        self.best = _copy(model)
        self._frozen = known if known is None or config.frozen_rows == "known" else ~known
        lengths = [length_of(text, self.depth) for text in train.encoded]
        self.bucket = SlidingBucket(lengths, seed=config.seed, replacement=config.replacement)
        self._steps = config.epochs * self.bucket.number(config.batch_size)

    def fit(self, checkpoint: Checkpoint | None = None) -> Progress:
        """Train to the end, from the beginning or from a checkpoint."""
        if checkpoint is not None:
            self._restore(checkpoint)
        encoder = self.model.levels[0].encoder
        states = encoder.keeping_states() if isinstance(encoder, PretrainedEncoder) else nullcontext()
        try:
            with stop_requests() as stop, kept_buffers(), states:
                while self.progress.epoch < self.config.epochs and self.progress.stale < self.config.patience:
                    self._epoch(stop)
        finally:
            self.model.load_state_dict(self.best)
            self.model.eval()
        return self.progress

    def _epoch(self, stop: StopRequest) -> None:
        epoch, schedule = self.progress.epoch, self.progress.schedule
        self.model.train()
        if self.optimizer.embedding is not None:
            self.optimizer.embedding.freeze(self._frozen if epoch < self.config.frozen_epochs else None)
        losses: list[float] = []
        examples, start = 0, time.perf_counter()
        number = self.bucket.number(schedule.batch_size)
        with Prefetched(self._batches(number)) as batches:
            for batch in batches:
                losses.append(self._step(batch, number))
                examples += len(batch.rows)
                self._checkpoint_between_steps(stop)
        seconds = time.perf_counter() - start
        with self._judged_weights():
            score = self._score()
            self.progress = self.progress.after_epoch(score, self.config, len(self.train.encoded))
            if self.progress.stale == 0:
                self.best = _copy(self.model)
        if self.run is not None:
            self._checkpoint()
        report = EpochReport(
            epoch=epoch,
            step=self.progress.step,
            loss=float(np.mean(losses)) if losses else float("nan"),
            score=score,
            best_score=self.progress.best_score,
            is_best=self.config.kept_epoch == "best" and self.progress.stale == 0,
            examples_per_second=examples / max(seconds, 1e-9),
            seconds=seconds,
            waited=batches.waited,
            batch_size=schedule.batch_size,
            window=schedule.window,
        )
        for hook in self.hooks:
            hook.on_epoch(report)

    def _judged_weights(self) -> AbstractContextManager[None]:
        """Around what dev scores and what is kept: the averaged weights, if there are any."""
        return nullcontext() if self.average is None else self.average.in_place()

    def _score(self) -> float:
        logits = logits_of(self.model, self.dev.encoded)
        if not np.isfinite(logits).all():  # after the last step of an epoch no loss shows it
            raise DivergedError(
                f"the model's answers on dev are no longer numbers after epoch {self.progress.epoch + 1}; "
                "the best model so far is kept. Lower learning_rate"
            )
        return self.objective.score(logits, self.dev.targets)

    def _batches(self, number: int) -> Iterator[Batch]:
        epoch, schedule = self.progress.epoch, self.progress.schedule
        for index in range(self.progress.index, number):
            rows = self.bucket.rows(epoch, index, batch_size=schedule.batch_size, window=schedule.window)
            batch = Batch.of(self.train.encoded, rows, self.depth)
            yield forget_words(batch, self.config.word_dropout, seed=self.config.seed, epoch=epoch, index=index)

    def _step(self, batch: Batch, number: int) -> float:
        progress = self.progress
        # Dropout depends on the step alone, never on what ran before it.
        key = np.random.SeedSequence((self.config.seed, progress.epoch, progress.index))
        seed_device(self.device, int(key.generate_state(1, np.uint64)[0]))
        value = self._learn(batch)
        if not np.isfinite(value):
            raise DivergedError(
                f"the loss is {value} in epoch {progress.epoch + 1}, batch {progress.index + 1} (training rows "
                f"{', '.join(map(str, batch.rows[:5]))}, ...); the best model so far is kept. Lower learning_rate"
            )
        rate = learning_rate(self.config, progress.step, self._steps)
        with nullcontext() if self.average is None else self.average.following():
            self.optimizer.step(rate)
        self.progress = replace(progress, index=progress.index + 1, step=progress.step + 1)
        report = StepReport(progress.step, progress.epoch, progress.index, number, len(batch.rows), value, rate)
        for hook in self.hooks:
            hook.on_step(report)
        return value

    def _learn(self, batch: Batch) -> float:
        """The gradient of a batch's mean loss, and that loss; a large batch is read in parts that add up to it."""
        value = 0.0
        for part in batch.parts(WORDS_AT_ONCE):
            loss = self._loss(part) * (len(part.rows) / len(batch.rows))
            value += loss.item()
            if np.isfinite(value):
                loss.backward()  # type: ignore[no-untyped-call]
        return value

    def _loss(self, batch: Batch) -> Tensor:
        ids, mask, targets = (
            torch.from_numpy(array).to(self.device) for array in (batch.ids, batch.mask, self.train.targets[batch.rows])
        )
        # In bf16 these are the matrix products of the model; weights, loss and optimiser keep full precision.
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            logits = self.model(ids, mask)
        weights, teacher_logits = (self._rows(of, batch) for of in (self.train.weights, self.train.teacher_logits))
        return self.objective.loss(logits.float(), targets, weights, teacher_logits)

    def _rows(self, values: Floats32 | None, batch: Batch) -> Tensor | None:
        return None if values is None else torch.from_numpy(values[batch.rows]).to(self.device)

    def _checkpoint_between_steps(self, stop: StopRequest) -> None:
        every = self.config.checkpoint_steps
        due = every and self.progress.step % every == 0
        if self.run is not None and (due or stop.is_set()):
            self._checkpoint()
        if stop.is_set():
            done = f"training was stopped after {plural(self.progress.step, 'step')}"
            how = f"; go on with: routepool train --resume {self.run}" if self.run is not None else ""
            raise InterruptedTrainingError(f"{done}{how}", stop.number)

    def _checkpoint(self) -> None:
        assert self.run is not None
        at_best = self.progress.index == 0 and self.progress.stale == 0
        tensors = {
            **{f"model/{name}": tensor for name, tensor in self.model.state_dict().items()},
            # Right after the best epoch these follow from the others; word vectors are most of a checkpoint.
            **{f"best/{name}": tensor for name, tensor in ({} if at_best else self.best).items()},
            **{f"optimizer/{name}": tensor for name, tensor in self.optimizer.tensors().items()},
            **{f"average/{name}": tensor for name, tensor in (self.average.tensors() if self.average else {}).items()},
        }
        write_checkpoint(self.run, tensors, asdict(self.progress))
        prune(self.run)

    def _restore(self, checkpoint: Checkpoint) -> None:
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}, "average": {}}
        for name, tensor in checkpoint.tensors.items():
            part, _, inner = name.partition("/")
            parts[part][inner] = tensor
        self.model.load_state_dict(parts["model"])
        self.optimizer.load(parts["optimizer"])
        if self.average is not None:
            self.average.load(parts["average"])
        with self._judged_weights():
            self.best = parts["best"] or _copy(self.model)
        self.progress = Progress.from_dict(checkpoint.state)


def _copy(model: Classifier) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
