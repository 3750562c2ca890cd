"""Name -> class tables: how a setting names an encoder or an aggregator, and can never name a module."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Generic, NamedTuple, TypeVar

from routepool.errors import InputError, MissingPackageError, unknown

T = TypeVar("T")


class Extra(NamedTuple):
    """Where an optional part lives and what installs it."""

    module: str  # a file of routepool.extras
    extra: str  # the name in `pip install "routepool[...]"`


class Registry(Generic[T]):
    """One table of named things, filled by a decorator and, on a miss, by a file of `routepool.extras`.

    >>> shapes = Registry[type]("shape")
    >>> @shapes.register("round")
    ... class Circle: ...
    >>> shapes["round"].__name__
    'Circle'
    >>> shapes["rond"]
    Traceback (most recent call last):
    routepool.errors.UnknownNameError: unknown shape 'rond', did you mean 'round'? Known: round
    """

    def __init__(self, kind: str, extras: Mapping[str, Extra] | None = None, *, home: str | None = None) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self._extras = dict(extras or {})
        self._home = home  # a module that fills the table, imported when it is first asked

    def register(self, name: str) -> Callable[[T], T]:
        """Enter the decorated class under `name`; a name is given once."""

        def enter(entry: T) -> T:
            if self._entries.setdefault(name, entry) is not entry:
                raise InputError(f"{self.kind} {name!r} is already registered; choose another name")
            return entry

        return enter

    def names(self) -> list[str]:
        """Every name this table answers to, optional parts included."""
        self._fill()
        return sorted(self._entries.keys() | self._extras.keys())

    def __getitem__(self, name: str) -> T:
        self._fill()
        if name not in self._entries and name in self._extras:
            self._import(self._extras[name])
        if name not in self._entries:
            raise unknown(self.kind, name, self.names())
        return self._entries[name]

    def _fill(self) -> None:
        home, self._home = self._home, None
        if home is not None:
            import_module(home)

    def _import(self, extra: Extra) -> None:
        try:
            import_module(extra.module)
        except ModuleNotFoundError as error:
            raise MissingPackageError(
                f'this {self.kind} needs the package {error.name!r}: pip install "routepool[{extra.extra}]"'
            ) from error
