"""Task records: one authoritative account of each model turn, tool call and node. Pure.

A task may be tried more than once (after a crash). Each try has its own record; which one speaks
for the task is said by :func:`authoritative`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from adapters.canonical.record import record
from gateway.runs.events import Event
from gateway.runs.state import Run

Status = Literal["completed", "paused", "running", "pending", "skipped", "failed", "cancelled"]

RANK: tuple[Status, ...] = (
    "completed",
    "paused",
    "running",
    "pending",
    "skipped",
    "failed",
    "cancelled",
)
"""Of several tries, the one that comes first here speaks; of several completed, the latest end.
What waits behind a pause is ``pending``, not ``failed``."""

OVER: frozenset[str] = frozenset({"completed", "skipped", "failed", "cancelled"})


@record(frozen=True, slots=True)
class Task:
    """One try: ``task`` is a step, a call id or a node; times are Unix seconds."""

    task: str
    attempt: int
    kind: Literal["model", "tool", "node"]
    name: str
    agent: str | None
    step: str | None
    status: Status
    created_at: float
    ended_at: float | None = None
    detail: Mapping[str, Any] | None = None


def changes(before: Run | None, run: Run, event: Event) -> list[Task]:
    """What ``event`` changes in the records, between the states before and after it. A record
    keeps the name and the time of its beginning, whatever is said here later."""
    if before is None:
        return _pending(run, event)
    if event.type == "run.recovered":
        steps = [turn["step"] for turn in event.data["abandoned"]]
        return [_turn(before, event, step, "cancelled") for step in steps]
    if event.type.startswith("model."):
        return _model(before, event)
    if event.type.startswith("node."):
        return [_node(event), *_next_try(event)]
    if event.type == "input.requested" and "node" in event.data:
        return [_node(event, run.nodes[event.data["node"]].attempt)]
    status = CALLS.get(event.type)
    call_id = event.data.get("call_id")
    if status is None or call_id is None:
        return []
    return [_call(run, event, call_id, status)]


CALLS: Mapping[str, Status] = {
    "tool.requested": "pending",
    "tool.in_doubt": "paused",
    "tool.intent": "running",
    "tool.completed": "completed",
    "tool.failed": "failed",
    "tool.skipped": "skipped",
    "agent.handoff": "completed",
    "approval.requested": "paused",
    "approval.granted": "pending",
    "approval.edited": "pending",
    "input.requested": "paused",
}
"""What an event about a call makes of its record."""


def _call(run: Run, event: Event, call_id: str, status: Status) -> Task:
    call = run.calls[call_id]
    if event.data.get("kind") == "cancelled":
        status = "cancelled"
    return Task(
        task=call_id,
        attempt=max(call.tries, 1),
        kind="tool",
        name=call.name,
        agent=call.agent,
        step=call.step,
        status=status,
        created_at=event.at,
        ended_at=event.at if status in OVER else None,
        detail=_detail(event, "kind", "reason", "usage", "cost_nano", "child_run_id"),
    )


def _model(before: Run, event: Event) -> list[Task]:
    step = str(event.step)
    match event.type:
        case "model.started":
            return [_turn(before, event, step, "running")]
        case "model.finished":
            cut = event.data["finish_reason"] == "cut"
            return [_turn(before, event, step, "cancelled" if cut else "completed")]
        case "model.attempt_failed" if event.data.get("final", False):
            return [_turn(before, event, step, "failed")]
        case _:
            return []


def _turn(before: Run, event: Event, step: str, status: Status) -> Task:
    thread = before.threads.get(step.rpartition("/")[0])
    tries = 1 if thread is None else thread.tries
    return Task(
        task=step,
        attempt=event.data.get("attempt", max(tries, 1)),
        kind="model",
        name=event.data.get("model") or "",
        agent=event.agent,
        step=step,
        status=status,
        created_at=event.at,
        ended_at=event.at if status in OVER else None,
        detail=_detail(event, "usage", "cost_nano", "error"),
    )


def _pending(run: Run, event: Event) -> list[Task]:
    """The nodes of a workflow that has just been made: each is there before it can begin."""
    flow = run.spec.workflow
    return [
        Task(node.id, 1, "node", node.kind, None, node.id, "pending", event.at)
        for node in (() if flow is None else flow.nodes)
    ]


NODES: Mapping[str, Status] = {
    "node.started": "running",
    "node.skipped": "skipped",
    "input.requested": "paused",
}


def _node(event: Event, attempt: int = 1) -> Task:
    status: Status = NODES.get(event.type) or event.data["status"]
    ended = status in OVER
    return Task(
        task=event.data["node"],
        attempt=event.data.get("attempt", attempt),
        kind="node",
        name=event.data.get("kind", ""),
        agent=event.agent,
        step=event.step,
        status=status,
        created_at=event.at,
        ended_at=event.at if ended else None,
        detail=_detail(event, "error", "reason"),
    )


def _next_try(event: Event) -> list[Task]:
    """Between two tries a node is pending."""
    if "retry_after" not in event.data:
        return []
    node, attempt = event.data["node"], event.data["attempt"] + 1
    kind = event.data.get("kind", "")
    return [Task(node, attempt, "node", kind, event.agent, event.step, "pending", event.at)]


def _detail(event: Event, *names: str) -> dict[str, Any] | None:
    found = {name: event.data[name] for name in names if name in event.data}
    return found or None


def authoritative(tries: Iterable[Task]) -> list[Task]:
    """One record a task, in the order in which the tasks came up."""
    best: dict[str, Task] = {}
    for one in tries:
        known = best.get(one.task)
        if known is None or _speaks_before(one, known):
            best[one.task] = one
    return list(best.values())


def _speaks_before(one: Task, other: Task) -> bool:
    if one.status != other.status:
        return RANK.index(one.status) < RANK.index(other.status)
    return (one.ended_at or 0, one.attempt) >= (other.ended_at or 0, other.attempt)
