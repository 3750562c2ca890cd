"""What users would pick instead, on the full set of reviews: linear models of n-grams, and averaged n-gram vectors.

python -m reproduce.peers                                          chosen on dev, scored on test, once
python -m reproduce.peers --rows 500 --results /tmp/peers          a quick look that leaves no trace
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from torch import Tensor, nn

from reproduce import data
from reproduce.ledger import Ledger, digest
from reproduce.plan import ALL_DOCUMENTS
from reproduce.running import revision, write
from reproduce.runs import LEDGER, RESULTS
from routepool.datasets import Dataset, Parts
from routepool.runs.record import versions

Labels = NDArray[np.int64]  # 0 and 1
Predict = Callable[[Sequence[str]], Labels]
Settings = dict[str, Any]

BUCKETS = 2**20  # of hashed words and pairs
_WORDS = {"ngram_range": (1, 2), "token_pattern": r"\w+|[^\w\s]"}


def tf_idf(texts: Sequence[str], labels: Labels) -> Iterator[tuple[Settings, Predict]]:
    """TF-IDF of words and pairs, logistic regression."""
    words = TfidfVectorizer(**_WORDS, min_df=2, sublinear_tf=True)
    features = words.fit_transform(texts)
    for strength in (1.0, 3.0, 10.0, 30.0, 100.0):
        model = LogisticRegression(C=strength, max_iter=1000).fit(features, labels)
        yield {"C": strength}, _after(words.transform, model.predict)


def nb_svm(texts: Sequence[str], labels: Labels) -> Iterator[tuple[Settings, Predict]]:
    """Wang and Manning 2012: words and pairs weighted by their log-count ratio, a linear SVM leaning to its mean."""
    words = CountVectorizer(**_WORDS, binary=True)
    features = words.fit_transform(texts)
    positive, negative = (1.0 + np.asarray(features[labels == label].sum(axis=0)).ravel() for label in (1, 0))
    ratio = np.log(positive / positive.sum()) - np.log(negative / negative.sum())
    for strength in (0.01, 0.1, 1.0):
        model = LinearSVC(C=strength).fit(features.multiply(ratio).tocsr(), labels)
        for share in (0.25, 1.0):
            slope = (1 - share) * np.abs(model.coef_).mean() + share * model.coef_[0]
            yield (
                {"C": strength, "share": share},
                _after(words.transform, _sign(ratio * slope, share * model.intercept_[0])),
            )


def hashed_average(texts: Sequence[str], labels: Labels) -> Iterator[tuple[Settings, Predict]]:
    """Joulin et al. 2017: the average of the vectors of hashed words and pairs, a linear layer; as fastText has it."""
    words = HashingVectorizer(**_WORDS, n_features=BUCKETS, alternate_sign=False, norm="l1")
    features = words.transform(texts)
    for rate in (3e-3, 1e-2, 3e-2):
        model = _Averaged(words.n_features)
        for epoch in range(6):
            model.learn(features, labels, rate=rate, seed=epoch)
            yield {"rate": rate, "epochs": epoch + 1}, _after(words.transform, model.copied().predict)


PEERS = {"tf-idf": tf_idf, "nb-svm": nb_svm, "hashed-average": hashed_average}


def _after(transform: Callable[[Sequence[str]], Any], predict: Callable[[Any], Labels]) -> Predict:
    return lambda texts: predict(transform(texts))


def _sign(slope: NDArray[np.float64], start: float) -> Callable[[Any], Labels]:
    return lambda features: (features @ slope + start > 0).astype(np.int64)


class _Averaged(nn.Module):
    """Rows of shares of n-grams -> the sum of their vectors -> the log-odds of label 1."""

    def __init__(self, size: int, *, width: int = 32) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.vectors = nn.EmbeddingBag(size, width, mode="sum", sparse=True)
        self.head = nn.Linear(width, 1)
        nn.init.uniform_(self.vectors.weight, -1 / width, 1 / width)
        self._optimizers: list[torch.optim.Optimizer] = []

    def forward(self, rows: Any) -> Tensor:
        bags, starts = torch.from_numpy(rows.indices).long(), torch.from_numpy(rows.indptr[:-1]).long()
        shares = torch.from_numpy(rows.data).float()
        odds: Tensor = self.head(self.vectors(bags, starts, per_sample_weights=shares)).squeeze(1)
        return odds

    def learn(self, rows: Any, labels: Labels, *, rate: float, seed: int) -> None:
        """One epoch."""
        self._optimizers = self._optimizers or [
            torch.optim.SparseAdam(list(self.vectors.parameters()), lr=rate),
            torch.optim.Adam(self.head.parameters(), lr=rate),
        ]
        order = np.random.default_rng(seed).permutation(len(labels))
        for chosen in np.array_split(order, max(1, len(order) // 32)):
            loss = nn.functional.binary_cross_entropy_with_logits(
                self(rows[chosen]), torch.from_numpy(labels[chosen]).float()
            )
            self.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            for optimizer in self._optimizers:
                optimizer.step()

    def predict(self, rows: Any) -> Labels:
        with torch.no_grad():
            found: Labels = (self(rows) > 0).long().numpy()
        return found

    def copied(self) -> "_Averaged":
        """As it is now; learning goes on in the original."""
        other = _Averaged(self.vectors.num_embeddings, width=self.vectors.embedding_dim)
        other.load_state_dict(self.state_dict())
        return other


def make(name: str, parts: Parts, results: Path, ledger: Ledger) -> None:
    """Fit a peer in all its settings, keep the best on dev, score that one on test, write."""
    wall, processor = time.perf_counter(), time.process_time()
    tried: list[Settings] = []
    best: Predict | None = None
    for settings, predict in PEERS[name](_texts(parts.train), _labels(parts.train)):
        dev = float((predict(_texts(parts.dev)) == _labels(parts.dev)).mean())
        if best is None or dev > max(one["dev"] for one in tried):
            best, chosen = predict, settings
        tried.append({**settings, "dev": dev})
        print(f"{name} {settings}: dev {100 * dev:.1f}", flush=True)
    assert best is not None
    seconds = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
    run = f"peers/{name}/0"
    ledger.check(run, digest(chosen))
    predicted = best(_texts(parts.test))
    scores = {"dev": max(one["dev"] for one in tried), "test": float((predicted == _labels(parts.test)).mean())}
    found = {
        "dataset": ALL_DOCUMENTS,
        "variant": name,
        "seed": 0,
        "settings": chosen,
        "tried": tried,
        "versions": versions(),
        "revision": revision(),
        "data_hash": data.fingerprint(parts),
        **seconds,
        **scores,
        "test_predictions": [parts.train.labels[label] for label in predicted],
    }
    ledger.enter(run, digest(chosen), revision=found["revision"], **scores)
    write(results / "peers" / f"{name}.json", found)


def _texts(part: Dataset) -> list[str]:
    return [example.text for example in part.examples]


def _labels(part: Dataset) -> Labels:
    return np.array([part.labels.index((example.labels or ("",))[0]) for example in part.examples], dtype=np.int64)


def main() -> None:
    """The peers that have no result yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="of each part, in place of all; needs --results")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.rows and asked.results == RESULTS:
        parser.error("--rows gives results of a part of the data: name a folder for them with --results")
    missing = [name for name in PEERS if not (asked.results / "peers" / f"{name}.json").exists()]
    if missing:
        torch.set_num_threads(1)
        parts = data.load(ALL_DOCUMENTS, at_most=asked.rows)
        ledger = Ledger(LEDGER if asked.results == RESULTS else asked.results / LEDGER.name)
        for name in missing:
            make(name, parts, asked.results, ledger)


if __name__ == "__main__":
    main()
