"""Every door of the gateway, on one page.

The conversation endpoints are bare ASGI: their bodies are read and checked once, by their
dialect. Everything else is FastAPI with the one auth dependency.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route

from adapters.canonical.faults import Fault
from gateway.http import admin, agents, health, kept, messages, models, plans, prompts, runs
from gateway.http.conversation import Conversation
from gateway.http.cors import Cors
from gateway.http.embeddings import Embeddings
from gateway.http.endpoint import Endpoint
from gateway.http.idempotent import Idempotent
from gateway.http.middleware import INTERNAL, App, Direct, Front, dialect_of
from gateway.northbound.anthropic_messages import MESSAGES
from gateway.northbound.base import Northbound
from gateway.northbound.body import MAX_ERRORS, rule
from gateway.northbound.completions import COMPLETIONS
from gateway.northbound.errors import envelope
from gateway.northbound.openai_chat import CHAT
from gateway.northbound.openai_responses import RESPONSES
from gateway.services.state import State

CONVERSATIONS: tuple[tuple[Northbound, str, tuple[str, ...]], ...] = (
    (CHAT, "chatcmpl-", ("/v1/chat/completions", "/chat/completions")),
    (RESPONSES, "resp_", ("/v1/responses", "/responses")),
    (MESSAGES, "msg_", ("/v1/messages", "/messages")),
    (COMPLETIONS, "cmpl-", ("/v1/completions", "/completions")),
)
"""Each dialect, the prefix of its answers' ids, and its paths: clients with and without
``/v1`` in their base URL both find it."""

ROOMS = (health, models, messages, kept, runs, agents, plans, prompts, admin)

STATUS_KINDS = {404: "not_found", 405: "method", 413: "too_large"}
"""The framework's own errors, in the house's words."""


def build(state: State) -> App:
    """The ASGI application around ``state``."""
    app = doors(state)
    asgi = {r.path: r.endpoint for r in app.router.routes if _is_busy(r)}
    busy = Idempotent(Direct(app, asgi), state)
    return Front(Cors(busy, state), state.runtime.clock, state.snapshot.server.root_path)


def _is_busy(route: BaseRoute) -> TypeGuard[Route]:
    """Whether a route leads straight to a door on bare ASGI."""
    return isinstance(route, Route) and isinstance(route.endpoint, Endpoint)


def doors(state: State) -> FastAPI:
    """Every door, without the layers before them."""
    app = FastAPI(
        title="LLM gateway",
        summary="One door to every model.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.gateway = state
    for northbound, prefix, paths in CONVERSATIONS:
        endpoint = Conversation(state, northbound, prefix)
        for path in paths:
            app.router.routes.append(Route(path, endpoint, methods=["POST"]))
    embeddings = Embeddings(state)
    for path in ("/v1/embeddings", "/embeddings"):
        app.router.routes.append(Route(path, embeddings, methods=["POST"]))
    for room in ROOMS:
        app.include_router(room.router)
    app.add_exception_handler(Fault, _on_fault)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(Exception, _on_accident)
    return app


def _answer(request: Request, fault: Fault) -> Response:
    """In the caller's dialect: on paths that all share, Anthropic's clients name their version."""
    versioned = "anthropic-version" in request.headers
    dialect = "anthropic-messages" if versioned else dialect_of(request.url.path)
    reply = envelope(fault, dialect, request.state.request_id)
    return Response(reply.body, reply.status, reply.headers)


async def _on_fault(request: Request, error: Exception) -> Response:
    assert isinstance(error, Fault)
    return _answer(request, error)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = STATUS_KINDS.get(error.status_code, "bad_request")
    headers = {**(error.headers or {})}
    if kind == "method":
        headers["Allow"] = _taken(request)
    words = {
        "not_found": f"There is nothing at this path. {health.CALLS}",
        "method": f"This path does not take {request.method}; try {headers.get('Allow')}.",
    }
    response = _answer(request, Fault(kind, words.get(kind, "The request can't be served.")))
    response.headers.update(headers)
    return response


def _taken(request: Request) -> str:
    """The methods that a path takes: the framework names those of one route alone."""
    routes = [*request.app.router.routes, *(r for room in ROOMS for r in room.router.routes)]
    found = [
        route.methods or ()
        for route in routes
        if isinstance(route, Route) and route.path_regex.match(request.scope["path"])
    ]
    return ", ".join(sorted({method for methods in found for method in methods}))


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = error.errors()[:MAX_ERRORS]
    text = "; ".join(f"{_place(problem)} {rule(problem)}" for problem in problems)
    return _answer(request, Fault("bad_request", f"{text}.", param=_place(problems[0])))


async def _on_accident(request: Request, error: Exception) -> Response:
    # Without this the framework would answer in plain text; it raises the error on, to the log.
    return _answer(request, Fault("internal", INTERNAL))


def _place(problem: dict[str, Any]) -> str:
    return ".".join(str(step) for step in problem["loc"] if step not in ("body", "query"))
