"""Texts whose label follows from known words: plain cues, negated ones, and pairs of words that count only together."""

import numpy as np

from routepool.datasets import Example
from support.planted import FILLER, LABELS

CUES = {"merry": 0, "sunny": 0, "gloomy": 1, "bitter": 1}
# Neither word of a pair says anything alone: each stands as often under both labels.
PAIRS = {("copper", "kettle"): 0, ("silver", "lantern"): 0, ("copper", "lantern"): 1, ("silver", "kettle"): 1}
EVIDENCE = {*CUES, "never", *(word for pair in PAIRS for word in pair)}


def texts(number: int, *, seed: int) -> list[Example]:
    """A third each: a cue; `never` before a cue; a pair, its words side by side or one apart."""
    random = np.random.default_rng(seed)
    examples = []
    for row in range(number):
        words = [str(word) for word in random.choice(FILLER, random.integers(3, 8))]
        if row % 3 < 2:
            cue, label = list(CUES.items())[random.integers(len(CUES))]
            planted, label = ([cue], label) if row % 3 == 0 else (["never", cue], 1 - label)
        else:
            (one, other), label = list(PAIRS.items())[random.integers(len(PAIRS))]
            planted = [one, other] if random.random() < 0.5 else [one, str(random.choice(FILLER)), other]
        place = int(random.integers(len(words) + 1))
        examples.append(Example(row + 1, " ".join([*words[:place], *planted, *words[place:]]), (LABELS[label],)))
    return examples
