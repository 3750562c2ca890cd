"""Routing without its messages against the loop that builds them: time, memory, and how both grow.

python benchmarks/routing.py     rewrites the tables and the picture of docs/performance.md
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import measure
import torch
from torch import Tensor

from routepool import MeanPooling, StandardRouting

FEATURES = 400
SHAPES = [(64, 20), (64, 50), (32, 200), (32, 1000), (8, 8000)]
OURS, KEPT, PLAIN, MEAN = "routepool", "messages kept (tanh)", "plain loop", "mean pooling"


def plain_loop(states: Tensor, mask: Tensor, layer: StandardRouting) -> Tensor:
    """Algorithm 1 as it is usually written: every message built, then summed with broadcasting."""
    messages = torch.einsum("btd,mcd->btmc", states, layer.weight) + layer.bias
    logits = messages.new_zeros(messages.shape[:3])
    for iteration in range(layer.iterations):
        coupling = logits.softmax(-1) * mask.unsqueeze(-1)
        sums = (coupling.unsqueeze(-1) * messages).sum(1)
        square = (sums * sums).sum(-1, keepdim=True)
        capsules = square / (1 + square) * sums / (square + 1e-9).sqrt()
        if iteration + 1 < layer.iterations:
            logits = logits + (messages * capsules.unsqueeze(1)).sum(-1)
    return capsules.flatten(1)


def prepare(
    contender: str,
    batch: int,
    tokens: int,
    *,
    backward: bool = True,
    states_learn: bool = True,
    options: dict[str, Any] | None = None,
) -> Callable[[], object]:
    """One call of a contender on texts between half and all of `tokens` long."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    states = torch.randn(batch, tokens, FEATURES, requires_grad=backward and states_learn)
    lengths = torch.linspace(tokens // 2, tokens, batch).round().unsqueeze(1)
    mask = torch.arange(tokens) < lengths
    run = _contender(contender, options or {})
    if not backward:
        return partial(_forward, run, states, mask)
    return partial(_forward_and_backward, run, states, mask)


def _contender(name: str, options: dict[str, Any]) -> Callable[[Tensor, Tensor], Tensor]:
    if name == MEAN:
        pooling = MeanPooling(FEATURES)
        return lambda states, mask: pooling(states, mask)[0]
    layer = StandardRouting(FEATURES, **options, messages="tanh" if name == KEPT else "linear")
    if name == PLAIN:
        return lambda states, mask: plain_loop(states, mask, layer)
    return lambda states, mask: layer(states, mask)[0]


def _forward(run: Callable[[Tensor, Tensor], Tensor], states: Tensor, mask: Tensor) -> None:
    with torch.no_grad():
        run(states, mask)


def _forward_and_backward(run: Callable[[Tensor, Tensor], Tensor], states: Tensor, mask: Tensor) -> None:
    vector = run(states, mask)
    if vector.requires_grad:
        torch.autograd.backward(vector.sum())


def times() -> list[str]:
    rows = []
    for batch, tokens in SHAPES:
        for backward in (False, True):
            calls = {name: prepare(name, batch, tokens, backward=backward) for name in (OURS, KEPT, PLAIN, MEAN)}
            took = measure.milliseconds(calls, rounds=7 if tokens < 1000 else 3)
            cells = [f"{took[name]:.1f}" for name in (OURS, KEPT, PLAIN, MEAN)]
            what = "forward + backward" if backward else "forward"
            rows.append([f"{batch} x {tokens}", what, *cells, f"**{took[PLAIN] / took[OURS]:.1f}**"])
            print(rows[-1], flush=True)
    return measure.table(["batch x tokens", "milliseconds of", OURS, KEPT, PLAIN, MEAN, "times faster"], rows)


def memory() -> list[str]:
    rows = []
    for batch, tokens in SHAPES:
        for states_learn in (False, True):
            peak = {
                name: measure.peak_megabytes(
                    __file__, contender=name, batch=batch, tokens=tokens, states_learn=states_learn
                )
                for name in (OURS, KEPT, PLAIN)
            }
            cells = [f"{peak[name]:.0f}" for name in (OURS, KEPT, PLAIN)]
            what = "with a gradient" if states_learn else "without"
            rows.append([f"{batch} x {tokens}", what, *cells, f"**{peak[OURS] / peak[PLAIN]:.3f}**"])
            print(rows[-1], flush=True)
    return measure.table(["batch x tokens", "states", OURS, KEPT, PLAIN, "ratio"], rows)


GROWTH: dict[str, tuple[dict[str, Any], list[int]]] = {
    "tokens": ({"batch": 8}, [250, 500, 1000, 2000, 4000]),
    "capsules": ({"batch": 32, "tokens": 200}, [1, 2, 5, 10, 20]),
    "iterations": ({"batch": 32, "tokens": 200}, [1, 2, 3, 5, 8]),
}


def growth() -> list[str]:
    rows = []
    for axis, (shape, values) in GROWTH.items():
        for value in values:
            arguments = {**shape, axis: value} if axis == "tokens" else {**shape, "options": {axis: value}}
            took = measure.milliseconds({name: prepare(name, **arguments) for name in (OURS, PLAIN)}, rounds=3)
            peak = {name: measure.peak_megabytes(__file__, contender=name, **arguments) for name in (OURS, PLAIN)}
            rows.append(
                [axis, str(value), *(f"{figures[name]:.0f}" for figures in (took, peak) for name in (OURS, PLAIN))]
            )
            print(rows[-1], flush=True)
    draw(rows)
    header = ["growing", "to", f"ms, {OURS}", f"ms, {PLAIN}", f"MB, {OURS}", f"MB, {PLAIN}"]
    return measure.table(header, rows)


def draw(rows: list[list[str]]) -> None:
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, panels = plt.subplots(2, len(GROWTH), figsize=(11, 6), layout="constrained")
    for column, axis in enumerate(GROWTH):
        points = [[float(cell) for cell in row[1:]] for row in rows if row[0] == axis]
        for line, (what, first) in enumerate([("milliseconds", 1), ("megabytes", 3)]):
            panel = panels[line][column]
            for offset, (name, style) in enumerate([(OURS, "o-"), (PLAIN, "s--")]):
                panel.plot(
                    [point[0] for point in points], [point[first + offset] for point in points], style, label=name
                )
            panel.set(xlabel=axis, ylabel=what, ylim=(0, None), xlim=(0, None))
            panel.grid(alpha=0.3)
    panels[0][0].legend()
    figure.suptitle("Forward + backward: what tokens, capsules and iterations cost")
    figure.savefig(measure.DOCS / "routing-growth.png", dpi=110)


if __name__ == "__main__" and not measure.print_peak_of(prepare):
    measure.write_section("routing-times", [measure.machine(), "", *times()])
    measure.write_section("routing-memory", memory())
    measure.write_section("routing-growth", growth())
