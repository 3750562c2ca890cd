"""Text from anywhere made fit to be shown: on a terminal, a page, a picture, in a card.

A file, a path or a label may hold control characters, which a terminal obeys, or half a surrogate pair, which UTF-8
cannot encode.
"""

from collections.abc import Sequence

NAMED_AT_MOST = 5  # rows or texts listed in a message that counts more of them
_JOINERS = "\u200c\u200d"  # in Persian words and emoji families


def printable(text: str, *, keep: str = "") -> str:
    r"""Replace what cannot be shown: white space by a space, anything else by a replacement character.

    Args:
        text: from anywhere.
        keep: characters that stay, such as line feeds.

    >>> printable("row\t3:\x1b[31mred\ud800"), printable("two\nlines", keep="\n")
    ('row 3:\ufffd[31mred\ufffd', 'two\nlines')
    """
    kept = keep + _JOINERS
    return "".join(one if one.isprintable() or one in kept else " " if one.isspace() else "\ufffd" for one in text)


def one_line(text: object) -> str:
    r"""A value on one line.

    >>> one_line("row 3:\n\x1b[31mred")
    'row 3: \ufffd[31mred'
    """
    return printable(" ".join(str(text).splitlines()))


def plural(number: int, noun: str) -> str:
    """A number and its noun, which takes an s unless there is one of it.

    >>> plural(1, "text"), plural(1000, "text")
    ('1 text', '1,000 texts')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def by_row(first: Sequence[int], count: int) -> str:
    """The first of some rows of a file, by their numbers.

    >>> by_row([3], 1), by_row([3, 8], 2), by_row(range(1, 9), 900)
    ('row 3', 'rows 3, 8', 'rows 1, 2, 3, 4, 5, ...')
    """
    more = ", ..." if count > NAMED_AT_MOST else ""
    return f"row{'s' * (count > 1)} {', '.join(map(str, first[:NAMED_AT_MOST]))}{more}"
