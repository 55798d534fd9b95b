"""The door of plans: what a team has planned, by id and version."""

from __future__ import annotations

from fastapi import APIRouter, Response

from adapters.wire.json import dumps
from gateway.http.deps import Caller, Gateway, Version
from gateway.northbound.runs.shown import plan_object

router = APIRouter()


@router.get("/plans/{plan_id}")
async def read(plan_id: str, state: Gateway, caller: Caller, version: Version = None) -> Response:
    """A plan, by default its newest version."""
    row = await state.workflows.plan(caller.project, plan_id, version)
    return Response(dumps(plan_object(plan_id, row)), media_type="application/json")
