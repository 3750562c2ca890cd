"""What explaining a text costs, known before it is begun: in words that would have to be read to predict as long."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

from routepool.explaining.methods import METHODS, STEPS, usual_method
from routepool.explaining.passes import levels_of
from routepool.explaining.subject import Subject
from routepool.text import Encoded, words_of

SLOPE = 3  # of a word that is read with the gradient that comes back, or with every message built
SENTENCE = 3  # of a sentence's vector that is read again: it is wider than a word's


class Size(NamedTuple):
    """What the cost of a text depends on."""

    words: int  # whole ones, that can be left out
    pieces: int  # that the model reads: words, or parts of them
    sentences: tuple[int, ...]  # pieces of each; none for a text read as one sequence
    capsules: int

    @classmethod
    def of(cls, subject: Subject, encoded: Encoded) -> Self:
        """The size of one text."""
        words = int(words_of(encoded).of_pieces.max(initial=-1)) + 1
        sentences = tuple(encoded.lengths.tolist()) if subject.depth > 1 else ()
        return cls(words, len(encoded.ids), sentences, levels_of(subject.model)[0].aggregator.parts.number)


def _by_leaving_out(size: Size) -> int:
    """Each word's whole text; of a document, each word's sentence and the vectors of all."""
    if not size.sentences:
        return size.words * size.pieces
    number = len(size.sentences)
    return sum(length**2 for length in size.sentences) + (size.words + number) * number * SENTENCE


def _by_removing_capsules(size: Size) -> int:
    return size.pieces + len(size.sentences) ** 2 * size.capsules * SENTENCE


# Names of `METHODS` -> what the method reads of a text.
COSTS: dict[str, Callable[[Size], int]] = {
    "message": lambda size: size.pieces * SLOPE,
    "capsule": _by_removing_capsules,
    "gradient-message": lambda size: size.pieces * SLOPE,
    "gradient": lambda size: size.pieces * SLOPE,
    "integrated-gradients": lambda size: size.pieces * SLOPE * STEPS,
    "leave-one-out": _by_leaving_out,
}


def costs_of(subject: Subject, texts: Sequence[str], *, method: str | None = None) -> list[int]:
    """About how many words a model reads to explain each text; to predict it, it reads each of its words once.

    Args:
        subject: the model.
        texts: raw.
        method: a name of `METHODS`; None for the usual one. One of which no cost is known counts as leave-one-out.
    """
    method = method or usual_method(subject)
    METHODS[method]  # an unknown name is refused
    cost = COSTS.get(method, _by_leaving_out)
    sizes = [Size.of(subject, one) for one in subject.encode(texts)]
    # Every explanation begins with what the model says of the whole text.
    return [size.pieces + cost(size) for size in sizes]
