"""The sets of the experiments: the known ones, fixed stratified parts of the reviews, and phrases with reviews."""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from reproduce.review_sentences import sentences_of_reviews
from routepool.datasets import Dataset, Example, Parts, load_named, split
from routepool.datasets.named import ENVIRONMENT
from routepool.settings import PHRASES

SIZES = (5000, 1000, 5000)  # of train, dev and test
_PARTS_OF = {"imdb-5000": "imdb-reviews", "imdb-ratings-5000": "imdb-reviews-ratings"}
WARM_UP, SENTENCES = "warm-up-", 100_000  # phrases with sentences of reviews, at most so many
GRADED = "-graded"  # the texts and labels of SST-1's phrases, to be scored on SST-2
_CLASSES = {
    2: {stars: "0" if stars < 6 else "1" for stars in range(1, 11)},
    5: {1: "0", 2: "0", 3: "1", 4: "1", 7: "3", 8: "3", 9: "4", 10: "4"},
}
# The paper's sets of documents (Tang et al. 2015): name -> first file.
TANG = {
    "yelp2013": "yelp-2013-train.txt.ss",
    "yelp2014": "yelp-2014-train.txt.ss",
    "imdb": "imdb-train.txt.ss",
}


def load(name: str, *, at_most: int | None = None) -> Parts:
    """The set of that name.

    Args:
        name: a known set, or one of its fixed parts.
        at_most: rows of each part that are kept, for a quick look.
    """
    parts = load_named(known_set(name))
    if name.startswith(WARM_UP):
        parts = parts._replace(train=_with_reviews(parts.train, _CLASSES[len(parts.train.labels)]))
    if name.endswith(GRADED):
        parts = parts._replace(train=_without(load_named("sst1-phrases").train, parts.dev, parts.test))
    if name in _PARTS_OF:
        parts = Parts(*(_some(part, size) for part, size in zip(parts, SIZES, strict=True)))
    return parts if at_most is None else Parts(*(_some(part, at_most) for part in parts))


def _without(train: Dataset, *held: Dataset) -> Dataset:
    """The examples whose text is in none of the others."""
    known = {example.text for part in held for example in part.examples}
    return train.select([row for row, example in enumerate(train.examples) if example.text not in known])


def _with_reviews(train: Dataset, classes: dict[int, str]) -> Dataset:
    """Sentences of reviews after the others, each with the class of its review's stars: often wrong, and many."""
    known = {example.text for example in train.examples}
    new = {text: stars for text, stars in sentences_of_reviews(SENTENCES).items() if text not in known}
    added = (Example(row, text, (classes[stars],)) for row, (text, stars) in enumerate(new.items(), 1))
    return replace(train, examples=(*train.examples, *added))


def present(name: str) -> bool:
    """Whether the data folder holds that set of Tang et al., by itself or in a folder of its name."""
    folder = Path(os.environ.get(ENVIRONMENT) or os.devnull)
    return any((folder / inner / TANG[name]).exists() for inner in (name, "."))


def known_set(name: str) -> str:
    """The known set that the texts come from, whose texts may be tokenised already."""
    return _PARTS_OF.get(name, name.removeprefix(WARM_UP).removesuffix(GRADED))


def scored_set(name: str) -> str:
    """The set whose dev and test parts score a model: phrases are only learned from."""
    return name.removesuffix(GRADED).removesuffix(PHRASES)


def fingerprint(parts: Parts) -> str:
    """Of every text and label, in order."""
    digest = hashlib.sha256()
    for part in parts:
        for example in part.examples:
            digest.update(_line((example.text, *(example.labels or ()))))
    return digest.hexdigest()


def _line(cells: Iterable[str]) -> bytes:
    return ("\t".join(cells) + "\n").encode()


def _some(part: Dataset, number: int) -> Dataset:
    return part if len(part.examples) <= number else part.select(split(part.examples, held=number).held)
