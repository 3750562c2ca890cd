"""Encodings for search: the nearest neighbours of a text, by its whole vector or by one capsule of it.

A model that learned to tell topics apart has put texts of a topic near each other. Its encodings are plain arrays: what
follows is NumPy. `routepool encode RUN FILE --out vectors.npy` writes the same for a file of any length.

    python examples/nearest_neighbours.py
"""

import itertools
import random

import numpy as np
from numpy.typing import NDArray

from routepool import TextClassifier

TOPICS = {
    "weather": [["Rain", "Snow", "Fog", "Hail"], ["fell on", "hid", "came over"], ["the hills", "the coast", "us"]],
    "kitchen": [["The cook", "My aunt", "He"], ["salted", "stirred", "burnt", "served"], ["the soup", "the rice"]],
    "music": [["The choir", "A pianist", "She"], ["sang", "played", "hummed"], ["a slow tune", "the old song"]],
    "travel": [["The train", "Our bus", "The ferry"], ["left", "reached", "passed"], ["the station", "the harbour"]],
}
MOMENTS = ["this morning", "again", "before dawn", "all evening", "on Sunday", "twice"]


def sentences() -> list[tuple[str, str]]:
    made = [
        (" ".join(words) + ".", topic)
        for topic, parts in TOPICS.items()
        for words in itertools.product(*parts, MOMENTS)
    ]
    random.Random(0).shuffle(made)
    return made


def nearest(vectors: NDArray[np.float32], place: int, number: int) -> list[int]:
    """Places of the most similar rows, by cosine; its own not among them."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    order = np.argsort(-(unit @ unit[place]), kind="stable")
    return [int(one) for one in order if one != place][:number]


def main() -> None:
    texts, topics = zip(*sentences(), strict=True)
    model = TextClassifier(
        vectors="none", embedding_size=16, hidden_size=16, capsules=3, capsule_size=16, epochs=5, batch_size=16,
        learning_rate=0.01, random_state=0,
    ).fit(texts[:360], topics[:360])  # fmt: skip

    texts, topics = texts[360:], topics[360:]
    vectors = model.transform(texts)  # (texts, 48)
    capsules = model.predictor_.encode(texts, capsules=True)  # (texts, 3, 16): the same numbers, capsule by capsule
    hits = [topics[one] == topics[place] for place in range(len(texts)) for one in nearest(vectors, place, 3)]
    print(f"{len(texts)} texts it has not seen: {np.mean(hits):.0%} of their 3 nearest are of their topic")
    for place in (0, 1):
        print(f"\n{texts[place]} Nearest by")
        for name, table in {"the vector": vectors, "capsule 1": capsules[:, 0], "capsule 2": capsules[:, 1]}.items():
            print(f"  {name:10}", " | ".join(texts[one] for one in nearest(table, place, 3)))


if __name__ == "__main__":
    main()
