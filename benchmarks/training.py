"""Training of the paper's model: texts a second, against the same model in plain PyTorch, and how far from the limit.

python benchmarks/training.py     rewrites a section of docs/performance.md (about 10 minutes)

ROUTEPOOL_DATA names the folder with sst1/ and imdb_reviews/; without it only the made-up documents run.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median

import measure
import numpy as np
import torch
from encoder import sgemm
from numpy.typing import NDArray
from plain_model import PlainModel, train
from step_shares import PARTS, shares

from routepool.arrays import Integers
from routepool.batching import Batch, SlidingBucket, length_of
from routepool.datasets import Dataset, load_named
from routepool.layers import StandardRouting
from routepool.model import Classifier, group_rows
from routepool.settings import ModelConfig, TextConfig, TrainingConfig, change, preset
from routepool.text import Encoded, Tokenizer
from routepool.training import Examples, Hook, Objective, StepReport, Trainer

OURS, SAME, SHUFFLED = "routepool", "plain, same batches", "plain, shuffled"
WINDOW, ROUNDS = 256, 3
CUT = TextConfig(max_words=40, max_sentences=40)  # as in the released code; longer ones do not fit the plain model


@dataclass(frozen=True, eq=False)
class Race:
    """Texts, the settings they are learned with, and how many steps a round has."""

    name: str
    encoded: list[Encoded]
    targets: NDArray[np.int64]
    words: int
    model: ModelConfig
    training: TrainingConfig
    steps: int

    def classifier(self) -> Classifier:
        torch.manual_seed(0)
        return Classifier.build(self.model, vocabulary_size=self.words, classes=int(self.targets.max()) + 1)

    def examples(self) -> Examples:
        return Examples(self.encoded, self.targets)

    def batches(self, seed: int, *, shuffled: bool = False) -> list[Integers]:
        """The rows of a round's batches: those of our trainer, or plain shuffling."""
        size, depth = self.training.batch_size, self.model.depth
        if shuffled:
            order = np.random.default_rng(seed).permutation(len(self.encoded))
            return [order[start : start + size] for start in range(0, self.steps * size, size)]
        lengths = [length_of(text, depth) for text in self.encoded]
        bucket = SlidingBucket(lengths, seed=seed, replacement=False)
        return [bucket.rows(0, index, batch_size=size, window=WINDOW) for index in range(self.steps)]


def race(name: str, settings: str, encoded: list[Encoded], targets: NDArray[np.int64], words: int, steps: int) -> Race:
    paper = preset(f"paper-{settings}")
    training = change(paper.training, window=WINDOW, replacement=False)
    return Race(f"{name}, batches of {training.batch_size}", encoded, targets, words, paper.model, training, steps)


def sentences() -> Race:
    return _of_set("SST-1", "sst1", load_named("sst1").train, TextConfig(), steps=20)


def reviews() -> Race:
    return _of_set("IMDB reviews", "imdb", load_named("imdb-reviews").train, CUT, steps=5)


def documents() -> Race:
    random = np.random.default_rng(0)
    lengths = np.full(15, 20, dtype=np.int32)
    encoded = [
        Encoded(random.integers(2, 30_000, 300, dtype=np.int32), np.zeros((300, 2), np.int32), lengths, 0, 0)
        for _ in range(1000)
    ]
    return race("documents of 15 x 20 words", "imdb", encoded, random.integers(5, size=1000), 30_000, steps=6)


def _of_set(name: str, settings: str, data: Dataset, config: TextConfig, steps: int) -> Race:
    some = data.examples[:: -(-len(data.examples) // 10_000)]
    texts = [example.text for example in some]
    tokenizer = Tokenizer.build(texts, config=config)
    encoded = tokenizer.encode(texts, preset(f"paper-{settings}").model.depth)
    targets = Objective(data.labels).targets([example.labels or () for example in some])
    return race(name, settings, encoded, targets, len(tokenizer.words), steps)


class RoundOverError(Exception):
    """Enough steps were timed."""


class Clock(Hook):
    """Processor time from the end of the first step to the end of the last."""

    def __init__(self, steps: int) -> None:
        self.steps, self.examples = steps, 0
        self.start = self.end = 0.0

    def on_step(self, report: StepReport) -> None:
        self.tick(report.examples, last=report.step + 1 == self.steps)
        if report.step + 1 == self.steps:
            raise RoundOverError

    def tick(self, examples: int, *, last: bool = False) -> None:
        if self.start == 0:
            self.start = time.process_time()
        else:
            self.examples += examples
        self.end = time.process_time() if last else 0.0

    def rate(self) -> float:
        return self.examples / (self.end - self.start)


def our_round(of: Race, seed: int, *, steps: int | None = None) -> Clock:
    clock = Clock(steps or of.steps)
    few = Examples(of.encoded[:1], of.targets[:1])
    trainer = Trainer(
        of.classifier(), of.examples(), few, Objective(tuple("abcde")), change(of.training, seed=seed), hooks=[clock]
    )
    try:
        trainer.fit()
    except RoundOverError:
        return clock
    raise RuntimeError("the epoch is shorter than a round")


def plain_round(of: Race, seed: int, *, shuffled: bool) -> Clock:
    clock = Clock(of.steps)
    rows = of.batches(seed, shuffled=shuffled)
    batches = (Batch.of(of.encoded, some, of.model.depth) for some in rows)
    model = PlainModel(of.classifier(), of.model)
    for step, examples in enumerate(train(model, of.examples(), batches, of.training)):
        clock.tick(examples, last=step + 1 == of.steps)
    return clock


def check_equal(of: Race) -> None:
    """A fair race: both models give the same logits."""
    ours = of.classifier().eval()
    plain = PlainModel(of.classifier(), of.model).eval()
    batch = Batch.of(of.encoded, np.arange(4), of.model.depth)
    ids, mask = torch.from_numpy(batch.ids), torch.from_numpy(batch.mask)
    with torch.no_grad():
        torch.testing.assert_close(plain(ids, mask), ours(ids, mask), rtol=1e-4, atol=1e-5)


def rates(of: Race) -> dict[str, float]:
    """Texts a second of each contender: medians of rounds that take turns."""
    contenders: dict[str, Callable[[int], Clock]] = {
        OURS: lambda seed: our_round(of, seed),
        SAME: lambda seed: plain_round(of, seed, shuffled=False),
        SHUFFLED: lambda seed: plain_round(of, seed, shuffled=True),
    }
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for seed in range(ROUNDS):
        for name, run in contenders.items():
            found[name].append(run(seed).rate())
        print(of.name, {name: round(values[-1], 1) for name, values in found.items()}, flush=True)
    return {name: median(values) for name, values in found.items()}


def gigaflop(of: Race) -> dict[str, float]:
    """Of one text, forward and backward (3 x forward): LSTM, routing without messages, head, on real tokens."""
    hidden, capsules, size, uses = of.model.hidden_size, 5, 200, 2 * 3 - 1
    tokens = [len(text.ids) for text in of.encoded]
    units = [tokens, [len(text.lengths) for text in of.encoded]][: of.model.depth]
    rows = [*units[1:], [1] * len(tokens)]  # what each level makes of them
    lstm, routing, features = 0.0, 0.0, of.model.embedding_size
    for of_level, made in zip(units, rows, strict=True):
        lstm += float(np.mean(of_level)) * 2 * 2 * 4 * hidden * (features + hidden)
        over_tokens, over_rows = uses * 2 * capsules * 2 * hidden, uses * 2 * capsules * size * 2 * hidden
        routing += float(np.mean(of_level) * over_tokens + np.mean(made) * over_rows)
        features = capsules * size
    head = 2 * of.model.head_size * (features + int(of.targets.max()) + 1)
    return {name: 3 * flop / 1e9 for name, flop in (("LSTM", lstm), ("routing", routing), ("head", head))}


def padding(of: Race) -> dict[str, float]:
    """Share of the computed words that are padding."""
    shares = {}
    for name in (OURS, SAME, SHUFFLED):
        real = computed = 0
        for rows in of.batches(0, shuffled=name == SHUFFLED):
            mask = Batch.of(of.encoded, rows, of.model.depth).mask
            real += int(mask.sum())
            computed += encoded_words(torch.from_numpy(mask).flatten(0, -2)) if name == OURS else mask.size
        shares[name] = 1 - real / computed
    return shares


def encoded_words(mask: torch.Tensor) -> int:
    """With padding, as a level of routing reads them: in groups for routing, each in groups for the encoder."""
    groups = (group_rows(mask[some, :cut]) for some, cut in group_rows(mask, StandardRouting.pass_cost))
    return sum(len(part.rows) * part.longest for group in groups for part in group)


def races() -> Iterator[Race]:
    if "ROUTEPOOL_DATA" in os.environ:
        yield sentences()
    yield documents()
    if "ROUTEPOOL_DATA" in os.environ:
        yield reviews()
    else:
        print("ROUTEPOOL_DATA is not set: SST-1 and the IMDB reviews are left out")


def main() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    speed, limit, parts = [], [], []
    for of in races():
        check_equal(of)
        found, flop, padded, plain_sgemm = rates(of), gigaflop(of), padding(of), sgemm()
        ratios = [f"**{found[OURS] / found[name]:.1f}**" for name in (SAME, SHUFFLED)]
        speed.append([of.name, *(f"{rate:.0f}" for rate in found.values()), *ratios])
        for name, rate in found.items():
            useful = rate * sum(flop.values())
            limit.append([
                of.name, name, f"{100 * padded[name]:.0f} %", f"{useful:.0f}", f"{100 * useful / plain_sgemm:.0f} %",
            ])  # fmt: skip
        of_step = shares(partial(our_round, of, 0, steps=min(of.steps, 10)), rounds_of_each=ROUNDS)
        of_products = flop["routing"] / sum(flop.values())
        parts.append([of.name, *(f"{100 * share:.0f} %" for share in (*of_step.values(), of_products))])
        print(speed[-1], limit[-3:], parts[-1], flush=True)
    header = ["texts a second", OURS, SAME, SHUFFLED, "times faster, same batches", "times faster, shuffled"]
    measure.write_section(
        "training",
        [
            measure.machine(), "", *measure.table(header, speed), "",
            *measure.table(["", "", "padding", "useful GFLOP/s", "of a plain product"], limit), "",
            *measure.table(["share of our step", *PARTS, "routing, of the arithmetic"], parts),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
