"""Recurrent encoders on reversed rows against packed sequences, and what a pass costs beside its tokens.

python benchmarks/encoder.py            rewrites the tables of docs/performance.md (about 25 minutes)
python benchmarks/encoder.py --long     that of 1,000 to 8,000 tokens alone, one call of each (about 20 minutes)
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import product

import measure
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from routepool.layers import Aggregator, BiGRU, BiLSTM, Encoder, MaxPooling, MeanPooling, StandardRouting
from routepool.model import Level
from routepool.training.process import kept_buffers

HIDDEN = 200
# Size of the word vectors, and the shortest text of a batch as a share of the longest: batches of near-equal length, as
# training makes them, or mixed ones; vectors of 100 as in GloVe's smaller files, or of 300 as in the paper.
SETTINGS = [(100, 0.9), (100, 0.5), (300, 0.9), (300, 0.5)]
SHAPES = [(64, 20), (64, 50), (32, 200), (8, 1000)]
LONG = [(32, 1000), (8, 8000)]  # a packed step takes minutes
CONTENDERS: dict[str, tuple[type[Encoder], type[nn.LSTM] | type[nn.GRU]]] = {
    "bilstm": (BiLSTM, nn.LSTM),
    "bigru": (BiGRU, nn.GRU),
}


PACKED, OURS, GROUPED = "packed", "routepool", "in a level"


def prepare(
    encoder: str,
    batch: int,
    tokens: int,
    *,
    contender: str,
    features: int = 300,
    shortest: float = 0.5,
    backward: bool = True,
) -> Callable[[], object]:
    """One call on texts of `tokens` and less, down to the share `shortest`."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    states = torch.randn(batch, tokens, features, requires_grad=backward)
    lengths = torch.linspace(shortest * tokens, tokens, batch).round().long()
    mask = torch.arange(tokens) < lengths.unsqueeze(1)
    run = _contender(contender, features, *CONTENDERS[encoder])

    def call() -> None:
        with torch.set_grad_enabled(backward):
            encoded = run(states, lengths, mask)
        if backward:
            torch.autograd.backward(encoded.sum())

    return call


def _contender(
    name: str, features: int, ours: type[Encoder], theirs: type[nn.LSTM] | type[nn.GRU]
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    if name == OURS:
        encoder = ours(features, HIDDEN)
        return lambda states, lengths, mask: encoder(states, mask)
    if name == GROUPED:
        level = Level(ours(features, HIDDEN), MeanPooling(2 * HIDDEN))
        return lambda states, lengths, mask: level(states, mask)
    network = theirs(features, HIDDEN, batch_first=True, bidirectional=True)

    def packed(states: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
        sequence = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
        encoded, _ = pad_packed_sequence(network(sequence)[0], batch_first=True)
        return encoded

    return packed


def times() -> list[str]:
    rate = sgemm()
    rows = []
    cases = [("bilstm", setting) for setting in SETTINGS] + [("bigru", SETTINGS[-1])]
    for (encoder, (features, shortest)), (batch, tokens) in product(cases, SHAPES):
        for backward in (False, True):
            make = partial(prepare, encoder, batch, tokens, features=features, shortest=shortest, backward=backward)
            calls = {name: make(contender=name) for name in (OURS, GROUPED, PACKED)}
            took = measure.milliseconds(calls, rounds=7 if tokens < 1000 else 3)
            figures = [f"{took[name]:.0f}" for name in (OURS, GROUPED, PACKED)]
            ratios = [f"**{took[PACKED] / took[name]:.1f}**" for name in (OURS, GROUPED)]
            what = "forward + backward" if backward else "forward"
            bound = limit(rate, features, shortest, batch * tokens) if encoder == "bilstm" and backward else ""
            rows.append(
                [f"{encoder}, {features}", f"{shortest:.0%}", f"{batch} x {tokens}", what, *figures, *ratios, bound]
            )
            print(rows[-1], flush=True)
    header = [
        "encoder, vectors",
        "shortest",
        "batch x tokens",
        "milliseconds of",
        *(OURS, GROUPED, PACKED),
        *(f"{name}: times faster" for name in (OURS, GROUPED)),
        "arithmetic alone",
    ]
    said = (
        f"A plain product of matrices reaches {rate:.0f} GFLOP/s in the same run; the last column is the time of the "
    )
    return [*measure.table(header, rows), "", said + "bilstm's products for the real tokens at that rate."]


def long_times() -> list[str]:
    """The same in the first setting where one packed step takes minutes: one call of each, nothing repeated."""
    rows = []
    features, shortest = SETTINGS[0]
    for (batch, tokens), backward in product(LONG, (False, True)):
        make = partial(prepare, "bilstm", batch, tokens, features=features, shortest=shortest, backward=backward)
        took = {name: measure.milliseconds_of_one(make(contender=name)) for name in (OURS, PACKED)}
        what = "forward + backward" if backward else "forward"
        figures = [f"{took[name] / 1e3:.1f}" for name in (OURS, PACKED)]
        rows.append([f"{batch} x {tokens}", what, *figures, f"**{took[PACKED] / took[OURS]:.1f}**"])
        print(rows[-1], flush=True)
    return measure.table(["batch x tokens", "seconds of", OURS, PACKED, "times faster"], rows)


def limit(rate: float, features: int, shortest: float, tokens: int) -> str:
    """Milliseconds for the gates of every real token in two directions, and twice that back."""
    flop_of_token = 3 * 2 * 2 * 4 * HIDDEN * (features + HIDDEN)
    return f"{flop_of_token * (1 + shortest) / 2 * tokens / rate / 1e6:.0f}"


def sgemm() -> float:
    """The limit: GFLOP/s of a large product in float32."""
    size = 1024
    left, right = torch.randn(size, size), torch.randn(size, size)
    (took,) = measure.milliseconds({"product": lambda: left @ right}).values()
    return 2 * size**3 / took / 1e6


def memory() -> list[str]:
    rows = []
    for batch, tokens in SHAPES + LONG:
        contenders = (OURS, GROUPED, PACKED)[: 2 if tokens > 1000 else 3]  # packing takes too long to be watched
        peak = {
            name: measure.peak_megabytes(__file__, encoder="bilstm", batch=batch, tokens=tokens, contender=name)
            for name in contenders
        }
        figures = [f"{peak[name]:.0f}" if name in peak else "-" for name in (OURS, GROUPED, PACKED)]
        rows.append([f"{batch} x {tokens}", *figures])
        print(rows[-1], flush=True)
    return measure.table(["batch x tokens", OURS, GROUPED, PACKED], rows)


def pass_costs() -> list[str]:
    """Forward and backward on rows x tokens of many shapes: what a pass costs beside its rows and their tokens."""
    parts: dict[str, Encoder | Aggregator] = {
        "bilstm, 100": BiLSTM(100, HIDDEN),
        "bilstm, 300": BiLSTM(300, HIDDEN),
        "routing": StandardRouting(2 * HIDDEN),
        "max": MaxPooling(2 * HIDDEN),
    }
    rows = []
    for name, part in parts.items():
        a_pass, a_row, a_token = _costs(part)
        rows.append([name, *(f"{cost:.3f}" for cost in (a_pass, a_row, a_token)), f"{a_pass / a_token:.0f}"])
        print(rows[-1], flush=True)
    return measure.table(["milliseconds of", "a pass", "a row", "a token", "a pass, in tokens"], rows)


def _costs(part: Encoder | Aggregator) -> list[float]:
    grid = list(product((1, 4, 16, 64), (5, 10, 20, 40)))

    def call(rows: int, tokens: int) -> Callable[[], object]:
        states = torch.randn(rows, tokens, part.in_features, requires_grad=True)
        mask = torch.ones(rows, tokens, dtype=torch.bool)

        def run() -> None:
            made = part(states, mask)
            torch.autograd.backward((made if isinstance(part, Encoder) else made[0]).sum())

        return run

    took = measure.milliseconds({f"{rows} x {tokens}": call(rows, tokens) for rows, tokens in grid})
    # Relative errors count: the cheap shapes tell what a pass costs.
    shapes = np.array([[1.0, rows, rows * tokens] for rows, tokens in grid]) / np.array(list(took.values()))[:, None]
    costs, *_ = np.linalg.lstsq(shapes, np.ones(len(grid)), rcond=None)
    return [float(cost) for cost in costs]


if __name__ == "__main__" and not measure.print_peak_of(prepare):
    with kept_buffers():  # as in training; all contenders alike
        if "--long" in sys.argv:
            measure.write_section("encoder-long", long_times())
        else:
            measure.write_section("encoder-times", [measure.machine(), "", *times()])
            measure.write_section("encoder-pass", pass_costs())
            measure.write_section("encoder-memory", memory())
