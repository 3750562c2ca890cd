"""Recurrent encoders on reversed rows against packed sequences, and what one more step costs.

python benchmarks/encoder.py     rewrites the tables of docs/performance.md
"""

from collections.abc import Callable

import measure
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from routepool.encoding import BiGRU, BiLSTM

FEATURES, HIDDEN = 300, 200
SHAPES = [(64, 20), (64, 50), (32, 200), (8, 1000)]
CONTENDERS = {"bilstm": (BiLSTM, nn.LSTM), "bigru": (BiGRU, nn.GRU)}


def prepare(encoder: str, batch: int, tokens: int, *, packed: bool, backward: bool = True) -> Callable[[], object]:
    """One call on texts between half and all of `tokens` long."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    states = torch.randn(batch, tokens, FEATURES, requires_grad=backward)
    lengths = torch.linspace(tokens // 2, tokens, batch).round().long()
    mask = torch.arange(tokens) < lengths.unsqueeze(1)
    ours, theirs = CONTENDERS[encoder]
    network = theirs(FEATURES, HIDDEN, batch_first=True, bidirectional=True) if packed else ours(FEATURES, HIDDEN)

    def run() -> None:
        with torch.set_grad_enabled(backward):
            if packed:
                sequence = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
                encoded, _ = pad_packed_sequence(network(sequence)[0], batch_first=True)
            else:
                encoded = network(states, mask)
        if backward:
            torch.autograd.backward(encoded.sum())

    return run


def times() -> list[str]:
    rows = []
    for encoder in CONTENDERS:
        for batch, tokens in SHAPES:
            for backward in (False, True):
                calls = {
                    "ours": prepare(encoder, batch, tokens, packed=False, backward=backward),
                    "packed": prepare(encoder, batch, tokens, packed=True, backward=backward),
                }
                took = measure.milliseconds(calls, rounds=7 if tokens < 1000 else 3)
                ratio = f"**{took['packed'] / took['ours']:.1f}**"
                what = "forward + backward" if backward else "forward"
                row = [encoder, f"{batch} x {tokens}", what, f"{took['ours']:.0f}", f"{took['packed']:.0f}", ratio]
                rows.append(row)
                print(row, flush=True)
    return measure.table(["encoder", "batch x tokens", "milliseconds of", "routepool", "packed", "times faster"], rows)


def step_cost() -> list[str]:
    """A straight line through time against rows: where it meets zero rows is the cost of a step itself."""
    rows = [1, 2, 4, 8, 16, 32, 64, 128]
    calls = {str(number): prepare("bilstm", number, 40, packed=False) for number in rows}
    took = measure.milliseconds(calls)
    slope, constant = np.polyfit(rows, [took[str(number)] for number in rows], 1)
    header = ["rows of up to 40 words", *map(str, rows)]
    figures = ["milliseconds, forward + backward", *(f"{took[str(number)]:.1f}" for number in rows)]
    return [*measure.table(header, [figures]), "", f"One more step costs as much as {constant / slope:.0f} more rows."]


if __name__ == "__main__":
    measure.write_section("encoder-times", [measure.machine(), "", *times()])
    measure.write_section("encoder-step", step_cost())
