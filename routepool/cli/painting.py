"""Explanations in a terminal: coloured words, one line for each part as in table 4; numbers without colour."""

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from routepool.cli import screen
from routepool.explaining.explanation import Explanation, Span, largest_score
from routepool.printable import one_line, plural

_FOR, _AGAINST, _PART = (47, 123, 216), (224, 118, 43), (107, 79, 208)
_DARK = (38, 40, 46)  # behind a word that counts for nothing


def paint(shown: Explanation) -> None:
    """Print the prediction, scores and routes of one text."""
    said = ", ".join(f"{label} {100 * shown.probabilities[label]:.1f} %" for label in shown.predicted) or "no label"
    screen.say("")
    screen.say(f"-> {said}; what speaks for {shown.label} ({shown.method}):")
    if shown.sentences:
        _paint_document(shown)
    else:
        screen.out.print(_scored(shown, shown.words, largest_score(shown.words)))
        paint_routes(shown, shown.words)
    if shown.unread:
        screen.say(f"{plural(shown.unread, 'word')} behind these {'was' if shown.unread == 1 else 'were'} not read")


def paint_routes(shown: Explanation, words: Sequence[Span]) -> None:
    """Print a line for each part, or for each round of it: the brighter a word, the more of it goes there."""
    full = shown.full_weight(words)
    for place, name in enumerate(shown.parts):
        for number in range(max(1, shown.rounds)):
            line = Text(f"  {one_line(name)}, round {number + 1}  " if shown.rounds else f"  {one_line(name)}  ")
            for word in words:
                weight = (word.rounds[number] if shown.rounds else word.weights)[place]
                _append(line, shown.of(word), weight / full if full > 0 else 0, _PART, f"{100 * weight:.0f}")
            screen.out.print(line)


def _paint_document(shown: Explanation) -> None:
    largest = largest_score(shown.words)
    for place, sentence in enumerate(shown.sentences):
        weights = " ".join(f"{100 * weight:3.0f}" for weight in sentence.weights)
        line = Text(f"{sentence.score:+7.2f} [{weights}]  ")
        screen.out.print(line.append_text(_scored(shown, shown.words_of(place), largest)))
    best = shown.weightiest_sentence()
    screen.say(f"words of sentence {best + 1}, which counts most:")
    paint_routes(shown, shown.words_of(best))


def _scored(shown: Explanation, words: Sequence[Span], largest: float) -> Text:
    line = Text()
    for word in words:
        strength = abs(word.score) / largest if largest else 0.0
        _append(line, shown.of(word), strength, _AGAINST if word.score < 0 else _FOR, f"{word.score:+.2f}")
    return line


def _append(line: Text, word: str, strength: float, colour: tuple[int, int, int], number: str) -> None:
    word = one_line(word)
    if not screen.out.is_terminal or screen.out.color_system is None:
        line.append(f"{word} {number}  ")
        return
    behind = ",".join(str(round(dark + (full - dark) * strength)) for dark, full in zip(_DARK, colour, strict=True))
    line.append(word, Style(color="white", bgcolor=f"rgb({behind})")).append(" ")
