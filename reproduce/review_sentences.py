"""Sentences of IMDB's training reviews as SST writes its own, each with the stars of its review."""

import random
import re
from collections.abc import Iterator

import sentencex

from routepool.datasets import load_named

WORDS = range(3, 41)  # how long one may be
_WORD = re.compile(r"\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\w+(?:[-.]\w+)*|\.{2,}|-{2,}|[^\w\s]")


def sentences_of_reviews(number: int) -> dict[str, int]:
    """So many sentences -> stars, or all there are, the same ones every time; of one in several reviews the last's."""
    found = dict(_sentences())
    return {text: found[text] for text in random.Random(0).sample(sorted(found), min(number, len(found)))}


def _sentences() -> Iterator[tuple[str, int]]:
    for example in load_named("imdb-reviews-ratings").train.examples:
        for sentence in sentencex.segment("en", example.text):
            words = as_sst_writes(sentence).split()
            if len(words) in WORDS and example.labels:
                yield " ".join(words), int(example.labels[0])


def as_sst_writes(sentence: str) -> str:
    """Lower case, a space around every mark, clitics apart.

    >>> as_sst_writes("Don't miss it: it's well-made...")
    "do n't miss it : it 's well-made ..."
    """
    return " ".join(_WORD.findall(sentence.lower()))
