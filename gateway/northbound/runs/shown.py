"""Runs, tasks, agents and events as JSON objects and as server-sent events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from gateway.northbound.runs.agents import agent_body
from gateway.runs.spec import AgentSpec
from gateway.store.runs import AgentRow, RunRow, TaskRow

RETRY = b"retry: 2000\n"
"""How many milliseconds a browser waits before it reconnects. Stands in the first event's frame:
alone in a frame, some clients take it for an event without data."""
PING = b": ping\n\n"


def run_object(row: RunRow) -> dict[str, Any]:
    """A run as ``GET /runs/{id}`` shows it."""
    birth, standing, summary = row.birth, row.standing, row.standing.summary
    return {
        "id": birth.id,
        "object": "run",
        "kind": birth.kind,
        "agent": birth.agent,
        "status": standing.status,
        "reason": summary.get("reason"),
        "error": summary.get("error"),
        "waiting_for": standing.waiting_for,
        "interrupts": summary.get("interrupts", []),
        "children": list(standing.children),
        "pausing": row.pausing,
        "output": summary.get("output"),
        "trace": summary.get("trace"),
        "usage": summary.get("usage"),
        "current_agent": summary.get("agent"),
        "plan": summary.get("plan"),
        "created_at": birth.created_at,
        "updated_at": standing.updated_at,
        "ended_at": standing.ended_at,
        "last_seq": standing.last_seq,
        "parent_run_id": birth.parent,
        "metadata": dict(birth.metadata),
        "user": birth.end_user,
    }


def run_list(rows: Sequence[RunRow], limit: int) -> dict[str, Any]:
    """A page of runs; ``rows`` has one more than the page if there are more."""
    page = rows[:limit]
    return {
        "object": "list",
        "data": [run_object(row) for row in page],
        "has_more": len(rows) > limit,
        "last_id": page[-1].birth.id if page else None,
    }


def task_object(row: TaskRow) -> dict[str, Any]:
    """A task as ``GET /runs/{id}/tasks`` shows it."""
    shown = {"object": "run.task", **row._asdict()}
    detail = shown.pop("detail")
    return {**shown, **({} if detail is None else orjson.loads(detail))}


def agent_object(spec: AgentSpec, row: AgentRow | None) -> dict[str, Any]:
    """An agent as ``GET /agents/{name}`` shows it; without a row it is the configuration's."""
    return {
        "object": "agent",
        "source": "file" if row is None else "store",
        "version": None if row is None else row.version,
        "created_at": None if row is None else row.created_at,
        **agent_body(spec),
    }


def plan_object(plan_id: str, row: AgentRow) -> dict[str, Any]:
    """A plan as ``GET /plans/{id}`` shows it."""
    return {
        "id": plan_id,
        "object": "plan",
        "version": row.version,
        "created_at": row.created_at,
        **row.spec,
    }


def event_frame(seq: int, type: str, body: bytes) -> bytes:
    """One server-sent event."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, type.encode(), body)


def event_page(bodies: Sequence[bytes], *, ended: bool) -> bytes:
    """A page of events as JSON; ``ended`` says that nothing follows."""
    rest = b'],"has_more":%s}' % (b"false" if ended else b"true")
    return b'{"object":"list","data":[' + b",".join(bodies) + rest
