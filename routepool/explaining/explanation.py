"""What is shown of one text: its units, where each went, how much each mattered. Plain values, no torch."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from routepool.errors import InputError
from routepool.text import Reading

FORMAT_VERSION = 1

Row = tuple[float, ...]


@dataclass(frozen=True)
class Unit:
    """A word or a sentence.

    Args:
        start: its first character in the text.
        end: the character after its last.
        weights: what the aggregator gave it, a number for each capsule (attention row; 1 for pooling and attention).
        score: how much it mattered, by the explanation's method; 0 is nothing, below 0 is against the label.
        parent: place of its sentence in the level before; None at the first level.
        rounds: its weights in each round of routing, the last one being `weights`; empty unless asked for.
    """

    start: int
    end: int
    weights: Row
    score: float
    parent: int | None = None
    rounds: tuple[Row, ...] = ()


@dataclass(frozen=True)
class UnitLevel:
    """All units of one level, in reading order."""

    name: str  # "sentences" or "words"
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class Explanation:
    """What a model says of a text, and on what.

    Weights say where a unit went, scores how much it mattered. In standard routing the weights of a word sum to 1 over
    the capsules, whatever the word: alone they cannot rank words.

    Args:
        text: as it was given.
        predicted: the labels of the prediction: one, or any number for a multi-label model.
        probabilities: of every label.
        label: the one whose evidence the scores measure.
        method: the name of the way the scores were computed.
        aggregator: registered name of the layer that the weights come from.
        levels: sentences first, then words; a model of one level has words only.
        unread: words of the text that the model did not read, being too many.
        known: words among those read that the model knows; with none the prediction means nothing. None if not told.

    >>> good = Unit(2, 6, (0.9, 0.1), 1.5)
    >>> shown = Explanation("A good day", ("pos",), {"neg": 0.1, "pos": 0.9}, "pos", "message", "routing",
    ...                     (UnitLevel("words", (good,)),))
    >>> shown.words[0].score, shown.of(good), Explanation.from_json(shown.to_json()) == shown
    (1.5, 'good', True)
    """

    text: str
    predicted: tuple[str, ...]
    probabilities: Mapping[str, float]
    label: str
    method: str
    aggregator: str
    levels: tuple[UnitLevel, ...]
    unread: int = 0
    known: int | None = None

    @property
    def reading(self) -> Reading:
        """How much of the text was read; what is not told counts as known."""
        return Reading(self.unread, len(self.words) if self.known is None else self.known)

    @property
    def words(self) -> tuple[Unit, ...]:
        """The units of the last level."""
        return self.levels[-1].units

    @property
    def sentences(self) -> tuple[Unit, ...]:
        """The units of the first level of a document; none for a text read as one sequence."""
        return self.levels[0].units if len(self.levels) > 1 else ()

    @property
    def capsules(self) -> int:
        """Weights of a unit of the last level."""
        return len(self.words[0].weights) if self.words else 0

    @property
    def rounds(self) -> int:
        """Rounds of routing that were kept."""
        return len(self.words[0].rounds) if self.words else 0

    def of(self, unit: Unit) -> str:
        """The characters of a unit."""
        return self.text[unit.start : unit.end]

    def words_of(self, sentence: int) -> tuple[Unit, ...]:
        """The words of one sentence, by its place."""
        return tuple(word for word in self.words if word.parent == sentence)

    def weightiest_sentence(self) -> int:
        """The place of the sentence that counts most, for the label or against it."""
        return max(range(len(self.sentences)), key=lambda place: abs(self.sentences[place].score))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"format_version": FORMAT_VERSION, **asdict(self)}

    def to_json(self) -> str:
        """One line; docs/explain.md has the fields."""
        return json.dumps(self.to_dict(), allow_nan=False)  # ASCII: a lone surrogate of the text has no UTF-8 form

    @classmethod
    def from_json(cls, content: str | bytes) -> Self:
        """Read what `to_json` wrote."""
        try:
            return cls._from(json.loads(content))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"wanted the JSON of an explanation, got something else ({error!r:.120})") from error

    @classmethod
    def _from(cls, values: Mapping[str, Any]) -> Self:
        version = values.get("format_version")
        if version != FORMAT_VERSION:
            raise InputError(f"wanted an explanation of format version {FORMAT_VERSION}, got {version!r}")
        plain = {name: value for name, value in values.items() if name != "format_version"}
        levels = tuple(UnitLevel(level["name"], tuple(map(_unit, level["units"]))) for level in plain.pop("levels"))
        made = cls(predicted=tuple(plain.pop("predicted")), levels=levels, **plain)
        for level in levels:
            for unit in level.units:
                _check(unit, len(made.text))
        return made


def _unit(values: Mapping[str, Any]) -> Unit:
    rounds = tuple(map(tuple, values["rounds"]))
    return Unit(**{**values, "weights": tuple(values["weights"]), "rounds": rounds})


def _check(unit: Unit, characters: int) -> None:
    if not 0 <= unit.start <= unit.end <= characters:
        raise InputError(f"a unit must lie in the text's {characters} characters, got {unit.start} to {unit.end}")
    if not all(map(math.isfinite, (unit.score, *unit.weights))):
        raise InputError(f"weights and scores must be finite, got {unit.score!r} and {unit.weights!r}")
