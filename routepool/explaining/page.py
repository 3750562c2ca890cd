"""Explanations -> one HTML file that needs nothing else: no scripts, no outside assets, a strict content policy.

The geometry of its pictures of routing, round by round, is also that of figure 1 as a picture file.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from routepool.explaining.explanation import Explanation, Span, largest_score
from routepool.printable import plural, printable

STEPS = 10  # of a colour: a style for each, since a strict policy allows no style of a single word
WORD, PART, HEIGHT, MARGIN = 46.0, 84.0, 150.0, 30.0  # distances, in pixels
_LEAST = 0.02  # an edge of less is not drawn


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


class Piece(NamedTuple):
    """Some characters of the text and the classes of their colour; those between words have none."""

    text: str
    colour: str = ""
    hint: str = ""


class Line(NamedTuple):
    """A name and the pieces behind it."""

    name: str
    pieces: list[Piece]


class Passage(NamedTuple):
    """A text, or one sentence of a document: its words by score, by part of the vector, by round."""

    scored: list[Piece]
    parts: list[Line]
    rounds: list[Drawing]
    score: str = ""
    colour: str = ""
    weights: tuple[Piece, ...] = ()
    is_open: bool = False


def render_page(explanations: Sequence[Explanation], *, title: str = "Explanation") -> str:
    """The file's content.

    Args:
        explanations: shown one below the other.
        title: of the page.

    >>> from routepool.explaining.explanation import SpanLevel
    >>> words = SpanLevel("words", (Span(0, 3, (1.0,), 0.5),))
    >>> shown = Explanation("<b>", ("pos",), {"pos": 1.0}, "pos", "message", "mean", "vector", "text", (words,))
    >>> "&lt;b&gt;" in render_page([shown]), "<b>" in render_page([shown])
    (True, False)
    """
    style = _file("page.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(
        title=_clean(title),
        # Not escaped: the browser compares the hash with the characters as they stand.
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        texts=[_text(one) for one in explanations],
    )


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


def _text(shown: Explanation) -> dict[str, Any]:
    likeliest = sorted(shown.probabilities.items(), key=lambda item: -item[1])
    return {
        "explanation": shown,
        "labels": [(_clean(label), value, label in shown.predicted) for label, value in likeliest[:STEPS]],
        "label": _clean(shown.label),
        "passages": list(_passages(shown)),
        "is_document": bool(shown.sentences),
        "unread": f"{plural(shown.unread, 'word')} behind these {'was' if shown.unread == 1 else 'were'}",
    }


def _passages(shown: Explanation) -> Iterator[Passage]:
    largest, of_words = largest_score(shown.sentences), largest_score(shown.words)
    if not shown.sentences:
        yield _passage(shown, shown.words, of_words)
    full = max((weight for sentence in shown.sentences for weight in sentence.weights), default=0)
    for place, sentence in enumerate(shown.sentences):
        passage = _passage(shown, shown.words_of(place), of_words)
        yield passage._replace(
            score=f"{sentence.score:+.2f}",
            colour=_signed(sentence.score, largest),
            weights=tuple(Piece("", _level("c", weight, full), f"{weight:.2f}") for weight in sentence.weights),
            is_open=largest > 0 and abs(sentence.score) == largest,
        )


def _passage(shown: Explanation, words: Sequence[Span], largest: float) -> Passage:
    scored = _pieces(shown, words, [(_signed(word.score, largest), f"{word.score:+.3f}") for word in words])
    parts = []
    full = shown.full_weight(words)
    for place, name in enumerate(shown.parts):
        weights = [word.weights[place] for word in words]
        pieces = _pieces(shown, words, [(_level("c", weight, full), f"{weight:.3f}") for weight in weights])
        parts.append(Line(_clean(name), pieces))
    return Passage(scored, parts, draw_rounds(shown, words))


def _pieces(shown: Explanation, words: Sequence[Span], colours: Sequence[tuple[str, str]]) -> list[Piece]:
    """The words in their colours and what stands between them."""
    pieces, end = [], words[0].start if words else 0
    for word, (colour, hint) in zip(words, colours, strict=True):
        if word.start > end:
            pieces.append(Piece(_clean(shown.text[end : word.start])))
        pieces.append(Piece(_clean(shown.of(word)), colour, hint))
        end = word.end
    return pieces


def _signed(score: float, largest: float) -> str:
    return _level("a" if score < 0 else "f", abs(score), largest)


def _level(kind: str, value: float, largest: float) -> str:
    step = round(STEPS * min(value / largest, 1)) if largest > 0 else 0
    return f"{kind}{step}" if step else ""


def _clean(text: str) -> str:
    return printable(text, keep="\n\t")


def _file(name: str) -> str:
    return (files("routepool.explaining") / name).read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_file("page.html.jinja"))
