"""README.md of a model folder: what the model is, where it comes from, how good it is, how to use it.

Above the text stands the front matter, in YAML: what model hubs read.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from routepool.errors import unknown
from routepool.persistence.description import SavedModel
from routepool.printable import printable
from routepool.settings import TextConfig

FIELDS = (
    *("title", "data", "versions", "scores", "calibration", "confusion", "limits"),
    *("datasets", "language", "license"),
)
TASK, TITLE = "text-classification", "Text classifier"
_LONGEST = 300  # characters of one value
_BARE = re.compile(r"[A-Za-z][A-Za-z-_]*")
_NOT_STRINGS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}  # in YAML 1.1; "no" is Norwegian
_DIGITS = 4
_MOST_LABELS = 100
_MOST_CONFUSED = 20  # labels whose confusion still fits a page
_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~$!])")
_OPENS_A_BLOCK = re.compile(r"^(\d+)(?=[.)](?:\s|$))|^(?=[-+=:])")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def render(saved: SavedModel, card: Mapping[str, Any]) -> str:
    """Write the card in Markdown, with the front matter that model hubs read.

    Args:
        saved: gives labels and settings.
        card: any of these fields.
            title: one line.
            data: set -> facts, `{"train": {"file": "reviews.csv", "examples": 900, "sha256": "..."}}`.
            versions: package -> version.
            scores: a list of `{"set": "dev", "score": "accuracy", "value": 0.84, "low": 0.81, "high": 0.87}`.
            calibration: quantity -> number.
            confusion: a row of counts for each true label.
            limits: sentences on what the model cannot do, besides those that hold for every model.
            datasets: names of the data on hubs.
            language: a code, or several.
            license: of the model.
    """
    for name in card:
        if name not in FIELDS:
            raise unknown("field of the card", name, FIELDS)
    groups = {"model": saved.model_config, "text": saved.tokenizer.config, "training": saved.training}
    confusion = card.get("confusion") if len(saved.labels) <= _MOST_CONFUSED else None
    return _front_matter(saved, card) + _template().render(
        {
            **card,
            "confusion": confusion,
            "columns": list(dict.fromkeys(key for facts in card.get("data", {}).values() for key in facts)),
            "labels": saved.labels[:_MOST_LABELS],
            "hidden_labels": max(0, len(saved.labels) - _MOST_LABELS),
            "settings": {name: group.to_dict() for name, group in groups.items() if group is not None},
            "saved": saved,
            "title": card.get("title") or TITLE,
        }
    )


def remembered(saved: SavedModel) -> dict[str, Any]:
    """The fields from which the model's first card was written, if the model keeps them."""
    kept = saved.provenance.get("card")
    return {name: kept[name] for name in FIELDS if name in kept} if isinstance(kept, Mapping) else {}


@cache
def _template() -> jinja2.Template:
    # finalize is given every value that the template prints, so none is left as it is.
    environment = jinja2.Environment(finalize=_text, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.from_string(files(__package__).joinpath("card.md.jinja").read_text("utf-8"))


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


def brief(value: object) -> str:
    r"""A value on one line that is not too long.

    >>> brief("a\n\x1b b")
    'a \ufffd b'
    """
    line = printable(" ".join(str(value).split()))
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."


def _front_matter(saved: SavedModel, card: Mapping[str, Any]) -> str:
    """The YAML above a card, fences included; what is not known is left out."""
    language = saved.tokenizer.config.language
    scores = [row for row in card.get("scores") or () if _is_number(row.get("value"))]
    named = card.get("datasets") or []
    datasets = [named] if isinstance(named, str) else list(named)
    parts: Any = saved.classifier.levels[-1].aggregator.parts  # type: ignore[union-attr]
    routing = ["dynamic-routing"] if parts.name == "capsule" else []
    values = {
        "library_name": "routepool",
        "pipeline_tag": TASK,
        "tags": [TASK, *routing],
        # The language of the text settings only if it was chosen.
        "language": card.get("language") or (language if language != TextConfig().language else None),
        "license": card.get("license"),
        "datasets": datasets,
        "metrics": list(dict.fromkeys(_metric(row) for row in scores)),
        "model-index": scores and [{"name": card.get("title") or TITLE, "results": _results(card, datasets, scores)}],
    }
    lines = _yaml({key: value for key, value in values.items() if value})
    return "\n".join(["---", *lines, "---", ""])


def _results(card: Mapping[str, Any], datasets: Sequence[str], scores: Sequence[Mapping[str, Any]]) -> list[Any]:
    sets = dict.fromkeys(str(row["set"]) for row in scores)
    return [
        {
            "task": {"type": TASK, "name": "Text classification"},
            "dataset": {**_dataset(card, datasets, name), "split": name},
            "metrics": [
                {"type": _metric(row), "value": round(float(row["value"]), _DIGITS), "name": row["score"]}
                for row in scores
                if str(row["set"]) == name
            ],
        }
        for name in sets
    ]


def _dataset(card: Mapping[str, Any], datasets: Sequence[str], split: str) -> dict[str, str]:
    if datasets:
        return {"type": datasets[0], "name": datasets[0]}
    name = brief(card.get("data", {}).get(split, {}).get("file", "")) or "not named"
    return {"type": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "data", "name": name}


def _metric(row: Mapping[str, Any]) -> str:
    name = str(row["score"])
    return "f1" if name.endswith("F1") else name  # on hubs both forms of F1 have this name


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _yaml(value: Any) -> Iterator[str]:
    r"""Tables and lists as lines; keys are our own.

    >>> print("\n".join(_yaml({"tags": ["plain", "no", {"a": 1, "b": "x: y"}]})))
    tags:
    - plain
    - "no"
    - a: 1
      b: "x: y"
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            first, *rest = _yaml(item)
            nested = isinstance(item, Mapping | list | tuple)
            indent = "  " if isinstance(item, Mapping) else ""
            yield from (f"{key}:", f"{indent}{first}") if nested else (f"{key}: {first}",)
            yield from (f"{indent}{line}" for line in rest)
    elif isinstance(value, list | tuple):
        for item in value:
            first, *rest = _yaml(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    if _is_number(value):
        return json.dumps(value)
    text = brief(value)
    if _BARE.fullmatch(text) and text.lower() not in _NOT_STRINGS:
        return text
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a YAML string
