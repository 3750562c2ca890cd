"""What the capsules of a model hold: the words they take, the classes they speak for, and whether they differ."""

# N texts  M capsules  C capsule size  K classes

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch

from routepool.arrays import Floats, Integers
from routepool.errors import InputError
from routepool.explaining.couplings import (
    Changed,
    Couplings,
    Taken,
    Variance,
    by_coupling,
    by_iterations,
    favourites,
    variance_of,
)
from routepool.explaining.subject import Subject, watch, without_capsule
from routepool.scoring.probabilities import check_finite
from routepool.scoring.torch_backend import TorchBackend
from routepool.text import Encoded

FOLDS, STRENGTH = 5, 0.01  # of the probe: cross-validation, and the inverse of its regularisation


@dataclass(frozen=True)
class CapsuleView:
    """One capsule of one level."""

    level: str  # words or sentences
    number: int  # from 1
    share: float  # of all couplings, that it receives
    words: tuple[Taken, ...]  # those it takes most, against its share; none for the capsules of sentences
    phrases: tuple[Taken, ...]  # of two words, likewise
    classes: dict[str, float]  # what the log-odds of each label lose on average when the capsule is set to zero


@dataclass(frozen=True)
class Redundancy:
    """How alike the parts of a text's vector are."""

    name: str  # what the parts are
    cka: float  # mean linear CKA (Kornblith et al. 2019) of all pairs; 1 is the same up to rotation and scale
    cosine: float  # mean absolute cosine of the parts of one text, over pairs and texts
    whole: float  # accuracy of a probe on all parts, in cross-validation
    alone: tuple[float, ...]  # on each part alone
    without: tuple[float, ...]  # on all parts but one, for each


@dataclass(frozen=True)
class CapsuleReport:
    """All about a model's capsules, measured on one labelled set."""

    texts: int
    iterations: int  # that the model was trained with
    part: str  # what the model calls a capsule
    capsules: tuple[CapsuleView, ...]
    by_iterations: tuple[Changed, ...]
    by_coupling: tuple[Changed, ...]
    variance: Variance
    redundancy: tuple[Redundancy, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def report_capsules(
    subject: Subject,
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    one_iteration: Subject | None = None,
    projected_mean: Subject | None = None,
) -> CapsuleReport:
    """Measure what the capsules of a routing model hold.

    Args:
        subject: the model.
        texts: a labelled set that it was not trained on.
        labels: one for each text.
        one_iteration: a model trained with one iteration, whose words were never routed.
        projected_mean: one trained with a single capsule as large as all of these, which is a projected mean; random
            slices of it are what capsules would be if it did not matter which feature is in which.
    """
    _check_routed(subject)
    truth = np.array([subject.place(label) for label in labels], dtype=np.int64)
    encoded = subject.encode(texts)
    kept = [place for place, one in enumerate(encoded) if len(one.ids)]
    encoded, truth = [encoded[place] for place in kept], truth[kept]
    _check_probes(truth, subject.labels)
    couplings, layer = Couplings.of(subject, encoded), subject.levels[0].aggregator
    return CapsuleReport(
        texts=len(encoded),
        iterations=layer.iterations,
        part=layer.parts.name,
        capsules=tuple(_views(subject, encoded, couplings)),
        by_iterations=tuple(by_iterations(subject, encoded, truth)),
        by_coupling=tuple(by_coupling(subject, encoded, truth, couplings)),
        variance=variance_of(couplings),
        redundancy=tuple(_redundancy(subject, [texts[place] for place in kept], truth, one_iteration, projected_mean)),
    )


def _check_routed(subject: Subject) -> None:
    """Capsules are parts among which words are shared out: by their couplings, or in rounds."""
    layer = subject.levels[0].aggregator
    if layer.parts.number == 1 or (layer.parts.share_of != "word" and layer.iterations == 1):
        raise InputError("only routing has capsules, and this model has none; --audit reads every model")
    if subject.multi_label:
        raise InputError("capsules are probed for one label a text, and this model gives any number")


def _check_probes(truth: Integers, labels: Sequence[str]) -> None:
    counts = np.bincount(truth, minlength=len(labels))
    present = counts[counts > 0]
    if len(present) < 2 or present.min() < FOLDS:
        raise InputError(f"capsules are probed with {FOLDS} texts of at least two labels, got {counts.tolist()}")


def _views(subject: Subject, encoded: Sequence[Encoded], couplings: Couplings) -> list[CapsuleView]:
    taken = favourites(couplings, subject.tokenizer.words)
    share = couplings.coupling.sum(0) / couplings.coupling.sum()
    views = []
    for place, (shares, effects) in enumerate(_effects(subject, encoded)):
        for capsule, effect in enumerate(effects):
            words, phrases = taken[capsule] if place == 0 else ([], [])
            views.append(
                CapsuleView(
                    level="words" if place == 0 else "sentences",
                    number=capsule + 1,
                    share=float((share if place == 0 else shares)[capsule]),
                    words=tuple(words),
                    phrases=tuple(phrases),
                    classes=dict(zip(subject.labels, effect.tolist(), strict=True)),
                )
            )
    return views


def _effects(subject: Subject, encoded: Sequence[Encoded]) -> list[tuple[Floats, Floats]]:
    """For each level: the share (M,) of each capsule, and what the log-odds (M, K) of each label lose without it."""
    depth, classes = subject.depth, len(subject.labels)
    shares: list[Any] = [0.0] * depth
    lost: list[Any] = [0.0] * depth
    with torch.no_grad():
        for batch, ids, mask in subject.batches(encoded):
            seen = watch(subject.model, ids, mask)
            check_finite(seen.logits.numpy(force=True), batch.rows)
            for place, level in enumerate(seen.levels):
                effects = []
                for capsule in range(level.parts.shape[1]):
                    logits = without_capsule(subject.model, seen, place, capsule)
                    effects.append([
                        float((_odds(subject, seen.logits, one) - _odds(subject, logits, one)).sum())
                        for one in range(classes)
                    ])  # fmt: skip
                lost[place] = lost[place] + np.array(effects)
                shares[place] = shares[place] + level.weights.sum((0, 1)).double().numpy(force=True)
    return [(share / share.sum(), of_level / len(encoded)) for share, of_level in zip(shares, lost, strict=True)]


def _odds(subject: Subject, logits: torch.Tensor, label: int) -> torch.Tensor:
    return subject.evidence(logits, torch.full((len(logits),), label, device=logits.device))


def _redundancy(
    subject: Subject,
    texts: Sequence[str],
    truth: Integers,
    one_iteration: Subject | None,
    projected_mean: Subject | None,
) -> list[Redundancy]:
    parts = {"capsules": capsules_of(subject, texts)}
    if one_iteration is not None:
        parts["capsules of one iteration"] = capsules_of(one_iteration, texts)
    if projected_mean is not None:
        slices = random_slices(capsules_of(projected_mean, texts), parts["capsules"].shape[1])
        parts["random slices of a projected mean"] = slices
    return [redundancy_of(name, of_texts, truth) for name, of_texts in parts.items()]


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
