"""The errors a user can meet. Each message says what came, what was wanted, and where (file and row)."""

import signal
from collections.abc import Sequence
from difflib import get_close_matches

_LISTED, _COMPARED = 100, 200  # names shown in a message, and compared to find the nearest one
_LONGEST = 80  # characters of a name there


class RoutepoolError(Exception):
    """Base of every error that routepool raises on purpose."""


class InputError(RoutepoolError, ValueError):
    """A value, tensor, file or row that cannot be used as it is."""


class UnknownNameError(InputError):
    """A name that is in no table; the message lists the known ones."""


class NotFiniteError(RoutepoolError, ArithmeticError):
    """What a model computes of a text is not a finite number.

    Args:
        place: of the text among those given.
        where: another name of the text, such as its row in a file.
    """

    def __init__(self, place: int, where: str | None = None) -> None:
        self.place = place
        super().__init__(
            f"the model's answer to {where or f'texts[{place}]'} is not a finite number, so its weights are damaged or "
            "far too large; copy the model folder again, or train again with a lower learning_rate"
        )

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return type(self), (self.place,)


class InterruptedTrainingError(RoutepoolError):
    """A signal stopped training, `number`; its last checkpoint can be resumed."""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = number


class UnreadTextWarning(UserWarning):
    """Texts were longer than a model reads, or hold no word that it knows."""


class MissingPackageError(RoutepoolError, ImportError):
    """An optional package is not installed; the message gives the pip line."""


def unknown(kind: str, name: str, known: Sequence[str]) -> UnknownNameError:
    """The error for a mistyped name: it suggests the nearest known one and lists them all.

    >>> unknown("encoder", "bilstn", ["bilstm", "cnn"])
    UnknownNameError("unknown encoder 'bilstn', did you mean 'bilstm'? Known: bilstm, cnn")
    """
    close = get_close_matches(str(name)[:_LONGEST], [one[:_LONGEST] for one in known[:_COMPARED]], n=1)
    hint = f", did you mean {close[0]!r}?" if close else "."
    return UnknownNameError(f"unknown {kind} {name!r:.80}{hint} Known: {listed(known)}")


def listed(names: Sequence[str]) -> str:
    """Names for a message, shortened if there are many or if they are long.

    >>> listed(["text", "label"]), listed([str(number) for number in range(1000)])[-21:]
    ('text, label', '98, 99 and 900 others')
    """
    more = f" and {len(names) - _LISTED:,} others" if len(names) > _LISTED else ""
    return ", ".join(name[:_LONGEST] for name in names[:_LISTED]) + more
