"""Responses and conversations after their calls: read, listed, changed, deleted."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from adapters.canonical.faults import Fault
from adapters.wire.json import dumps
from gateway.flow.count_tokens import count_tokens
from gateway.http.background import background_stream
from gateway.http.body import read_body
from gateway.http.deps import Caller, Gateway
from gateway.http.headers import SSE
from gateway.http.line import pairs
from gateway.northbound.conversations import Page, parse_change, parse_items, parse_new
from gateway.northbound.openai_responses import RESPONSES
from gateway.policy.admit import admit
from gateway.services.aliases import resolve
from gateway.services.kept import Conversations, KeptResponses
from gateway.services.responses import Session

router = APIRouter()

MEGABYTE = 1024 * 1024

Listing = Annotated[Page, Query()]


def _responses(state: Gateway, caller: Caller) -> KeptResponses:
    return KeptResponses(state, caller)


def _conversations(state: Gateway, caller: Caller) -> Conversations:
    return Conversations(state, caller)


async def _body(request: Request, state: Gateway) -> bytes:
    headers = {name.lower(): value for name, value in request.headers.items()}
    limit = int(state.snapshot.server.max_body_mb * MEGABYTE)
    return await read_body(request.receive, headers, limit)


Responses = Annotated[KeptResponses, Depends(_responses)]
Kept = Annotated[Conversations, Depends(_conversations)]
Body = Annotated[bytes, Depends(_body)]


def _json(value: Any) -> Response:
    return Response(dumps(value), media_type="application/json")


# --------------------------------------------------------------------------- responses


@router.get("/v1/responses/{response_id}")
@router.get("/responses/{response_id}", include_in_schema=False)
async def response(
    response_id: str,
    kept: Responses,
    state: Gateway,
    stream: bool = False,
    starting_after: int | None = None,
) -> Response:
    """A response as it was told or as it stands; or as a stream, once more or while it is made."""
    if not stream:
        return _json(await kept.get(response_id))
    row = await kept.background.find(response_id)
    if row is not None:
        return await background_stream(state, kept.background, row, starting_after)
    frames = await kept.stream(response_id, starting_after)
    headers = {name.decode(): value.decode() for name, value in pairs(SSE)}
    return Response(frames, headers=headers)


@router.delete("/v1/responses/{response_id}")
@router.delete("/responses/{response_id}", include_in_schema=False)
async def delete_response(response_id: str, kept: Responses) -> Response:
    """Delete a kept response."""
    return _json(await kept.delete(response_id))


@router.get("/v1/responses/{response_id}/input_items")
@router.get("/responses/{response_id}/input_items", include_in_schema=False)
async def input_items(response_id: str, kept: Responses, page: Listing) -> Response:
    """What a kept response was made from."""
    return _json(await kept.input_items(response_id, page))


@router.post("/v1/responses/{response_id}/cancel")
@router.post("/responses/{response_id}/cancel", include_in_schema=False)
async def cancel_response(response_id: str, kept: Responses) -> Response:
    """Cancel a background response; twice is once."""
    return _json(await kept.cancel(response_id))


@router.post("/v1/responses/compact")
@router.post("/responses/compact", include_in_schema=False)
async def compact(caller: Caller) -> Response:
    """What is compacted can be read by its maker alone, so it could go on nowhere else."""
    raise Fault(
        "unsupported",
        "This gateway compacts nothing: a compacted conversation would be bound to one provider. "
        "Ask a model for a summary and begin a new response with it, or let the alias trim what "
        "does not fit (context = 'trim_history').",
        code="compaction_unsupported",
    )


@router.post("/v1/responses/input_tokens")
@router.post("/responses/input_tokens", include_in_schema=False)
async def input_tokens(state: Gateway, caller: Caller, request: Request, body: Body) -> Response:
    """Input tokens of a response that is not made, what it continues included; an estimate,
    which ``x-gateway-estimated`` says."""
    runtime = state.runtime
    asked = RESPONSES.parse(body, {})
    alias = resolve(runtime.snapshot, caller, asked.request.model)
    async with Session(runtime, caller, asked, request.state.request_id, 0.0) as kept:
        admit(caller, kept.asked.request, alias)
        counted = await count_tokens(runtime, caller, kept.asked.request, alias)
    own = {"x-gateway-estimated": "true"} if counted.estimated else {}
    told = {"object": "response.input_tokens", "input_tokens": counted.tokens}
    return Response(dumps(told), media_type="application/json", headers=own)


# --------------------------------------------------------------------------- conversations


@router.post("/v1/conversations")
@router.post("/conversations", include_in_schema=False)
async def create(kept: Kept, body: Body) -> Response:
    """Begin a conversation."""
    return _json(await kept.create(*parse_new(body)))


@router.get("/v1/conversations/{conversation_id}")
@router.get("/conversations/{conversation_id}", include_in_schema=False)
async def conversation(conversation_id: str, kept: Kept) -> Response:
    """One conversation, without its items."""
    return _json(await kept.get(conversation_id))


@router.post("/v1/conversations/{conversation_id}")
@router.post("/conversations/{conversation_id}", include_in_schema=False)
async def change(conversation_id: str, kept: Kept, body: Body) -> Response:
    """Replace a conversation's metadata."""
    return _json(await kept.change(conversation_id, parse_change(body)))


@router.delete("/v1/conversations/{conversation_id}")
@router.delete("/conversations/{conversation_id}", include_in_schema=False)
async def delete(conversation_id: str, kept: Kept) -> Response:
    """Delete a conversation with its items."""
    return _json(await kept.delete(conversation_id))


@router.get("/v1/conversations/{conversation_id}/items")
@router.get("/conversations/{conversation_id}/items", include_in_schema=False)
async def items(conversation_id: str, kept: Kept, page: Listing) -> Response:
    """A page of a conversation's items."""
    return _json(await kept.items(conversation_id, page))


@router.post("/v1/conversations/{conversation_id}/items")
@router.post("/conversations/{conversation_id}/items", include_in_schema=False)
async def add_items(conversation_id: str, kept: Kept, body: Body) -> Response:
    """Add items to a conversation's end."""
    return _json(await kept.add(conversation_id, parse_items(body)))


@router.get("/v1/conversations/{conversation_id}/items/{item_id}")
@router.get("/conversations/{conversation_id}/items/{item_id}", include_in_schema=False)
async def item(conversation_id: str, item_id: str, kept: Kept) -> Response:
    """One item of a conversation."""
    return _json(await kept.item(conversation_id, item_id))


@router.delete("/v1/conversations/{conversation_id}/items/{item_id}")
@router.delete("/conversations/{conversation_id}/items/{item_id}", include_in_schema=False)
async def delete_item(conversation_id: str, item_id: str, kept: Kept) -> Response:
    """Delete one item of a conversation."""
    return _json(await kept.drop_item(conversation_id, item_id))
