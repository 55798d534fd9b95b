"""How a run ends: what is still open gets a result, and the last event tells what was made. Pure.

The transcript stays valid whatever happened: every call of the model has exactly one result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from adapters.canonical.parts import Refusal, Text
from adapters.canonical.plain import plain
from gateway.runs.actions import Decision, Emit, Halt
from gateway.runs.events import Draft, draft
from gateway.runs.nodes import is_agent
from gateway.runs.state import Call, Node, Run, Thread

MAX_TRACED = 1_000
"""Characters of one call's arguments and content in the trace."""
MAX_CALLS = 500
"""Calls in the trace; of more, the first are left out."""

CUT_OFF = "The call was stopped while it was under way. Whether it took effect is not known."
NOT_MADE = "The call was not made: the run has ended."


def end(run: Run, type: str, at: float, **data: Any) -> Decision:
    """End ``run`` with an event of ``type`` at Unix time ``at``: at once, or after what is under
    way has been stopped."""
    if run.under_way or any(call.has_child for call in run.calls.values()):
        return (Halt(),)
    return (Emit(closing(run, type, at, **data)),)


def closing(run: Run, type: str, at: float, **data: Any) -> tuple[Draft, ...]:
    """The last events of a run that nobody is working on: open calls get a result, agents leave,
    nodes end."""
    left = [call for call in run.calls.values() if call.phase != "done"]
    outcome = "answered" if type == "run.completed" else "stopped"
    drafts = [*map(unmade, left), *_parted(run, outcome), *_stopped(run)]
    told = {"trace": trace(run, left), "usage": used(run, at), **data}
    told.setdefault("output", output(run) if run.spec.workflow is None else made(run))
    return (*drafts, draft(type, **told))


def _parted(run: Run, outcome: str) -> Iterator[Draft]:
    """The agents that still take part."""
    for thread in run.threads.values():
        told: dict[str, Any] = {"agent": thread.agent, "outcome": outcome}
        if run.spec.workflow is None:
            if thread.agent in run.tools:
                yield draft("agent.finished", **told)
        elif thread.agent in thread.met and is_agent(thread.agent):
            yield draft("agent.finished", step=f"{thread.name}/{thread.turns}", **told)


def _stopped(run: Run) -> Iterator[Draft]:
    """The nodes of a workflow that were not over, and those that never began."""
    flow = run.spec.workflow
    if flow is None:
        return
    yield from (stopped(node) for node in run.nodes.values() if node.open)
    for spec in flow.nodes:
        if spec.id not in run.nodes:
            never = {"node": spec.id, "kind": spec.kind, "reason": "ended"}
            yield draft("node.skipped", step=spec.id, **never)


def stopped(node: Node) -> Draft:
    """The end of a node that is under way, or of the next try of one that rests."""
    told: dict[str, Any] = {"node": node.path, "kind": node.kind}
    if node.status == "resting":
        again = node.attempt + 1
        return draft("node.skipped", step=node.path, **told, attempt=again, reason="ended")
    attempt = node.attempt
    return draft("node.finished", step=node.path, **told, attempt=attempt, status="cancelled")


def made(run: Run) -> dict[str, Any]:
    """What a workflow has made so far: the outputs of its own finished nodes."""
    done = {n.path: n.output for n in run.nodes.values() if n.status == "completed"}
    value = {path: output for path, output in done.items() if "/" not in path}
    return {"text": None, "value": value}


def unmade(call: Call) -> Draft:
    """The synthetic result of a call that has none."""
    if call.tries:
        data = {"call_id": call.call_id, "kind": "cancelled", "content": said(CUT_OFF)}
        return draft("tool.failed", step=call.step, agent=call.agent, **data)
    data = {"call_id": call.call_id, "reason": "ended", "content": said(NOT_MADE)}
    return draft("tool.skipped", step=call.step, agent=call.agent, **data)


def said(text: str) -> list[dict[str, Any]]:
    """A text as the content of a tool's result."""
    return [plain(Text(text))]


def used(run: Run, at: float) -> dict[str, Any]:
    """Everything that the run has used until ``at``."""
    return {**run.used.shown(), "seconds": round(run.seconds(at), 3)}


def output(run: Run, value: Any = None) -> dict[str, Any]:
    """The answer, or what was made so far: the text of the last message that has any."""
    return said_in(run.threads.values(), value)


def said_in(threads: Iterable[Thread], value: Any = None) -> dict[str, Any]:
    """What was said last in these conversations."""
    text: str | None = None
    refused = False
    for thread in threads:
        found, refused = last_text(thread)
        text = found if found is not None else text
    shown: dict[str, Any] = {"text": text, "value": value}
    return {**shown, "refusal": True} if refused else shown


def last_text(thread: Thread) -> tuple[str | None, bool]:
    """The last text that the thread's agents said, and whether it is a refusal."""
    for message in reversed(thread.messages):
        if message.role != "assistant":
            continue
        spoken = [part for part in message.parts if isinstance(part, Text | Refusal)]
        text = "".join(part.text for part in spoken)
        if text.strip():
            return text, any(isinstance(part, Refusal) for part in spoken)
    return None, False


def trace(run: Run, unmade_calls: list[Call]) -> list[dict[str, Any]]:
    """Every tool call of the run and what came of it, long texts cut."""
    open_ids = {call.call_id for call in unmade_calls}
    return [
        _traced(call, call.call_id in open_ids) for call in list(run.calls.values())[-MAX_CALLS:]
    ]


def _traced(call: Call, unmade_call: bool) -> dict[str, Any]:
    text = "".join(part.text for part in call.content if isinstance(part, Text))
    outcome = call.outcome
    if unmade_call:
        outcome = "failed" if call.tries else "skipped"
    shown: dict[str, Any] = {
        "call_id": call.call_id,
        "tool": call.name,
        "arguments": _cut(call.arguments),
        "outcome": outcome,
        "content": _cut(text),
    }
    return {**shown, "child_run_id": call.child} if call.child is not None else shown


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TRACED else text[:MAX_TRACED] + "…"


def json_value(text: str) -> Any:
    """The value of a JSON text.

    :raises ValueError: it is none.
    """
    return json.loads(text)
