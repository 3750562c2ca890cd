"""The front matter of a model card: what model hubs read of it, as YAML."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routepool.persistence.description import SavedModel
from routepool.printable import printable
from routepool.settings import TextConfig

TASK, TITLE = "text-classification", "Text classifier"
_LONGEST = 300  # characters of one value
_BARE = re.compile(r"[A-Za-z][A-Za-z-_]*")
_NOT_STRINGS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}  # in YAML 1.1; "no" is Norwegian
_DIGITS = 4


def brief(value: object) -> str:
    r"""A value on one line that is not too long.

    >>> brief("a\n\x1b b")
    'a \ufffd b'
    """
    line = printable(" ".join(str(value).split()))
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."


def front_matter(saved: SavedModel, card: Mapping[str, Any]) -> str:
    """The lines above a card, fences included; what is not known is left out."""
    scores = [row for row in card.get("scores") or () if _is_number(row.get("value"))]
    named = card.get("datasets") or []
    datasets = [named] if isinstance(named, str) else list(named)
    parts: Any = saved.classifier.levels[-1].aggregator.parts  # type: ignore[union-attr]
    routing = ["dynamic-routing"] if parts.name == "capsule" else []
    values = {
        "library_name": "routepool",
        "pipeline_tag": TASK,
        "tags": [TASK, *routing],
        "language": card.get("language") or _language(saved),
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
    """A hub's name of the data if there is one, else that of the file."""
    if datasets:
        return {"type": datasets[0], "name": datasets[0]}
    name = brief(card.get("data", {}).get(split, {}).get("file", "")) or "not named"
    return {"type": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "data", "name": name}


def _metric(row: Mapping[str, Any]) -> str:
    """The name that hubs know a score by: both forms of F1 are f1."""
    name = str(row["score"])
    return "f1" if name.endswith("F1") else name


def _language(saved: SavedModel) -> str | None:
    """The language that was asked for; the usual one may only have been left as it was."""
    language = saved.tokenizer.config.language
    return None if language == TextConfig().language else language


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
