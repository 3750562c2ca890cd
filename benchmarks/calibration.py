"""Are the probabilities true? The fitted temperature on simulated and on real models, few held-out texts to many.

python benchmarks/kinds.py FOLDER ... banking77-2500 next-word    trains the real models, hours
python benchmarks/calibration.py FOLDER                           rewrites the tables of the decision on calibration

A model is well calibrated here if its calibration error on texts it has not seen is below the 95th percentile of that
of a model which is right as often as it says, with the same confidences, plus 0.01.
"""

import sys
from pathlib import Path

import measure
import numpy as np
from numpy.typing import NDArray

from routepool.scoring.metrics import BINS, calibration_error
from routepool.scoring.probabilities import fit_temperature, probabilities

PAGE = "decisions/2026-11-19-calibration.md"
CLASSES, HELD, TRUE = (2, 6, 77, 150, 1000), (20, 50, 200, 500, 2000), (0.6, 1.0, 1.5, 2.5)
TESTED = 2000
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


def simulated(texts: int, classes: int, true: float, random: np.random.Generator) -> tuple[Floats, Numbers]:
    """Logits of a model whose right temperature is `true`, and classes drawn as it should say."""
    cleaner = random.standard_normal((texts, classes))
    cleaner[np.arange(texts), random.integers(0, classes, texts)] += 2 + np.log(classes)
    return true * cleaner, (cleaner + random.gumbel(size=cleaner.shape)).argmax(1)


def log_loss(logits: Floats, targets: Numbers, temperature: float) -> float:
    of_targets = probabilities(logits, temperature=temperature)[np.arange(len(targets)), targets]
    return float(-np.log(np.maximum(of_targets, 1e-300)).mean())


def error(logits: Floats, targets: Numbers, temperature: float) -> float:
    of_texts = probabilities(logits, temperature=temperature)
    return calibration_error(of_texts, np.arange(logits.shape[1]) == targets[:, None])


def bound(logits: Floats, temperature: float, random: np.random.Generator) -> float:
    """The 95th percentile for a model that is right as often as it says, plus 0.01."""
    confidence = probabilities(logits, temperature=temperature).max(axis=1)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    errors = []
    for _ in range(200):
        gaps = np.bincount(bins, weights=(random.random(len(bins)) < confidence) - confidence, minlength=BINS)
        errors.append(np.abs(gaps).sum() / len(bins))
    return float(np.quantile(errors, 0.95)) + 0.01


def of_simulated() -> list[str]:
    """For each number of classes and of held-out texts, over all true temperatures and draws."""
    rows = []
    for classes in CLASSES:
        for held in HELD:
            random = np.random.default_rng((classes, held))
            draws = 4 if classes == 1000 else 20
            found = np.array([_draw(classes, held, true, random) for true in TRUE for _ in range(draws)])
            of_right_ones = found[draws : 2 * draws, 0]
            rows.append(
                [
                    f"{classes}",
                    f"{held}",
                    f"{100 * found[:, 1].mean():.0f} %",
                    f"{100 * found[:, 2].mean():.0f} %",
                    f"{found[:, 0].mean():+.4f}",
                    f"{of_right_ones.mean():+.4f} (worst {of_right_ones.max():+.4f})",
                ]
            )
            print(rows[-1], flush=True)
    header = ["classes", "held-out texts", "well calibrated", "at temperature 1", "log loss less that of temperature 1"]
    return measure.table([*header, "the same where 1 is right"], rows)


def _draw(classes: int, held: int, true: float, random: np.random.Generator) -> tuple[float, bool, bool]:
    temperature = fit_temperature(*simulated(held, classes, true, random))
    logits, targets = simulated(TESTED, classes, true, random)
    change = log_loss(logits, targets, temperature) - log_loss(logits, targets, 1.0)
    good, before = (error(logits, targets, one) <= bound(logits, one, random) for one in (temperature, 1.0))
    return change, good, before


def of_real(folder: Path) -> list[str]:
    """Fitted on dev, and on 50 texts of it; judged on test."""
    rows, random = [], np.random.default_rng(0)
    for file in sorted(folder.glob("*.npz")):
        kept = np.load(file)
        (dev, of_dev), (test, of_test) = (
            (kept[f"{part}_logits"].astype(np.float64), kept[f"{part}_targets"]) for part in ("dev", "test")
        )
        temperature = fit_temperature(dev, of_dev)
        few = [random.permutation(len(dev))[:50] for _ in range(20)]
        of_few = np.mean([log_loss(test, of_test, fit_temperature(dev[rows], of_dev[rows])) for rows in few])
        rows.append(
            [
                file.stem,
                f"{dev.shape[1]}",
                f"{len(dev)}",
                f"{temperature:.2f}",
                f"{error(test, of_test, 1.0):.3f}",
                f"{error(test, of_test, temperature):.3f} ({bound(test, temperature, random):.3f})",
                f"{log_loss(test, of_test, 1.0):.3f}",
                f"{log_loss(test, of_test, temperature):.3f}",
                f"{min(log_loss(test, of_test, one) for one in np.geomspace(0.25, 8, 71)):.3f}",
                f"{of_few:.3f}",
                f"{cross_fitted(dev, of_dev, random):+.4f}",
            ]
        )
    header = ["set", "classes", "dev", "temperature", "error at 1", "error (bound)", "log loss at 1", "log loss"]
    return measure.table(
        [*header, "least of any temperature", "from 50 texts", "cross-fitted on dev, less that at 1"], rows
    )


def cross_fitted(logits: Floats, targets: Numbers, random: np.random.Generator) -> float:
    """Log loss of ten parts of dev, each at the temperature of the other nine, less that at temperature 1."""
    parts = np.array_split(random.permutation(len(logits)), 10)
    losses = []
    for part in parts:
        others = np.setdiff1d(np.arange(len(logits)), part)
        temperature = fit_temperature(logits[others], targets[others])
        losses += [log_loss(logits[part], targets[part], temperature) * len(part)]
    return sum(losses) / len(logits) - log_loss(logits, targets, 1.0)


if __name__ == "__main__":
    measure.write_section("simulated", of_simulated(), page=PAGE)
    if sys.argv[1:]:
        measure.write_section("real", of_real(Path(sys.argv[1])), page=PAGE)
