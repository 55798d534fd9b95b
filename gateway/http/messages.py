"""What the Messages API has beside its conversation: counting tokens."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from adapters.wire.json import dumps
from gateway.flow.count_tokens import count_tokens
from gateway.http.body import read_body
from gateway.http.deps import Caller, Gateway
from gateway.northbound.anthropic_messages import count_object, parse_count
from gateway.policy.admit import admit
from gateway.services.aliases import resolve

router = APIRouter()

MEGABYTE = 1024 * 1024


@router.post("/v1/messages/count_tokens")
@router.post("/messages/count_tokens", include_in_schema=False)
async def count(request: Request, state: Gateway, caller: Caller) -> Response:
    """Input tokens of a request that is not made. Where no provider of the alias counts, the
    answer is an estimate, and ``x-gateway-estimated`` says so."""
    runtime = state.runtime
    headers = {name.lower(): value for name, value in request.headers.items()}
    limit = int(runtime.snapshot.server.max_body_mb * MEGABYTE)
    body = await read_body(request.receive, headers, limit)
    asked = parse_count(body, headers).request
    alias = resolve(runtime.snapshot, caller, asked.model)
    admit(caller, asked, alias)
    counted = await count_tokens(runtime, caller, asked, alias)
    own = {"x-gateway-estimated": "true"} if counted.estimated else {}
    return Response(dumps(count_object(counted.tokens)), media_type="application/json", headers=own)
