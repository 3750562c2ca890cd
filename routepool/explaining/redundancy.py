"""Are capsules redundant? How alike they are, and how much a probe reads from one alone and without one."""

# N texts  M capsules  C capsule size

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from routepool.arrays import Floats, Integers
from routepool.explaining.subject import Subject
from routepool.scoring.torch_backend import TorchBackend

FOLDS, STRENGTH = 5, 0.01  # of the probe: cross-validation, and the inverse of its regularisation


@dataclass(frozen=True)
class Redundancy:
    """How alike the parts of a text's vector are.

    Args:
        name: what the parts are.
        cka: mean linear CKA (Kornblith et al. 2019) of all pairs; 1 is the same up to rotation and scale.
        cosine: mean absolute cosine of the parts of one text, over pairs and texts.
        whole: accuracy of a probe on all parts, in cross-validation.
        alone: on each part alone.
        without: on all parts but one, for each.
    """

    name: str
    cka: float
    cosine: float
    whole: float
    alone: tuple[float, ...]
    without: tuple[float, ...]


def capsules_of(subject: Subject, texts: Sequence[str]) -> Floats:
    """(N, M, C): the parts of the texts' vectors that the last aggregator makes."""
    backend = TorchBackend(subject.model)
    vectors = backend.vectors(subject.encode(texts))
    return vectors.reshape(len(vectors), backend.parts, -1)


def random_slices(vectors: Floats, number: int, *, seed: int = 0) -> Floats:
    """(N, M, C) -> (N, number, C'): the features of all parts, dealt at random into parts of equal size."""
    flat = vectors.reshape(len(vectors), -1)
    order = np.random.default_rng(seed).permutation(flat.shape[1])[: flat.shape[1] // number * number]
    return flat[:, order].reshape(len(vectors), number, -1)


def redundancy_of(name: str, capsules: Floats, truth: Integers) -> Redundancy:
    """Compare the parts (N, M, C) with one another, and probe them for the labels (N,)."""
    number = capsules.shape[1]
    pairs = list(combinations((capsules[:, place] for place in range(number)), 2))
    return Redundancy(
        name,
        cka=float(np.mean([linear_cka(*pair) for pair in pairs])) if pairs else 1.0,
        cosine=float(np.mean([_cosines(*pair) for pair in pairs])) if pairs else 1.0,
        whole=_probe(capsules, truth),
        alone=tuple(_probe(capsules[:, [place]], truth) for place in range(number)),
        without=tuple(_probe(np.delete(capsules, place, axis=1), truth) for place in range(number)) if pairs else (),
    )


def linear_cka(one: Floats, other: Floats) -> float:
    """Likeness of two sets of vectors of the same texts, (N, C) and (N, C'), whatever their rotation and scale.

    >>> points = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> round(linear_cka(points, -3 * points[:, ::-1]), 6)
    1.0
    """
    one, other = (np.asarray(each, np.float64) - each.mean(0) for each in (one, other))
    below = np.linalg.norm(one.T @ one) * np.linalg.norm(other.T @ other)
    return float(np.linalg.norm(one.T @ other) ** 2 / below) if below > 0 else 0.0


def _cosines(one: Floats, other: Floats) -> float:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    products = np.abs((one * other).sum(1))
    return float(np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0).mean())


def _probe(capsules: Floats, truth: Integers) -> float:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.model_selection import cross_val_score  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    probe = make_pipeline(StandardScaler(), LogisticRegression(C=STRENGTH, max_iter=500))
    features = capsules.reshape(len(capsules), -1)
    return float(cross_val_score(probe, features, truth, cv=FOLDS).mean())
