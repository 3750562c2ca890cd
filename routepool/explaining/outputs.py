"""Explanations, audits and reports as files: the suffix of a name says what is written."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from routepool.datasets import Example, Reader, options_for, read
from routepool.errors import InputError
from routepool.explaining.audits import Audit
from routepool.explaining.capsules import CapsuleReport
from routepool.explaining.explanation import Explanation
from routepool.explaining.methods import METHODS
from routepool.explaining.page import render_page
from routepool.registry import Extra, Registry
from routepool.scoring.bulk import check_out, naming_rows, new_file
from routepool.scoring.predictor import Predictor, load

DRAWN = (".png", ".svg")
EXPLANATIONS, AUDITS, REPORTS = (".html", ".json", ".jsonl", *DRAWN), (".json", *DRAWN), (".json",)
# Name -> what draws it into a file: explanation, rounds, audit.
PICTURES: Registry[Callable[..., None]] = Registry(
    "picture", dict.fromkeys(("explanation", "rounds", "audit"), Extra("routepool.extras.plot_explanation", "plot"))
)


class Explained(NamedTuple):
    """What became of a file of texts."""

    reader: Reader  # its source, and the rows that were left out
    examples: list[Example]
    explanations: list[Explanation]


def explain_file(
    model: Predictor | str | os.PathLike[str],
    source: str,
    out: Sequence[str] = (),
    *,
    method: str | None = None,
    label: str | None = None,
    iterations: bool = False,
    force: bool = False,
    **reading: Any,
) -> Explained:
    """Explain all texts of a file: what `routepool explain RUN FILE --out O` does.

    Args:
        model: what computes, or a model folder.
        source: a file, or `-` for standard input.
        out: files, each of which appears complete or not at all.
        method: a name of `METHODS`; None for the usual one.
        label: the one that words speak for; None for the likeliest of each text.
        iterations: keep the weights of every round of routing.
        force: replace files that are there.
        reading: how the file is read, the options of `routepool.datasets.read`.
    """
    check_asked(out, EXPLANATIONS, method=method, force=force)
    model = model if isinstance(model, Predictor) else load(model)
    reader = read(source, **options_for(source, model.columns, labels=False, **reading))
    examples = list(reader)
    if not examples:
        left_out = sum(reader.skipped_kinds.values())
        raise InputError(f"{reader.source}: no text to explain" + (f"; rows left out: {left_out}" if left_out else ""))
    _check_number(out, len(examples))
    with naming_rows(reader.source, examples):
        texts = [example.text for example in examples]
        explanations = model.explain(texts, method=method, label=label, iterations=iterations)
    write_explanations(out, explanations)
    return Explained(reader, examples, explanations)


def check_asked(names: Sequence[str], forms: Sequence[str], *, method: str | None = None, force: bool = False) -> None:
    """Raise InputError for what cannot be written or computed, before anything is."""
    if method is not None:
        METHODS[method]
    for name in names:
        if _form(name) not in forms:
            raise InputError(f"{name}: wanted a name that ends in {', '.join(forms)}, to know what to write")
        check_out(Path(name), force=force)


def write_explanations(names: Sequence[str], shown: Sequence[Explanation]) -> None:
    """Write a page (.html) or JSON lines of any number of texts, JSON or a picture of one."""
    _check_number(names, len(shown))
    for name in names:
        if _form(name) in DRAWN:
            _draw(name, "rounds" if shown[0].rounds else "explanation", shown[0])
        else:
            page = _form(name) == ".html"
            _write(name, render_page(shown) if page else "".join(one.to_json() + "\n" for one in shown))


def write_findings(names: Sequence[str], found: Audit | CapsuleReport) -> None:
    """Write an audit as JSON or a picture of its curves, a report of capsules as JSON."""
    for name in names:
        if _form(name) in DRAWN:
            _draw(name, "audit", found)
        else:
            _write(name, json.dumps(found.to_dict(), indent=2, allow_nan=False) + "\n")


def _check_number(names: Sequence[str], texts: int) -> None:
    for name in names:
        if texts != 1 and _form(name) in (".json", *DRAWN):
            raise InputError(f"{name}: holds one text, got {texts}; write .jsonl or .html")


def _form(name: str) -> str:
    return Path(name).suffix.lower()


def _draw(name: str, picture: str, content: Any) -> None:
    with new_file(name) as file:
        PICTURES[picture](file, content, form=_form(name)[1:])


def _write(name: str, content: str) -> None:
    with new_file(name) as file:
        file.write(content.encode("utf-8", "replace"))
