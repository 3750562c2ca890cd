"""Where the time of a training step goes.

Functions are timed by the clock: the profiler would slow down what consists of many small operations. What runs inside
torch in a few large ones is read from the profiler.
"""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from inspect import getattr_static
from statistics import median
from typing import Any
from unittest.mock import patch

from torch.profiler import ProfilerActivity, profile

CLOCKED = {
    "step": ("routepool.training.loop.Trainer._step",),
    "routing": (
        "routepool.layers.aggregation.routing.StandardRouting.forward",
        "routepool.layers.aggregation.gradient.LinearRoutingGradient.backward",
    ),
    "word vectors": ("routepool.layers.blocks.Embedding.forward",),
    "optimiser": ("routepool.training.optimizer.Optimizer.step",),
}
PROFILED = {"LSTM": ("aten::lstm", "MkldnnRnnLayerBackward0"), "word vectors": ("EmbeddingBackward0",)}
PARTS = ("routing", "LSTM", "word vectors", "optimiser")


def shares(train: Callable[[], object], *, rounds_of_each: int) -> dict[str, float]:
    """Of each part of the steps that a call of `train` makes, the median over rounds."""
    train()  # the first call allocates
    rounds = []
    for _ in range(rounds_of_each):
        seconds, inside = clocked(train), profiled(train)
        rounds.append({part: (seconds.get(part, 0) + inside.get(part, 0)) / seconds["step"] for part in PARTS})
    return {part: median(one[part] for one in rounds) for part in PARTS}


def clocked(train: Callable[[], object]) -> dict[str, float]:
    """Processor seconds of the functions of each part."""
    seconds = dict.fromkeys(CLOCKED, 0.0)
    with ExitStack() as stack:
        for part, functions in CLOCKED.items():
            for function in functions:
                stack.enter_context(_timed(function, part, seconds))
        train()
    return seconds


def _timed(function: str, part: str, seconds: dict[str, float]) -> Any:
    module, cls, method = function.rsplit(".", 2)
    owner = getattr(sys.modules[module], cls)
    original = getattr(owner, method)

    def timed(*args: Any, **options: Any) -> Any:
        start = time.thread_time()
        try:
            return original(*args, **options)
        finally:
            seconds[part] += time.thread_time() - start

    is_static = isinstance(getattr_static(owner, method), staticmethod)
    return patch.object(owner, method, staticmethod(timed) if is_static else timed)


def profiled(train: Callable[[], object]) -> dict[str, float]:
    """Processor seconds of operations of torch."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        train()
    took = {event.key: 1e-6 * event.cpu_time_total for event in profiler.key_averages()}
    return {part: sum(took.get(key, 0.0) for key in keys) for part, keys in PROFILED.items()}
