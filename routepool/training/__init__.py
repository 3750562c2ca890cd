"""Examples -> a trained model, as in the paper."""

from routepool.errors import InterruptedTrainingError
from routepool.training.fitting import Fitted, Task, fit
from routepool.training.hooks import (
    LOGGERS,
    EpochReport,
    Hook,
    MetricsFile,
    ProgressBar,
    StartReport,
    StepReport,
    duration,
)
from routepool.training.loop import DivergedError, Progress, Trainer
from routepool.training.objective import Examples, Objective, balanced_weights
from routepool.training.optimizer import learning_rate
from routepool.training.process import check_device
from routepool.training.teaching import Teacher, check_teachers, teacher_logits

__all__ = [
    "LOGGERS",
    "DivergedError",
    "EpochReport",
    "Examples",
    "Fitted",
    "Hook",
    "InterruptedTrainingError",
    "MetricsFile",
    "Objective",
    "Progress",
    "ProgressBar",
    "StartReport",
    "StepReport",
    "Task",
    "Teacher",
    "Trainer",
    "balanced_weights",
    "check_device",
    "check_teachers",
    "duration",
    "fit",
    "learning_rate",
    "teacher_logits",
]
