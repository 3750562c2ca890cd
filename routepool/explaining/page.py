"""Explanations -> one HTML file that needs nothing else: no scripts, no outside assets, a strict content policy."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from routepool.explaining.explanation import Explanation, Unit
from routepool.explaining.pictures import Drawing, draw_rounds

STEPS = 10  # of a colour: a style for each, since a strict policy allows no style of a single word


class Piece(NamedTuple):
    """Some characters of the text and the classes of their colour; those between units have none."""

    text: str
    colour: str = ""
    hint: str = ""


class Line(NamedTuple):
    """A name and the pieces behind it."""

    name: str
    pieces: list[Piece]


class Passage(NamedTuple):
    """A text, or one sentence of a document: its words by score, by capsule, by round."""

    scored: list[Piece]
    capsules: list[Line]
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

    >>> unit = Unit(0, 3, (1.0,), 0.5)
    >>> from routepool.explaining.explanation import UnitLevel
    >>> shown = Explanation("<b>", ("pos",), {"pos": 1.0}, "pos", "message", "mean", (UnitLevel("words", (unit,)),))
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


def _text(shown: Explanation) -> dict[str, Any]:
    likeliest = sorted(shown.probabilities.items(), key=lambda item: -item[1])
    passages = list(_sentences(shown)) if shown.sentences else [_passage(shown, shown.words, _largest(shown.words))]
    return {
        "explanation": shown,
        "labels": [(_clean(label), share, label in shown.predicted) for label, share in likeliest[:STEPS]],
        "label": _clean(shown.label),
        "passages": passages,
        "is_document": bool(shown.sentences),
        "unit": "capsule" if "routing" in shown.aggregator else "weights",
    }


def _sentences(shown: Explanation) -> Iterator[Passage]:
    largest, of_words = _largest(shown.sentences), _largest(shown.words)
    weight = max((share for sentence in shown.sentences for share in sentence.weights), default=0)
    for place, sentence in enumerate(shown.sentences):
        passage = _passage(shown, shown.words_of(place), of_words)
        yield passage._replace(
            score=f"{sentence.score:+.2f}",
            colour=_signed(sentence.score, largest),
            weights=tuple(Piece("", _level("c", share, weight), f"{share:.2f}") for share in sentence.weights),
            is_open=largest > 0 and abs(sentence.score) == largest,
        )


def _passage(shown: Explanation, words: Sequence[Unit], largest: float) -> Passage:
    scored = _pieces(shown, words, [(_signed(word.score, largest), f"{word.score:+.3f}") for word in words])
    capsules = []
    # The share of a word in standard routing; elsewhere weights sum to 1 over the text, and the largest is full.
    full = 1.0 if shown.aggregator == "routing" else max((max(word.weights) for word in words), default=1.0)
    for place in range(shown.capsules):
        shares = [word.weights[place] for word in words]
        pieces = _pieces(shown, words, [(_level("c", share, full), f"{share:.3f}") for share in shares])
        capsules.append(Line(str(place + 1), pieces))
    return Passage(scored, capsules, draw_rounds(shown, words))


def _pieces(shown: Explanation, words: Sequence[Unit], colours: Sequence[tuple[str, str]]) -> list[Piece]:
    """The words in their colours and what stands between them."""
    pieces, end = [], words[0].start if words else 0
    for word, (colour, hint) in zip(words, colours, strict=True):
        if word.start > end:
            pieces.append(Piece(_clean(shown.text[end : word.start])))
        pieces.append(Piece(_clean(shown.of(word)), colour, hint))
        end = word.end
    return pieces


def _largest(units: Sequence[Unit]) -> float:
    return max((abs(unit.score) for unit in units), default=0.0)


def _signed(score: float, largest: float) -> str:
    return _level("a" if score < 0 else "f", abs(score), largest)


def _level(kind: str, value: float, largest: float) -> str:
    step = round(STEPS * min(value / largest, 1)) if largest > 0 else 0
    return f"{kind}{step}" if step else ""


def _clean(text: str) -> str:
    r"""Text that a page can hold: no control characters, no lone surrogates.

    >>> _clean("a\x00\ud800b")
    'a\ufffd\ufffdb'
    """
    return "".join(one if one.isprintable() or one in "\n\t" else " " if one.isspace() else "\ufffd" for one in text)


def _file(name: str) -> str:
    return (files("routepool.explaining") / name).read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_file("page.html.jinja"))
