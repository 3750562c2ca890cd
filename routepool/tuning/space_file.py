"""space.toml: which settings are searched, among which values, and the preset that they change."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from routepool.errors import InputError
from routepool.model import Classifier
from routepool.settings import Preset, assign
from routepool.settings.choosing import Typed, value_of
from routepool.settings.toml import read_toml, toml_value
from routepool.tuning.space import Choice, Range, Space, named, paper_space, read_domain

_PARTS = ("aggregator", "encoder")  # their classes decide which other settings there are


class SpaceFile(NamedTuple):
    """What a search is asked for."""

    source: str  # the file, for messages
    base: str  # name or file of a preset
    space: Space


PAPER = SpaceFile("the paper's grid", "paper", paper_space())


def read_space(path: Path) -> SpaceFile:
    """Read a file; names and values of settings are checked by `fit_to`, which knows the preset."""
    base, values = read_toml(path, "wanted lines such as learning_rate = [1e-4, 1e-3]")
    space = {}
    for name, plain in values.items():
        with named(f"{path}: {name}"):
            space[name] = read_domain(plain)
    return SpaceFile(str(path), base, space)


def refuse_fixed(searched: SpaceFile, fixed: Iterable[str]) -> None:
    """A setting cannot be searched and be set."""
    for name in fixed:
        if name in searched.space:
            raise InputError(f"{searched.source}: {name} is searched and set on the command line too; drop one of them")


def fit_to(searched: SpaceFile, base: Preset) -> Space:
    """The space with its values as `--set` would read them, each tried on the preset and refused as it would be."""
    first = {name: domain.samples[0] for name, domain in searched.space.items()}
    parts = {name: value for name, value in first.items() if name in _PARTS}
    fitted: dict[str, Choice | Range] = {}
    # The other settings first, so that one of them that is wrong is not blamed on the class it belongs to.
    for name in sorted(searched.space, key=lambda name: name in _PARTS):
        others = first if name in _PARTS else parts
        fitted[name] = _fit_domain(searched, name, others, base)
    return {name: fitted[name] for name in searched.space}


def _fit_domain(searched: SpaceFile, name: str, others: Mapping[str, Any], base: Preset) -> Choice | Range:
    domain = searched.space[name]

    def fit(value: Any) -> Any:
        fitted = _fit(name, value, others, base)
        if isinstance(domain, Range) and not isinstance(fitted, int | float):
            raise InputError("a range is for numbers; give a list of values")
        return fitted

    with named(f"{searched.source}: {name}"):
        return domain.map(fit)


def _fit(name: str, value: Any, others: Mapping[str, Any], base: Preset) -> Any:
    typed = {key: Typed(toml_value(plain)) for key, plain in {**others, name: value}.items()}
    preset = assign(base, typed)
    if not preset.model.is_pretrained:
        with torch.device("meta"):  # checks every option, computes nothing
            Classifier.build(preset.model, vocabulary_size=2, classes=2)
    return value_of(preset, name)
