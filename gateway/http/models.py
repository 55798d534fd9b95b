"""``GET /v1/models``: the aliases, agents and workflows that the key may use, each in the caller's
dialect."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from adapters.canonical.faults import Fault
from gateway.http.deps import Caller, Gateway
from gateway.northbound import anthropic_messages, openai_chat
from gateway.services.aliases import visible
from gateway.services.run_models import is_run, run_models

router = APIRouter()


def _shape(request: Request) -> Any:
    """Whose objects the caller reads: Anthropic's clients send their API's version."""
    return anthropic_messages if "anthropic-version" in request.headers else openai_chat


@router.get("/v1/models")
@router.get("/models", include_in_schema=False)
async def models(request: Request, state: Gateway, caller: Caller) -> dict[str, Any]:
    """All of them, in the configuration's order."""
    names = [alias.name for alias in visible(state.snapshot, caller)]
    names += await run_models(state, caller)
    found: dict[str, Any] = _shape(request).models_list(names, state.started_at)
    return found


@router.get("/v1/models/{model:path}")
@router.get("/models/{model:path}", include_in_schema=False)
async def model(model: str, request: Request, state: Gateway, caller: Caller) -> dict[str, Any]:
    """One of them; names may hold slashes."""
    names = {alias.name for alias in visible(state.snapshot, caller)}
    if model in names or (is_run(model) and model in await run_models(state, caller)):
        found: dict[str, Any] = _shape(request).model_object(model, state.started_at)
        return found
    raise Fault(
        "unknown_model",
        "There is no model of this name here. GET /v1/models lists those that your key may use.",
        param="model",
    )
