"""Agents and workflows as models: which there are, and the run that a request to one begins."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Media, Part, Text, Thinking
from adapters.canonical.request import Message, Request
from adapters.dialects.base import Field
from adapters.wire.json import loads
from gateway.northbound.runs.bodies import NewRun
from gateway.northbound.runs.workflow_bodies import NewWorkflow
from gateway.policy.auth import Principal
from gateway.services.agents import permitted
from gateway.services.state import State
from gateway.store.runs import RunRow

AGENT, WORKFLOW = "agent:", "workflow:"


def is_run(model: str) -> bool:
    """Whether a model's name is that of an agent or a workflow."""
    return model.startswith((AGENT, WORKFLOW))


async def run_models(state: State, principal: Principal) -> list[str]:
    """The agents and workflows that a key may use, as models."""
    names = []
    agents = state.runs.agents(principal)
    for agent, _ in await agents.list():
        with contextlib.suppress(Fault):  # what it hands over to is gone: it can't be run
            if all(permitted(one, principal) for one in await agents.reach(agent)):
                names.append(f"{AGENT}{agent.name}")
    return [*names, *(f"{WORKFLOW}{name}" for name in await state.workflows.usable(principal))]


async def begin(
    state: State,
    principal: Principal,
    request: Request,
    body: bytes,
    key: str | None,
    *,
    cancels: bool,
) -> RunRow:
    """Begin the run that a request to a model ``agent:NAME`` or ``workflow:NAME`` is.

    :param cancels: whether the run ends when the caller leaves.
    :raises Fault: ``unknown_model``, or what the run can't do.
    """
    kind, _, name = request.model.partition(":")
    common: dict[str, Any] = {
        "on_disconnect": "cancel" if cancels else "continue",
        "metadata": _texts(request.metadata),
        "end_user": request.end_user,
    }
    messages = (*_instructions(request), *_said(request.messages))
    try:
        if f"{kind}:" == AGENT:
            run = NewRun(agent=name, input=messages, **common)
            return await state.runs.create(principal, run, body, key)
        schema = state.workflows.compiled(name).workflow.input_schema
        value = _value(messages, schema)
        flow = NewWorkflow(workflow=name, input=value, history=messages[:-1], **common)
        return await state.workflows.create(principal, flow, body, key)
    except Fault as fault:
        if fault.kind == "not_found":
            raise Fault("unknown_model", fault.message, param="model") from None
        raise


def _said(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The conversation without what no model has thought: steps that this door has shown as
    reasoning come back with the caller's next turn, and no provider knows them."""
    kept = (replace(one, parts=tuple(p for p in one.parts if not _ours(p))) for one in messages)
    return tuple(one for one in kept if one.parts)


def _ours(part: Part) -> bool:
    return isinstance(part, Thinking) and not part.signature and not part.sealed


def _instructions(request: Request) -> tuple[Message, ...]:
    return (Message("developer", request.instructions),) if request.instructions else ()


def _value(messages: tuple[Message, ...], schema: Mapping[str, Any] | None) -> Any:
    """The last message as a workflow's input: text, or JSON where its schema asks for that.

    :raises Fault: ``bad_request`` where it is not the user's, or its text no JSON; ``unsupported``
        for messages that are more than text.
    """
    for number, message in enumerate(messages):
        if any(isinstance(part, Media) for part in message.parts):
            text = "A workflow takes text; this message holds something else."
            raise Fault("unsupported", text, param=f"messages[{number}]")
    parts = messages[-1].parts if messages and messages[-1].role == "user" else ()
    texts = [part.text for part in parts if isinstance(part, Text)]
    if not texts:
        text = "A workflow's input is the last message, which has to be a text of the user's."
        raise Fault("bad_request", text, param="messages")
    text = "".join(texts)
    if schema is None or schema.get("type") in (None, "string"):
        return text
    try:
        return loads(text.encode())
    except ValueError:
        text = "This workflow takes JSON: the last message must be JSON text of its input."
        raise Fault("bad_request", text, param="messages") from None


def _texts(metadata: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (metadata or {}).items()}


HEARD = frozenset(
    {"model", "messages", "instructions", "metadata", "end_user", "stream", "style.include_usage"}
    | {"memory.previous", "memory.conversation", "memory.store", "memory.background"}
)
"""Canonical fields that a run looks at; all others an agent decides for itself."""


def unheard(given: Mapping[str, Any], fields: Mapping[str, Field]) -> list[str]:
    """The caller's fields that a run does not look at, for ``x-gateway-dropped`` (promise 12).

    :param given: the body as it was sent. :param fields: what its dialect's fields mean.
    """
    said = [name for name, value in given.items() if value is not None]
    return [name for name in said if name not in fields or fields[name].to not in HEARD]


def waiting(row: RunRow) -> Fault | None:
    """What a caller who wants one body is told of a run that somebody else has to let go on;
    ``None`` for one that goes on by itself."""
    run_id, standing = row.birth.id, row.standing
    if standing.status not in ("waiting", "paused"):
        return None
    asked = [one["id"] for one in standing.summary["interrupts"]]
    if standing.status == "paused":
        why, how = "is paused", f"POST /runs/{run_id}/resume lets it go on"
    else:
        why = f"waits: somebody has to answer ({standing.waiting_for}) before it can go on"
        how = f"POST /runs/{run_id}/interrupts/ID answers it (open: {', '.join(asked)})"
        if standing.children:
            how = f"Its child runs ask: GET /runs/{{id}} of {', '.join(standing.children)} has what"
    return Fault(
        "conflict",
        f"The run {run_id} {why}. {how}; then GET /runs/{run_id} has its end. With stream: true "
        "this call would stay open until then. Sent again, it would begin another run.",
        code="run_waiting",
        data={"run_id": run_id, "status": standing.status, "interrupts": asked},
    )
