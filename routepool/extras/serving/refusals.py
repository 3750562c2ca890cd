"""Every answer that is not a result: one sentence of JSON with its status."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

RETRY = {"Retry-After": "1"}
STOPPING = "the server is about to stop; ask another, or try again in a moment"

# Status -> when it is given; the OpenAPI description shows these.
REASONS = {
    400: "The body cannot be read.",
    401: "The API key is missing or wrong.",
    403: "The server runs without a key, and this is only for those who hold it.",
    408: "The request did not arrive in time.",
    409: "The model folder cannot be loaded; the old model stays.",
    413: "The body is too large.",
    421: "Without a key the server answers to loopback names only.",
    422: "The body is not JSON of the right form, or asks for what the model does not have.",
    500: "The model failed.",
    503: "Too many texts are waiting, or the server is about to stop; the request was not begun, try again.",
    504: "The answer was not ready within the time limit.",
}


class Refused(HTTPException):
    """A request that is not answered, and why.

    Args:
        status_code: one of `REASONS`.
        detail: what is wrong and what to do; never the text that came.
        headers: of the answer.
    """


def json_response(values: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON in ASCII: whatever a label or a key holds, lone surrogates too, it can be sent."""
    content = json.dumps(values, allow_nan=False).encode("ascii")
    return Response(content, status, headers=headers, media_type="application/json")


def refusal(error: HTTPException) -> Response:
    """The answer that an exception stands for."""
    return json_response({"error": error.detail}, error.status_code, error.headers)


def sentence(errors: Sequence[Mapping[str, Any]]) -> str:
    """The first thing wrong with a body, by its place; never what stood there.

    >>> sentence([{"loc": ("body", "texts", 3), "msg": "Input should be a valid string", "type": "string_type"}])
    'texts[3]: Input should be a valid string'
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first['ctx']['error']} at character {first['loc'][-1]}"
    if first["loc"] == ("body",):
        kinds: dict[str, str] = {
            "missing": "wanted a JSON object with text or texts, got no body",
            "value_error": first["msg"].removeprefix("Value error, "),
        }
        return kinds.get(first["type"], "wanted a JSON object, sent with Content-Type: application/json")
    place = ""
    for part in first["loc"][1:]:
        place += f"[{part}]" if isinstance(part, int) else f"{'.' if place else ''}{part:.80}"
    return f"{place}: {first['msg']}"
