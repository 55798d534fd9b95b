"""A thread's next model turn as a request, and the tools that an agent is offered. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from adapters.canonical.parts import Text, ToolResult
from adapters.canonical.request import FunctionTool, JsonSchema, Message, PromptRef, Request
from gateway.runs.spec import AgentSpec
from gateway.runs.state import Run, Thread
from gateway.runs.workflow_spec import WorkflowSpec
from gateway.tools.base import ToolSpec

HANDOFF = "transfer_to_"
"""The head of a hand-over tool's name."""

CHILDREN = frozenset({"agent", "workflow"})
"""Kinds of tools that are runs themselves."""

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")

CHILD_PARAMETERS = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "What it should do."}},
    "required": ["input"],
    "additionalProperties": False,
}


def turn_request(run: Run, thread: Thread) -> Request:
    """What the model is asked in the thread's next turn."""
    if run.spec.call is not None:
        return run.spec.call
    agent = run.spec.find(thread.agent)
    tools = offered(run, agent)
    schema = thread.output_schema or agent.output_schema
    return Request(
        model=agent.model,
        messages=_messages(run, thread, agent),
        origin="openai-responses",
        instructions=() if agent.instructions is None else (Text(agent.instructions),),
        tools=tools or None,
        parallel_tools=agent.parallel_tools if tools else None,
        output=None if schema is None else JsonSchema(_safe(agent.name), schema, strict=True),
        sampling=agent.sampling,
        reasoning=agent.reasoning,
        prompt=None if agent.prompt is None else PromptRef(agent.prompt),
        end_user=run.spec.end_user,
        stream=True,
    )


def offered(run: Run, agent: AgentSpec) -> tuple[FunctionTool, ...]:
    """The agent's tools and hand-overs, as the model is told of them."""
    tools = [tool.offered() for tool in run.tools.get(agent.name, ())]
    for name in agent.handoffs:
        about = run.spec.find(name).description
        text = f"Give the conversation to {name}." + (f" {about}" if about else "")
        tools.append(FunctionTool(handoff_name(name), text, {"type": "object", "properties": {}}))
    return tuple(tools)


def handoff_name(agent: str) -> str:
    """The tool by which the conversation is given to ``agent``."""
    return HANDOFF + _safe(agent)


def handoff_target(agent: AgentSpec, tool: str) -> str | None:
    """The agent that a hand-over tool leads to; ``None`` for any other tool."""
    if not tool.startswith(HANDOFF):
        return None
    return next((name for name in agent.handoffs if handoff_name(name) == tool), None)


def child_spec(reference: str, description: str | None) -> ToolSpec:
    """The tool that an agent or a workflow is for another agent (``agent:NAME``). It may always
    be made again: a child run has a ledger of its own and is taken up where it was."""
    kind, _, name = reference.partition(":")
    return ToolSpec(
        name=child_name(reference),
        description=description or f"Ask the {kind} {name}.",
        parameters=CHILD_PARAMETERS,
        kind="agent" if kind == "agent" else "workflow",
        idempotent=True,
    )


def flow_spec(reference: str, flow: WorkflowSpec) -> ToolSpec:
    """The tool that a workflow is for an agent: its input and its open settings are the schema."""
    properties: dict[str, Any] = {"input": flow.input_schema or {"type": "string"}}
    chosen = {
        name: {**one["schema"], "default": one["default"]}
        for name, one in flow.settings.items()
        if one["open"]
    }
    if chosen:
        properties["settings"] = {
            "type": "object",
            "properties": chosen,
            "additionalProperties": False,
        }
    parameters = {**CHILD_PARAMETERS, "properties": properties}
    return replace(child_spec(reference, flow.description), parameters=parameters)


def child_name(reference: str) -> str:
    """The name under which a model calls ``agent:NAME``."""
    return _safe(reference.replace(":", "_"))


def child_reference(agent: AgentSpec, tool: str) -> str:
    """The ``agent:NAME`` behind a child's tool name.

    :raises KeyError: the agent has no such child.
    """
    for reference in agent.tools:
        if ":" in reference and child_name(reference) == tool:
            return reference
    raise KeyError(tool)


def _safe(name: str) -> str:
    """A name that every provider takes for a function or a schema."""
    return _UNFIT.sub("_", name)[:60]


def _messages(run: Run, thread: Thread, agent: AgentSpec) -> tuple[Message, ...]:
    """The transcript; where answers must cite calls, each result says its call's id."""
    messages = run.transcript(thread)
    if not any(rule.kind == "claims" for rule in agent.contract):
        return messages
    return tuple(_labelled(message) if message.role == "tool" else message for message in messages)


def _labelled(message: Message) -> Message:
    parts = (_headed(part) if isinstance(part, ToolResult) else part for part in message.parts)
    return replace(message, parts=tuple(parts))


def _headed(result: ToolResult) -> ToolResult:
    head, content = f"[{result.call_id}]", result.content
    if content and isinstance(content[0], Text):
        first = replace(content[0], text=f"{head}\n{content[0].text}")
        return replace(result, content=(first, *content[1:]))
    return replace(result, content=(Text(head), *content))
