"""What others may watch or write while a model trains."""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class StepReport:
    """One batch was learned."""

    step: int
    epoch: int
    index: int
    batches: int  # in this epoch
    examples: int
    loss: float
    rate: float


@dataclass(frozen=True)
class EpochReport:
    """One epoch was learned and the dev set scored."""

    epoch: int
    step: int
    loss: float  # mean over the epoch's batches
    score: float
    best_score: float
    examples_per_second: float
    seconds: float
    waited: float  # seconds in which training waited for its data
    batch_size: int
    window: int


class Hook:
    """Does nothing; override what you want to see."""

    def on_step(self, report: StepReport) -> None:
        """After each step."""

    def on_epoch(self, report: EpochReport) -> None:
        """After each epoch."""


class MetricsFile(Hook):
    """One JSON line for each epoch, appended: `logs/metrics.jsonl` of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_epoch(self, report: EpochReport) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time.time(), **asdict(report)}) + "\n")
