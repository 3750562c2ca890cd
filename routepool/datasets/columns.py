"""Which column is the text and which the label: as asked, or guessed with the reason said."""

from collections.abc import Sequence
from dataclasses import dataclass

from routepool.datasets.records import Item, Record
from routepool.errors import InputError, listed, unknown

TEXT_NAMES = (
    "text", "texts", "review", "review_text", "reviewtext", "sentence", "content", "comment", "document", "body",
    "message", "tweet", "utterance", "question", "description", "headline", "title",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "category", "categories", "sentiment", "target", "stars", "rating", "score", "intent",
    "topic", "polarity", "emotion", "genre", "tag", "tags",
)  # fmt: skip
KNOWN_NAMES = frozenset(TEXT_NAMES + LABEL_NAMES)


@dataclass(frozen=True)
class Columns:
    """The columns in use, and why these; `header` says whether the file has one."""

    text: str
    label: str | None
    why: str
    header: bool = False


def choose(
    names: Sequence[str],
    sample: Sequence[Item],
    *,
    text: str | None = None,
    label: str | None = None,
    want_label: bool = True,
) -> Columns:
    """Settle the columns: those asked for, else by their names, else the longer of two is the text.

    >>> choose(["id", "review", "stars"], []).why
    "text column 'review' and label column 'stars', by their names"
    >>> choose(["review", "stars"], [], text="reviews")
    Traceback (most recent call last):
    routepool.errors.UnknownNameError: unknown column 'reviews', did you mean 'review'? Known: review, stars
    """
    for asked in (text, label):
        if asked is not None and asked not in names:
            raise unknown("column", asked, names)
    asked_for = text is not None and (label is not None or not want_label)
    label = label or _by_name(names, LABEL_NAMES, taken=text)
    known_text = text or _by_name(names, TEXT_NAMES, taken=label)
    by_name = known_text is not None and (label is not None or not want_label)
    text = known_text or _longest([name for name in names if name != label], sample)
    if want_label:
        label = label or _only([name for name in names if name != text])
    chosen = f"text column {text!r}" + (f" and label column {label!r}" if want_label else "")
    why = "as asked" if asked_for else "by their names" if by_name else "guessed: the longer texts"
    return Columns(text, label if want_label else None, f"{chosen}, {why}")


def _by_name(names: Sequence[str], known: Sequence[str], *, taken: str | None) -> str | None:
    matches = [name for name in names if name != taken and name.strip().lower() in known]
    return min(matches, key=lambda name: known.index(name.strip().lower()), default=None)


def _longest(names: Sequence[str], sample: Sequence[Item]) -> str:
    if not 1 <= len(names) <= 2:
        raise InputError(f"cannot tell which column is the text; name it: {listed(names) or 'there is none'}")
    records = [item for item in sample if isinstance(item, Record)]
    return max(names, key=lambda name: sum(len(str(record.fields.get(name, ""))) for record in records))


def _only(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise InputError(f"cannot tell which column is the label; name it: {listed(names) or 'there is no other'}")
    return names[0]
