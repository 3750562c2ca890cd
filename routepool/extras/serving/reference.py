"""The page at /docs: the OpenAPI description as plain HTML, which needs no script and nothing from elsewhere."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2


class Operation(NamedTuple):
    """One address and what it answers."""

    method: str
    path: str
    summary: str
    fields: list[tuple[str, str, str]]  # of the body: name, type, what it is
    answers: list[tuple[str, str]]  # status and meaning


def render_reference(description: dict[str, Any]) -> tuple[str, bytes]:
    """The page and its style sheet."""
    folder = files("routepool.extras.serving")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).from_string(
        (folder / "reference.html.jinja").read_text("utf-8")
    )
    page = template.render(info=description["info"], operations=list(_operations(description)))
    return page, (folder / "reference.css").read_bytes()


def _operations(description: dict[str, Any]) -> Iterator[Operation]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            answers = [(status, answer["description"]) for status, answer in sorted(operation["responses"].items())]
            fields = list(_fields(description, operation.get("requestBody")))
            yield Operation(method.upper(), path, operation["summary"], fields, answers)


def _fields(description: dict[str, Any], body: dict[str, Any] | None) -> Iterator[tuple[str, str, str]]:
    if body is None:
        return
    name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    for field, schema in description["components"]["schemas"][name]["properties"].items():
        types = [f"{one['items']['type']}s" if "items" in one else one["type"] for one in schema.get("anyOf", [schema])]
        yield field, " or ".join(types), schema.get("description", "")
