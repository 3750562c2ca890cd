"""Where training stands, and what follows from it: the learning rate, the next epoch, the end."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from routepool.batching import Schedule
from routepool.settings import TrainingConfig


@dataclass(frozen=True)
class Progress:
    """All of a training run's state that is not a tensor; a checkpoint holds it."""

    schedule: Schedule
    epoch: int = 0
    index: int = 0  # batches of this epoch that were consumed
    step: int = 0
    best_score: float = -1.0
    best_epoch: int = -1  # whose weights are kept: with kept_epoch=last every epoch counts as better
    stale: int = 0  # epochs since the best

    @classmethod
    def start(cls, config: TrainingConfig) -> Self:
        """Before the first step."""
        return cls(Schedule(config.batch_size, config.window))

    def after_step(self) -> Self:
        """One batch more."""
        return replace(self, index=self.index + 1, step=self.step + 1)

    def after_epoch(self, score: float, config: TrainingConfig, examples: int) -> Self:
        """The next epoch: batch halved and window doubled if the score did not get better."""
        if score > self.best_score or config.kept_epoch == "last":
            return replace(self, epoch=self.epoch + 1, index=0, stale=0, best_score=score, best_epoch=self.epoch)
        schedule = self.schedule.after_no_improvement(config.smallest_batch, examples)
        return replace(self, epoch=self.epoch + 1, index=0, stale=self.stale + 1, schedule=schedule)

    def is_over(self, config: TrainingConfig) -> bool:
        """The epochs are used up, or `patience` of them brought nothing."""
        return self.epoch >= config.epochs or self.stale >= config.patience

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        return cls(**{**values, "schedule": Schedule(**values["schedule"])})


def learning_rate(config: TrainingConfig, step: int, steps: int = 0) -> float:
    """Exponential decay in stairs, or a straight line down, both with a floor; a rise before it if there is a warm-up.

    Args:
        config: the initial rate and how it changes.
        step: from 0.
        steps: of the whole training, if its batches keep their size; warm-up and the line are shares of it.

    >>> rates = [learning_rate(TrainingConfig(learning_rate=0.1, decay=0.5, decay_steps=2), step) for step in range(5)]
    >>> rates
    [0.1, 0.1, 0.05, 0.05, 0.025]
    """
    rise = config.warmup * steps
    if step < rise:
        return config.learning_rate * (step + 1) / (rise + 1)
    if config.schedule == "linear":
        factor = max(0.0, (steps - step) / max(steps - rise, 1))
    else:
        factor = config.decay ** (step // config.decay_steps)
    return max(config.learning_rate * factor, min(config.lowest_rate, config.learning_rate))
