"""A search over aggregators and learning rates with scikit-learn's own tools, and the best model as a folder.

python examples/grid_search.py            made-up reviews, half a minute on one core
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split

from routepool import TextClassifier, load

SUBJECTS = ["the soup", "the service", "our table", "the music", "the bread", "the view"]
PRAISE = ["was a delight", "could not be better", "made us smile", "was worth the walk"]
BLAME = ["was a letdown", "could not be worse", "made us leave", "was not worth the walk"]


def reviews(number: int, *, seed: int = 0) -> tuple[list[str], list[str]]:
    """Sentences that praise or blame, and which of the two."""
    random = np.random.default_rng(seed)
    labels = ["good", "bad"] * (number // 2)
    texts = [f"{random.choice(SUBJECTS)} {random.choice(PRAISE if label == 'good' else BLAME)}" for label in labels]
    return texts, labels


def main() -> None:
    texts, labels = reviews(240)
    train_texts, test_texts, train_labels, test_labels = train_test_split(
        texts, labels, stratify=labels, random_state=0
    )
    model = TextClassifier(
        vectors="none",
        embedding_size=16,
        hidden_size=16,
        epochs=5,
        batch_size=8,
        validation_fraction=0.2,
        random_state=0,
    )
    grid = {"aggregator": ["routing", "mean"], "learning_rate": [0.003, 0.03]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(train_texts, train_labels)
    for settings, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        print(f"{settings['aggregator']:8} learning rate {settings['learning_rate']:<6} accuracy {score:.3f}")
    print(f"best: {search.best_params_}, {search.score(test_texts, test_labels):.3f} on texts it has not seen")
    with TemporaryDirectory() as folder:
        run = Path(folder, "best")
        search.best_estimator_.save(run)
        print(f"from its folder, as the command line reads it: {load(run).predict(['the bread was a letdown'])}")


if __name__ == "__main__":
    main()
