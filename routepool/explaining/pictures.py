"""Geometry of figure 1, and the table of those who draw pictures with an optional package."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from routepool.explaining.explanation import Explanation, Span
from routepool.registry import Extra, Registry

WORD, PART, HEIGHT, MARGIN = 46.0, 84.0, 150.0, 30.0  # distances, in pixels
_LEAST = 0.02  # an edge of less is not drawn

# Name -> what draws it into a file: explanation, rounds, audit.
PICTURES: Registry[Callable[..., None]] = Registry(
    "picture",
    dict.fromkeys(("explanation", "rounds", "audit"), Extra("routepool.extras.plot_explanation", "plot")),
)


class Edge(NamedTuple):
    """A line from a word to a part of the vector."""

    start: float
    end: float
    width: float
    opacity: float


class Mark(NamedTuple):
    """A word or a part."""

    place: float
    name: str


class Drawing(NamedTuple):
    """One round of routing: words below, parts above, the wider an edge the more goes that way."""

    number: int
    width: float
    height: float
    edges: list[Edge]
    words: list[Mark]
    parts: list[Mark]


def draw_rounds(shown: Explanation, words: Sequence[Span]) -> list[Drawing]:
    """The routes of some words in every round that was kept."""
    if not words or not words[0].rounds:
        return []
    width = max(WORD * len(words), PART * len(shown.parts)) + 2 * MARGIN
    below, above = _spread(len(words), width), _spread(len(shown.parts), width)
    return [
        Drawing(
            one + 1,
            width,
            HEIGHT,
            _edges(words, one, below, above),
            [Mark(place, shown.of(word)[:12]) for place, word in zip(below, words, strict=True)],
            [Mark(place, str(number)) for number, place in enumerate(above, 1)],
        )
        for one in range(len(words[0].rounds))
    ]


def _edges(words: Sequence[Span], number: int, below: list[float], above: list[float]) -> list[Edge]:
    largest = max((weight for word in words for of_round in word.rounds for weight in of_round), default=0) or 1.0
    return [
        Edge(start, end, round(0.5 + 6 * weight / largest, 2), round(0.15 + 0.7 * weight / largest, 2))
        for start, word in zip(below, words, strict=True)
        for end, weight in zip(above, word.rounds[number], strict=True)
        if weight / largest > _LEAST
    ]


def _spread(number: int, width: float) -> list[float]:
    step = (width - 2 * MARGIN) / number
    return [round(MARGIN + step * (place + 0.5), 1) for place in range(number)]
