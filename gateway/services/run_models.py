"""Agents and workflows as models: which there are, and the run that a request to one begins."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.request import Message, Request
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
    messages = (*_instructions(request), *request.messages)
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


def _instructions(request: Request) -> tuple[Message, ...]:
    return (Message("developer", request.instructions),) if request.instructions else ()


def _value(messages: tuple[Message, ...], schema: Mapping[str, Any] | None) -> Any:
    """The last message as a workflow's input: text, or JSON where its schema asks for that.

    :raises Fault: ``bad_request`` where the text is no JSON.
    """
    parts = messages[-1].parts if messages else ()
    text = "".join(part.text for part in parts if isinstance(part, Text))
    if schema is None or schema.get("type") in (None, "string"):
        return text
    try:
        return loads(text.encode())
    except ValueError:
        text = "This workflow takes JSON: the last message must be JSON text of its input."
        raise Fault("bad_request", text, param="messages") from None


def _texts(metadata: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (metadata or {}).items()}


FIELDS = (
    "tools",
    "tool_choice",
    "output",
    "reasoning",
    "prompt",
    "cache",
    "parallel_tools",
    "service_tier",
    "verbosity",
)
"""What an agent decides for itself, whatever its caller says."""


def unheard(request: Request) -> list[str]:
    """The caller's fields that a run does not look at, for ``x-gateway-dropped`` (promise 12)."""
    found = [name for name in FIELDS if getattr(request, name) is not None]
    sampling = request.sampling
    names = ("max_output_tokens", "temperature", "top_p", "top_k", "seed", "n")
    found += [name for name in names if getattr(sampling, name) is not None]
    return [*found, *(["stop"] if sampling.stop else []), *request.extras]
