"""The addresses of the server, and what each answers."""

import asyncio
import mimetypes
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.security import APIKeyHeader
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import routepool
from routepool.errors import RoutepoolError
from routepool.extras.serving import prometheus as counting
from routepool.extras.serving.bodies import (
    AcceptedLimits,
    Encodings,
    ExplainBody,
    Explanations,
    ModelDescription,
    Predictions,
    Problem,
    State,
    TextsBody,
)
from routepool.extras.serving.guard import ASSETS, OPEN, Gate, Guard
from routepool.extras.serving.lane import Question
from routepool.extras.serving.models import Models
from routepool.extras.serving.refusals import REASONS, Refused, json_response, refusal, sentence
from routepool.serving import Limits, Service

_TITLE = "Text classification by dynamic routing"

Answers = dict[int | str, dict[str, Any]]
_PROMETHEUS: Answers = {
    200: {"description": "For Prometheus.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


def build(service: Service, models: Models, gate: Gate, metrics: counting.Metrics) -> Guard:
    """The whole application, guarded."""
    app = FastAPI(
        title="routepool",
        summary=_TITLE,
        version=routepool.__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirection would lead to whatever the Host header names
    )
    app.add_exception_handler(RequestValidationError, _say_invalid)
    app.add_exception_handler(HTTPException, _say_refused)
    # The guard checks the key; this describes it.
    key = [Depends(APIKeyHeader(name="X-API-Key", auto_error=False))] if service.key else []
    always = _problems(408, 413, 503, 401 if service.key else 421)
    for router in (_questions(service.limits, models), _management(service, models, metrics)):
        app.include_router(router, dependencies=key, responses=always)
    app.include_router(_state(gate, models))
    app.include_router(_pages(app.openapi()), include_in_schema=False)
    paths = {*app.openapi()["paths"], *OPEN}
    return Guard(app, paths, limits=service.limits, key=service.key, gate=gate, metrics=metrics)


async def _say_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return refusal(Refused(422, sentence(error.errors())))


async def _say_refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(error)


def _problems(*statuses: int) -> Answers:
    return {status: {"model": Problem, "description": REASONS[status]} for status in statuses}


def _questions(limits: Limits, models: Models) -> APIRouter:
    """What is asked of texts."""
    router = APIRouter(tags=["texts"], responses=_problems(400, 422, 500, 504))
    same: dict[str, Any] = {"response_description": "A result for each text, in their order."}

    async def ask(question: Question, texts: Sequence[str]) -> Response:
        results = ", ".join(await models.ask(question, texts))
        return Response(b'{"results": [%s]}' % results.encode("ascii"), media_type="application/json")

    @router.post("/predict", response_model=Predictions, summary="Labels and their probabilities.", **same)
    async def predict(body: TextsBody) -> Response:
        return await ask(Question("predict"), body.checked(most=limits.texts, characters=limits.text_characters))

    @router.post("/explain", response_model=Explanations, summary="Which word went where, and what mattered.", **same)
    async def explain(body: ExplainBody) -> Response:
        texts = body.checked(most=limits.explained_texts, characters=limits.explained_characters)
        return await ask(Question("explain", body.method, body.label, body.rounds), texts)

    @router.post("/encode", response_model=Encodings, summary="The vector of each text.", **same)
    async def encode(body: TextsBody) -> Response:
        return await ask(Question("encode"), body.checked(most=limits.texts, characters=limits.text_characters))

    return router


def _management(service: Service, models: Models, metrics: counting.Metrics) -> APIRouter:
    """What is asked of the model and the server, by those who hold the key."""
    router = APIRouter(tags=["model"])
    limits = {name: getattr(service.limits, name) for name in AcceptedLimits.model_fields}

    @router.get(
        "/labels",
        response_model=ModelDescription,
        summary="The model and the limits.",
        response_description="The model that answers now.",
    )
    async def labels() -> Response:
        return json_response({**models.description, "limits": limits, "version": routepool.__version__})

    @router.post(
        "/reload",
        response_model=State,
        summary="Load the model folder again.",
        response_description="The next batch is read by the new model.",
        responses=_problems(409 if service.key else 403),
    )
    async def reload() -> Response:
        if service.key is None:
            raise Refused(403, "a server without a key is reloaded by a signal; send SIGHUP to its process")
        try:
            await asyncio.shield(models.begin_reload())
        except (RoutepoolError, OSError) as error:
            raise Refused(409, f"the old model stays: {error}") from error
        return json_response({"status": "reloaded"})

    @router.get("/metrics", response_class=Response, summary="Counts and times.", responses=_PROMETHEUS)
    async def counts() -> Response:
        return Response(metrics.render(), headers={"Content-Type": counting.CONTENT_TYPE})

    return router


def _state(gate: Gate, models: Models) -> APIRouter:
    router = APIRouter(tags=["server"], responses=_problems(503))

    @router.get("/live", response_model=State, summary="Is the process there?", response_description="It is.")
    async def live() -> Response:
        return json_response({"status": "stopping" if gate.draining else "live"})

    @router.get("/ready", response_model=State, summary="Does it take requests?", response_description="It does.")
    async def ready() -> Response:  # while the server drains, the guard answers
        if not models.is_alive:
            raise Refused(503, "a thread that computes has ended; start the server again")
        return json_response({"status": "ready"})

    return router


def _pages(description: dict[str, Any]) -> APIRouter:
    """The page in the browser and the reference: files as they are, read once, found by their names alone."""
    router = APIRouter()
    folder = files("routepool.extras.serving") / "page"
    contents = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}
    reference, contents["reference.css"] = _render_reference(description)

    @router.get("/")
    async def page() -> Response:
        return _file("index.html", contents)

    @router.get("/docs")
    async def docs() -> Response:
        return Response(reference, media_type="text/html")

    @router.get(ASSETS + "{name}")
    async def asset(name: str) -> Response:
        return _file(name, contents)

    return router


def _file(name: str, contents: dict[str, bytes]) -> Response:
    if name not in contents:
        raise HTTPException(404, "there is no such file")
    return Response(contents[name], media_type=mimetypes.guess_type(name)[0] or "application/octet-stream")


class _Operation(NamedTuple):
    """One address of the OpenAPI description, and what it answers."""

    method: str
    path: str
    summary: str
    fields: list[tuple[str, str, str]]  # of the body: name, type, what it is
    answers: list[tuple[str, str]]  # status and meaning


def _render_reference(description: dict[str, Any]) -> tuple[str, bytes]:
    """The page at /docs and its style sheet: plain HTML that needs no script and nothing from elsewhere."""
    folder = files("routepool.extras.serving")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).from_string(
        (folder / "reference.html.jinja").read_text("utf-8")
    )
    page = template.render(info=description["info"], operations=list(_operations(description)))
    return page, (folder / "reference.css").read_bytes()


def _operations(description: dict[str, Any]) -> Iterator[_Operation]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            answers = [(status, answer["description"]) for status, answer in sorted(operation["responses"].items())]
            fields = list(_fields(description, operation.get("requestBody")))
            yield _Operation(method.upper(), path, operation["summary"], fields, answers)


def _fields(description: dict[str, Any], body: dict[str, Any] | None) -> Iterator[tuple[str, str, str]]:
    if body is None:
        return
    name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    for field, schema in description["components"]["schemas"][name]["properties"].items():
        types = [f"{one['items']['type']}s" if "items" in one else one["type"] for one in schema.get("anyOf", [schema])]
        yield field, " or ".join(types), schema.get("description", "")
