"""A document model: words into sentences, sentences into a document, and which sentence mattered.

Guests write five sentences about a stay. One of them says whether they liked it, and nobody tells the model which. With
`reverse-routing` each capsule splits one unit of attention between the sentences: the weights say where it looked.

    python examples/document_model.py
"""

import random

from routepool import TextClassifier
from routepool.scoring.torch_backend import traces

FACTS = [
    "We came by train", "The room is on the third floor", "Breakfast starts at seven", "There is a lake behind it",
    "The key hangs by the door", "Our neighbours had two dogs", "A bus stops across the street", "Towels cost extra",
    "The beds are made of oak", "They speak four languages at the desk", "An old clock stands in the hall",
]  # fmt: skip
OPINIONS = {
    "liked": ["We slept wonderfully", "I would come back gladly", "Everyone was kind and cheerful"],
    "disliked": ["We hardly slept at all", "I would never come back", "Everyone was rude and gloomy"],
}


def stays(number: int, seed: int) -> tuple[list[str], list[str]]:
    chance = random.Random(seed)
    texts, labels = [], []
    for _ in range(number):
        label = chance.choice(list(OPINIONS))
        sentences = chance.sample(FACTS, 4)
        sentences.insert(chance.randrange(5), chance.choice(OPINIONS[label]))
        texts.append(". ".join(sentences) + ".")
        labels.append(label)
    return texts, labels


def main() -> None:
    model = TextClassifier(
        aggregator="reverse-routing", depth=2, vectors="none", embedding_size=16, hidden_size=8, capsules=2,
        capsule_size=16, dropout=0.0, epochs=12, batch_size=16, learning_rate=0.03, random_state=0,
        settings={"head_size": 16},
    ).fit(*stays(300, seed=0), dev=stays(60, seed=1))  # fmt: skip
    texts, labels = stays(60, seed=2)
    print(f"right about {model.score(texts, labels):.0%} of the stays it has not seen; where it looked in three:")

    saved = model.predictor_.saved
    assert saved is not None  # a model that was trained here has all its parts
    for text in texts[:3]:
        ((_, trace),) = traces(saved.classifier, saved.tokenizer.encode([text], depth=2))
        _, of_sentences = trace.weights  # of words first, then of sentences: (1, sentences, capsules)
        print(f"\n{model.predict([text])[0]}")
        for sentence, weight in zip(text.split(". "), of_sentences[0].mean(-1).tolist(), strict=True):
            print(f"  {weight:4.0%} {'#' * round(30 * weight):30} {sentence.rstrip('.')}")


if __name__ == "__main__":
    main()
