"""``GET /v1/models``: the aliases that the key may use, each in the caller's dialect."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from adapters.canonical.faults import Fault
from gateway.http.deps import Caller, Gateway
from gateway.northbound.openai_chat import model_object, models_list
from gateway.services.aliases import visible

router = APIRouter()


@router.get("/v1/models")
@router.get("/models", include_in_schema=False)
async def models(state: Gateway, caller: Caller) -> dict[str, Any]:
    """All of them, in the configuration's order."""
    names = (alias.name for alias in visible(state.snapshot, caller))
    return models_list(names, state.started_at)


@router.get("/v1/models/{model:path}")
@router.get("/models/{model:path}", include_in_schema=False)
async def model(model: str, state: Gateway, caller: Caller) -> dict[str, Any]:
    """One of them; names may hold slashes."""
    if model in {alias.name for alias in visible(state.snapshot, caller)}:
        return model_object(model, state.started_at)
    raise Fault(
        "unknown_model",
        "There is no model of this name here. GET /v1/models lists those that your key may use.",
        param="model",
    )
