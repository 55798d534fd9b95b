"""A run's state as the row that everybody else reads: listings, readers, the supervisor. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adapters.wire.json import dumps
from gateway.runs.ending import output, used
from gateway.runs.events import Event
from gateway.runs.nodes import PLAN
from gateway.runs.spec import Plan
from gateway.runs.state import Interrupt, Run
from gateway.runs.status import ENDED, IDLE
from gateway.runs.tasks import Task
from gateway.store.runs import EventRow, Standing, TaskRow

SHOWN = ("tool", "arguments", "arguments_hash", "schema_hash", "expires_at", "default", "which",
         "used", "limit", "idempotency_key", "schema", "node")  # fmt: skip
"""What a reader is shown of an open question."""


def standing(run: Run, ttl: float) -> Standing:
    """The row of ``run``.

    :param ttl: seconds that a run may be idle.
    """
    ended = run.status in ENDED
    return Standing(
        status=run.status,
        last_seq=run.seq,
        updated_at=run.at,
        waiting_for=run.waiting_for,
        children=run.children,
        wake_at=None if ended else min(_alarms(run, ttl), default=None),
        ended_at=run.at if ended else None,
        turns=run.used.turns,
        tool_calls=run.used.tool_calls,
        input_tokens=run.used.input_tokens,
        output_tokens=run.used.output_tokens,
        cost_nano=run.used.nano,
        summary=summary(run),
    )


def _alarms(run: Run, ttl: float) -> Iterator[float]:
    """When somebody has to look at the run although nothing happens."""
    if run.status in IDLE:
        yield run.since + ttl
    for interrupt in run.open_interrupts():
        if "expires_at" in interrupt.asked:
            yield interrupt.asked["expires_at"]


def summary(run: Run) -> dict[str, Any]:
    """What a reader of the run is shown besides the row's own columns."""
    end = run.end
    if end is None:
        shown: dict[str, Any] = {"output": output(run), "usage": used(run, run.at)}
    else:
        names = ("output", "trace", "usage", "reason", "error")
        shown = {name: end.data[name] for name in names if name in end.data}
    shown["interrupts"] = (
        [asked(interrupt) for interrupt in run.open_interrupts()] if not end else []
    )
    shown["agent"] = next((thread.agent for thread in run.threads.values()), run.spec.agent)
    shown["started"] = run.started
    if run.spec.plan is not None:
        shown["plan"] = {"id": run.spec.plan.id, "version": _plan_version(run, run.spec.plan)}
    return shown


def _plan_version(run: Run, plan: Plan) -> int | None:
    """The version of the plan that the run has made or follows; none before it is stored."""
    steps = [node for node in run.nodes.values() if node.kind == PLAN]
    stored = [step.output["version"] for step in steps if step.status == "completed"]
    followed = plan.version if plan.mode == "production" else None
    return stored[-1] if stored else followed


def asked(interrupt: Interrupt) -> dict[str, Any]:
    """An open question."""
    shown = {"id": interrupt.id, "kind": interrupt.kind, "call_id": interrupt.call_id}
    return {**shown, **{name: interrupt.asked[name] for name in SHOWN if name in interrupt.asked}}


def event_row(event: Event) -> EventRow:
    """An event as the books keep it."""
    return EventRow(
        event.run_id,
        event.seq,
        event.type,
        event.at,
        event.epoch,
        event.step,
        event.agent,
        dumps(event.data).decode(),
    )


def task_row(run_id: str, task: Task) -> TaskRow:
    """A task's record as the books keep it."""
    return TaskRow(
        run_id,
        task.task,
        task.attempt,
        task.kind,
        task.name,
        task.agent,
        task.step,
        task.status,
        task.created_at,
        task.ended_at,
        None if task.detail is None else dumps(task.detail).decode(),
    )
