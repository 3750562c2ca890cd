"""Tables name -> class: a setting names an encoder or an aggregator, and can never name a module.

A class of your own is named like one of routepool's. Its module registers it and is imported by `--plugin MODULE`, by
your own `import`, or on first use of the name if its package declares it as an entry point:

    [project.entry-points."routepool.plugins"]
    sum = "my_layers"
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points, packages_distributions, version
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from routepool.errors import InputError, MissingPackageError, unknown

if TYPE_CHECKING:
    from routepool.layers import Aggregator, Encoder, Head, PretrainedEncoder

PLUGINS = "routepool.plugins"  # the group of entry points: the name of a registered class -> the module it is in

T = TypeVar("T")


class Extra(NamedTuple):
    """Where an optional part lives and what installs it."""

    module: str  # a file of routepool.extras
    extra: str  # the name in `pip install "routepool[...]"`


class Registry(Generic[T]):
    """One table of named things, filled by a decorator and, on a miss, by a file of `routepool.extras` or a plugin.

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
        self.entries: dict[str, T] = {}
        self.extras = dict(extras or {})
        self._home = home  # a module that fills the table, imported when it is first asked

    def register(self, name: str) -> Callable[[T], T]:
        """Enter the decorated class under `name`; a name is given once."""

        def enter(entry: T) -> T:
            if self.entries.setdefault(name, entry) is not entry:
                raise InputError(f"{self.kind} {name!r} is already registered; choose another name")
            return entry

        return enter

    def names(self) -> list[str]:
        """Every known name, optional parts included."""
        self._fill()
        return sorted(self.entries.keys() | self.extras.keys())

    def __getitem__(self, name: str) -> T:
        if name not in self.entries:
            self._fill()
        if name not in self.entries:
            self._import(name)
        if name not in self.entries:
            raise unknown(self.kind, name, self.names())
        return self.entries[name]

    def _fill(self) -> None:
        home, self._home = self._home, None
        if home is not None:
            import_module(home)

    def _import(self, name: str) -> None:
        """Import what registers the name: an optional part of routepool, else an installed package that declares it."""
        if name in self.extras:
            module, extra = self.extras[name]
            try:
                import_module(module)
            except ModuleNotFoundError as error:
                raise MissingPackageError(
                    f'this {self.kind} needs the package {error.name!r}: pip install "routepool[{extra}]"'
                ) from error
            return
        for point in entry_points(group=PLUGINS, name=name):
            import_plugin(point.value)


def import_plugin(module: str) -> None:
    """Import a user's module, so that the classes it registers can be named.

    >>> import_plugin("no_such_module")
    Traceback (most recent call last):
    routepool.errors.InputError: plugin no_such_module: there is no module of that name; install it, or go to its folder
    """
    try:
        import_module(module)
    except Exception as error:  # whatever a user's module may raise
        if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
            why = "there is no module of that name; install it, or go to its folder"
        else:
            why = f"it cannot be imported ({type(error).__name__}: {error!s:.200}); correct it"
        raise InputError(f"plugin {module}: {why}") from error


def origin_of(entry: type) -> str | None:
    """Where a registered class comes from: its full name and its package; None for one of routepool's.

    >>> from collections import Counter
    >>> origin_of(Registry), origin_of(Counter)
    (None, 'collections.Counter')
    """
    top = entry.__module__.partition(".")[0]
    if top == __name__.partition(".")[0]:
        return None
    brought_by = [f"{name} {version(name)}" for name in packages_distributions().get(top, ())[:1]]
    return " of ".join([f"{entry.__module__}.{entry.__qualname__}", *brought_by])


# The classes that a setting names.
AGGREGATORS: "Registry[type[Aggregator]]" = Registry("aggregator", home="routepool.layers")
ENCODERS: "Registry[type[Encoder]]" = Registry("encoder", home="routepool.layers")
HEADS: "Registry[type[Head]]" = Registry("head", home="routepool.layers")
PRETRAINED: "Registry[type[PretrainedEncoder]]" = Registry(
    "pre-trained encoder", {"hf": Extra("routepool.extras.huggingface", "hf")}
)
