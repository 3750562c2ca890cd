"""What is shown of one text: its words and sentences, where each went and how much it mattered. Plain values."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from routepool.errors import InputError
from routepool.text import Reading

FORMAT_VERSION = 2

Row = tuple[float, ...]


@dataclass(frozen=True)
class Span:
    """A word or a sentence.

    Args:
        start: its first character in the text.
        end: the character after its last.
        weights: from the aggregator, one for each part of the vector.
        score: how much it mattered, by the explanation's method; 0 is not at all, below 0 is against the label.
        parent: place of its sentence in the level before; None at the first level.
        rounds: its weights in each round of routing, of which the last are `weights`; empty unless asked for.
    """

    start: int
    end: int
    weights: Row
    score: float
    parent: int | None = None
    rounds: tuple[Row, ...] = ()


@dataclass(frozen=True)
class SpanLevel:
    """All spans of one level, in reading order."""

    name: str  # "sentences" or "words"
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Explanation:
    """What a model says of a text, and on what.

    Weights say where a word went, scores how much it mattered. In standard routing the weights of a word sum to 1 over
    the capsules, whatever the word: alone they cannot rank words.

    Args:
        text: as it was given.
        predicted: the labels of the prediction: one, or any number for a multi-label model.
        probabilities: of every label.
        label: the one whose evidence the scores measure.
        method: the name of the importance method.
        aggregator: registered name of the layer that the weights come from.
        part: what a part of its vector is called, such as capsule.
        share_of: what the weights are shares of: word, if those of a word sum to 1 over the parts; text, if those of a
            part sum to 1 over the words; or nothing.
        levels: sentences first, then words; a model of one level has words only.
        unread: words of the text beyond the model's limit, which it did not read.
        known: how many of the words that were read the model knows; with 0 the prediction means nothing.

    >>> good = Span(2, 6, (0.9, 0.1), 1.5)
    >>> shown = Explanation("A good day", ("pos",), {"neg": 0.1, "pos": 0.9}, "pos", "message", "routing", "capsule",
    ...                     "word", (SpanLevel("words", (good,)),))
    >>> shown.words[0].score, shown.of(good), shown.parts, Explanation.from_json(shown.to_json()) == shown
    (1.5, 'good', ('capsule 1', 'capsule 2'), True)
    """

    text: str
    predicted: tuple[str, ...]
    probabilities: Mapping[str, float]
    label: str
    method: str
    aggregator: str
    part: str
    share_of: str
    levels: tuple[SpanLevel, ...]
    unread: int = 0
    known: int | None = None

    @property
    def reading(self) -> Reading:
        """How much of the text was read; without a number of known words, every word counts as known."""
        return Reading(self.unread, len(self.words) if self.known is None else self.known)

    @property
    def words(self) -> tuple[Span, ...]:
        """The spans of the last level."""
        return self.levels[-1].spans

    @property
    def sentences(self) -> tuple[Span, ...]:
        """The spans of the first level of a document; none for a text read as one sequence."""
        return self.levels[0].spans if len(self.levels) > 1 else ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that a word's weights belong to, such as capsule 3; of a single part, just weights."""
        number = len(self.words[0].weights) if self.words else 0
        return ("weights",) if number == 1 else tuple(f"{self.part} {place + 1}" for place in range(number))

    @property
    def rounds(self) -> int:
        """Rounds of routing that were kept."""
        return len(self.words[0].rounds) if self.words else 0

    def of(self, span: Span) -> str:
        """The characters of a word or a sentence."""
        return self.text[span.start : span.end]

    def words_of(self, sentence: int) -> tuple[Span, ...]:
        """The words of one sentence, by its place."""
        return tuple(word for word in self.words if word.parent == sentence)

    def weightiest_sentence(self) -> int:
        """The place of the sentence that counts most, for the label or against it."""
        return max(range(len(self.sentences)), key=lambda place: abs(self.sentences[place].score))

    def full_weight(self, words: Sequence[Span]) -> float:
        """The weight with the strongest colour: 1 for shares of a word, else the largest of these words."""
        return 1.0 if self.share_of == "word" else max((max(word.weights) for word in words), default=1.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"format_version": FORMAT_VERSION, **asdict(self)}

    def to_json(self) -> str:
        """One line; docs/explain.md has the fields."""
        return json.dumps(self.to_dict(), allow_nan=False)  # ASCII: a lone surrogate of the text has no UTF-8 form

    @classmethod
    def from_json(cls, content: str | bytes) -> Self:
        """Read what `to_json` wrote, in this version of the format or the one before."""
        try:
            return cls.from_dict(json.loads(content))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"wanted the JSON of an explanation, got something else ({error!r:.120})") from error

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        version = values.get("format_version")
        plain = {name: value for name, value in values.items() if name != "format_version"}
        if version == 1:
            plain = _of_version_1(plain)
        elif version != FORMAT_VERSION:
            raise InputError(f"wanted an explanation of format version 1 to {FORMAT_VERSION}, got {version!r}")
        levels = tuple(
            SpanLevel(level["name"], tuple(_span(one, len(plain["text"])) for one in level["spans"]))
            for level in plain.pop("levels")
        )
        return cls(predicted=tuple(plain.pop("predicted")), levels=levels, **plain)


# What an aggregator's name stood for in version 1: its parts, and what the weights are shares of.
_PARTS_1 = {
    "routing": ("capsule", "word"),
    "reverse-routing": ("capsule", "text"),
    "structured-attention": ("row", "text"),
    "attention": ("vector", "text"),
    "multi-hop": ("vector", "text"),
    "max": ("vector", "text"),
    "mean": ("vector", "text"),
}


def _of_version_1(values: dict[str, Any]) -> dict[str, Any]:
    """A version 1 explanation as one of version 2, which says what the weights are and calls units spans."""
    part, share_of = _PARTS_1.get(values["aggregator"], ("vector", "nothing"))
    levels = [{"name": level["name"], "spans": level["units"]} for level in values["levels"]]
    return {**values, "part": part, "share_of": share_of, "levels": levels}


def largest_score(spans: Sequence[Span]) -> float:
    """The size of the score that is farthest from 0; 0 for no spans."""
    return max((abs(span.score) for span in spans), default=0.0)


def _span(values: Mapping[str, Any], characters: int) -> Span:
    rounds = tuple(map(tuple, values["rounds"]))
    span = Span(**{**values, "weights": tuple(values["weights"]), "rounds": rounds})
    if not 0 <= span.start <= span.end <= characters:
        raise InputError(f"a span must lie in the text's {characters} characters, got {span.start} to {span.end}")
    if not all(map(math.isfinite, (span.score, *span.weights))):
        raise InputError(f"weights and scores must be finite, got {span.score!r} and {span.weights!r}")
    return span
