"""Explanations in a terminal: coloured words, one row for each capsule as in table 4; numbers without colour."""

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from routepool.cli import screen
from routepool.explaining.explanation import Explanation, Unit

_FOR, _AGAINST, _CAPSULE = (47, 123, 216), (224, 118, 43), (107, 79, 208)
_DARK = (38, 40, 46)  # behind a word that counts for nothing


def paint(shown: Explanation) -> None:
    """Prediction, scores and routes of one text."""
    shares = ", ".join(f"{label} {100 * shown.probabilities[label]:.1f} %" for label in shown.predicted) or "no label"
    screen.say("")
    screen.say(f"-> {shares}; what speaks for {shown.label} ({shown.method}):")
    if shown.sentences:
        _paint_document(shown)
    else:
        _print(_scored(shown, shown.words, _largest(shown.words)))
        paint_routes(shown, shown.words)
    if shown.unread:
        screen.say(f"{shown.unread} words behind these were not read")


def paint_routes(shown: Explanation, words: Sequence[Unit]) -> None:
    """One line for each capsule: the brighter a word, the more of it goes there. With rounds, one for each of them."""
    name = "capsule" if "routing" in shown.aggregator else "weights"
    rounds = [None] if not shown.rounds else list(range(shown.rounds))
    full = 1.0 if shown.aggregator == "routing" else max((max(word.weights) for word in words), default=1.0)
    for capsule in range(shown.capsules):
        for number in rounds:
            line = Text(
                f"  {name} {capsule + 1}  " if number is None else f"  {name} {capsule + 1}, round {number + 1}  "
            )
            for word in words:
                share = (word.weights if number is None else word.rounds[number])[capsule]
                _append(line, shown.of(word), share / full if full > 0 else 0, _CAPSULE, f"{100 * share:.0f}")
            _print(line)


def _paint_document(shown: Explanation) -> None:
    largest = _largest(shown.words)
    for place, sentence in enumerate(shown.sentences):
        shares = " ".join(f"{100 * share:3.0f}" for share in sentence.weights)
        _print(Text(f"{sentence.score:+7.2f} [{shares}]  ").append_text(_scored(shown, shown.words_of(place), largest)))
    best = shown.weightiest_sentence()
    screen.say(f"words of sentence {best + 1}, which counts most:")
    paint_routes(shown, shown.words_of(best))


def _scored(shown: Explanation, words: Sequence[Unit], largest: float) -> Text:
    line = Text()
    for word in words:
        strength = abs(word.score) / largest if largest else 0.0
        _append(line, shown.of(word), strength, _AGAINST if word.score < 0 else _FOR, f"{word.score:+.2f}")
    return line


def _append(line: Text, word: str, strength: float, colour: tuple[int, int, int], number: str) -> None:
    word = screen.one_line(word)
    if not screen.out.is_terminal or screen.out.color_system is None:
        line.append(f"{word} {number}  ")
        return
    behind = ",".join(str(round(dark + (full - dark) * strength)) for dark, full in zip(_DARK, colour, strict=True))
    line.append(word, Style(color="white", bgcolor=f"rgb({behind})")).append(" ")


def _print(line: Text) -> None:
    screen.out.print(line)


def _largest(units: Sequence[Unit]) -> float:
    return max((abs(unit.score) for unit in units), default=0.0)
