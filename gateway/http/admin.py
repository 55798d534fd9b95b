"""The operator's doors: what happened, what it cost, who may call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse

from adapters.canonical.faults import Fault
from gateway.http.deps import Admin, Gateway
from gateway.http.posted import posted
from gateway.services.forgetting import ForgetRequest, forget_data
from gateway.services.keys import KeyRequest, create_key, list_keys, revoke_key
from gateway.services.reloading import at_next_start
from gateway.services.shaped import shaped
from gateway.services.usage import UsageRequest, as_csv, usage_rows

router = APIRouter(prefix="/admin")

WantedKey = Annotated[KeyRequest, Depends(posted(shaped(KeyRequest)))]


@router.get("/requests/{request_id}")
async def request(request_id: str, state: Gateway, admin: Admin) -> Mapping[str, Any]:
    """One call explained: the route and why, each attempt with its cause, where the time went,
    what was dropped, which prices were used."""
    found = await state.store.request(request_id, None)
    if found is None:
        raise Fault("not_found", "No request of this id is in the ledger (x-request-id has it).")
    return found


@router.get("/deployments")
async def deployments(state: Gateway, admin: Admin) -> dict[str, Any]:
    """Every deployment with its breaker and its latency."""
    runtime = state.runtime
    now = runtime.clock.monotonic()
    known = {row["deployment"]: row for row in runtime.breakers.snapshot(now)}
    latencies = runtime.stats.snapshot(now)
    names = dict.fromkeys(
        target.deployment.name
        for alias in state.snapshot.aliases.values()
        for target in alias.targets
    )
    return {
        "deployments": [
            {"deployment": name, "state": "closed", "calls": 0, "failures": 0}
            | known.get(name, {})
            | {"first_content_seconds": latencies.get(name)}
            for name in names
        ]
    }


@router.get("/usage")
async def usage(state: Gateway, admin: Admin, asked: Annotated[UsageRequest, Query()]) -> Response:
    """Sums of the ledger, one row a group, from the daily roll-ups."""
    rows = await usage_rows(state.store, asked)
    if asked.format == "json":
        return JSONResponse({"by": asked.groups, "usage": rows})
    return Response(as_csv(rows), media_type="text/csv; charset=utf-8")


@router.get("/keys")
async def keys(state: Gateway, admin: Admin) -> dict[str, Any]:
    """Every key, never the key itself."""
    return {"keys": await list_keys(state)}


@router.post("/keys", status_code=201)
async def add_key(wanted: WantedKey, state: Gateway, admin: Admin) -> dict[str, Any]:
    """Make a key. Its text is in this answer and nowhere else, ever."""
    return await create_key(state, wanted)


@router.delete("/keys/{key_id}")
async def remove_key(key_id: str, state: Gateway, admin: Admin) -> dict[str, Any]:
    """Revoke a key; within a second it opens nothing any more."""
    return await revoke_key(state, key_id)


@router.delete("/data")
async def forget(
    state: Gateway, admin: Admin, asked: Annotated[ForgetRequest, Query()]
) -> dict[str, int]:
    """Delete what an end user, a project, or an end user within a project has left here: calls,
    kept responses, conversations and answers. The sums of the bill stay, but for a project's."""
    return {"deleted": await forget_data(state, asked)}


@router.post("/reload")
async def reload(state: Gateway, admin: Admin) -> dict[str, Any]:
    """Read the configuration again. One that does not pass is refused, and the old one stays."""
    snapshot = await state.reload()
    waiting = at_next_start(state.started_with, snapshot)
    return {"config_hash": snapshot.hash, "at_next_start": waiting}
