"""README.md of a model folder: what the model is, where it comes from, how good it is, how to use it."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from routepool.errors import unknown
from routepool.persistence.description import SavedModel
from routepool.persistence.metadata import TITLE, brief, front_matter

FIELDS = (
    *("title", "data", "versions", "scores", "calibration", "confusion", "limits"),
    *("datasets", "language", "license"),
)
_MOST_LABELS = 100
_MOST_CONFUSED = 20  # labels whose confusion still fits a page
_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~$!])")
_OPENS_A_BLOCK = re.compile(r"^(\d+)(?=[.)](?:\s|$))|^(?=[-+=:])")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def render(saved: SavedModel, card: Mapping[str, Any]) -> str:
    """The card in Markdown, with the front matter that model hubs read.

    Args:
        saved: gives labels and settings.
        card: any of these fields; those missing are left out.
            title: one line.
            data: set -> facts, `{"train": {"file": "reviews.csv", "examples": 900, "sha256": "..."}}`.
            versions: package -> version.
            scores: a list of `{"set": "dev", "score": "accuracy", "value": 0.84, "low": 0.81, "high": 0.87}`.
            calibration: quantity -> number.
            confusion: a row of counts for each true label.
            limits: sentences on what the model cannot do, beside those that hold for every model.
            datasets: names that hubs know the data by.
            language: a code, or several.
            license: of the model; none is given unless you do.
    """
    for name in card:
        if name not in FIELDS:
            raise unknown("field of the card", name, FIELDS)
    confusion = card.get("confusion") if len(saved.labels) <= _MOST_CONFUSED else None
    return front_matter(saved, card) + _template().render(
        {
            **card,
            "confusion": confusion,
            "columns": list(dict.fromkeys(key for facts in card.get("data", {}).values() for key in facts)),
            "labels": saved.labels[:_MOST_LABELS],
            "hidden_labels": max(0, len(saved.labels) - _MOST_LABELS),
            "settings": _settings(saved),
            "saved": saved,
            "title": card.get("title") or TITLE,
        }
    )


def remembered(saved: SavedModel) -> dict[str, Any]:
    """The fields that a model's first card was written from, if it keeps them."""
    kept = saved.provenance.get("card")
    return {name: kept[name] for name in FIELDS if name in kept} if isinstance(kept, Mapping) else {}


@cache
def _template() -> jinja2.Template:
    # finalize sees every value the template prints: none can be forgotten.
    environment = jinja2.Environment(finalize=_text, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.from_string(files(__package__).joinpath("card.md.jinja").read_text("utf-8"))


def _settings(saved: SavedModel) -> dict[str, Mapping[str, Any]]:
    groups = {"model": saved.model_config, "text": saved.tokenizer.config, "training": saved.training}
    return {name: group.to_dict() for name, group in groups.items() if group is not None}


def _text(value: Any) -> str:
    r"""A value on one line in which nothing is Markdown or HTML.

    >>> print(_text("a|b\n<b>*c*"))
    a\|b &lt;b&gt;\*c\*
    """
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{_text(key)} {_text(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value))
    line = _OPENS_A_BLOCK.sub(r"\1\\", _SPECIAL.sub(r"\\\1", brief(value)))
    return "".join(_HTML.get(character, character) for character in line)
