"""The routing layer on an encoder of your own: who helped?

Any PyTorch module that gives a vector for each token will do; here it is a GRU. The layer takes its states and a mask
that is True at real tokens. Whoever acts is named first in one half of the sentences and last in the other.

    python examples/your_own_encoder.py
"""

import itertools
import random

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from routepool import StandardRouting

NAMES = ["Ada", "Ben", "Cleo", "Dan"]
VERBS = ["helped", "fed", "drew", "called"]
PLACES = ["in the garden", "at noon", "on the way home", "by the old bridge near the mill"]


class Helper(nn.Module):
    """Words -> states -> capsules -> who did it."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 16, padding_idx=0)
        self.encoder = nn.GRU(16, 32, batch_first=True)
        self.routing = StandardRouting(32, capsules=3, capsule_size=8, iterations=3)
        self.head = nn.Linear(self.routing.out_features, len(NAMES))

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.encoder(self.embedding(ids))
        vector, coupling = self.routing(states, ids != 0)  # (B, 24) and (B, T, 3)
        return self.head(vector), coupling


def sentences() -> list[tuple[str, int]]:
    made = []
    for (one, other), verb, place in itertools.product(itertools.permutations(NAMES, 2), VERBS, PLACES):
        made.append((f"{one} {verb} {other} {place}", NAMES.index(one)))
        made.append((f"{other} was {verb} by {one} {place}", NAMES.index(one)))
    random.Random(0).shuffle(made)
    return made


def main() -> None:
    torch.manual_seed(0)
    texts, answers = zip(*sentences(), strict=True)
    words = {word: number for number, word in enumerate(sorted({word for text in texts for word in text.split()}), 1)}
    ids = pad_sequence([torch.tensor([words[word] for word in text.split()]) for text in texts], batch_first=True)
    targets, held_out = torch.tensor(answers), 96

    model = Helper(len(words) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(15):
        order = torch.randperm(len(ids) - held_out)
        for start in range(0, len(order), 32):
            batch = order[start : start + 32]
            loss = nn.functional.cross_entropy(model(ids[batch])[0], targets[batch])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    with torch.no_grad():
        logits, coupling = model(ids[-held_out:])
    answers = logits.argmax(-1)
    print(f"right about {(answers == targets[-held_out:]).sum()} of {held_out} sentences it has not seen")
    for form in (False, True):  # one of each
        place = next(place for place, text in enumerate(texts[-held_out:]) if ("was" in text.split()) is form)
        text = texts[-held_out + place]
        print(f"\n{text}: {NAMES[answers[place]]}. Where each word went:")
        for word, shares in zip(text.split(), coupling[place].tolist(), strict=False):
            print(f"  {word:8}", "  ".join(f"capsule {number} {share:4.0%}" for number, share in enumerate(shares, 1)))


if __name__ == "__main__":
    main()
