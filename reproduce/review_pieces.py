"""Sentences and passages of IMDB's training reviews as SST writes its own, each with the stars of its review."""

import random
import re
from collections.abc import Iterator

import sentencex

from routepool.datasets import load_named

WORDS = range(3, 41)  # how long one may be
_WORD = re.compile(r"\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\w+(?:[-.]\w+)*|\.{2,}|-{2,}|[^\w\s]")


def pieces_of_reviews(number: int, *, at_least: int = 1) -> dict[str, int]:
    """So many pieces of reviews -> stars, the same ones every time; of one in several reviews the last one's.

    Args:
        number: all there are if that is fewer.
        at_least: words of a piece, which is as many sentences in a row as it takes; the last ones of a review may be
            too few and are left out.
    """
    found = dict(_pieces(at_least))
    return {text: found[text] for text in random.Random(0).sample(sorted(found), min(number, len(found)))}


def _pieces(at_least: int) -> Iterator[tuple[str, int]]:
    for example in load_named("imdb-reviews-ratings").train.examples:
        piece: list[str] = []
        for sentence in sentencex.segment("en", example.text):
            words = as_sst_writes(sentence).split()
            if len(words) in WORDS and example.labels:
                piece += words
                if len(piece) >= at_least:
                    yield " ".join(piece), int(example.labels[0])
                    piece = []


def as_sst_writes(sentence: str) -> str:
    """Lower case, a space around every mark, clitics apart.

    >>> as_sst_writes("Don't miss it: it's well-made...")
    "do n't miss it : it 's well-made ..."
    """
    return " ".join(_WORD.findall(sentence.lower()))
