"""Child runs: an agent or a workflow that another agent calls as a tool.

A child has a ledger of its own and at most what is left of its parent's budget. Its id follows
from the call, so that whoever makes the call again finds the same child and takes it up.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.request import Message
from gateway.flow.shielded import shielded
from gateway.runs import commands
from gateway.runs.arguments import read
from gateway.runs.asking import child_reference
from gateway.runs.bench import Bench
from gateway.runs.ending import said, unmade
from gateway.runs.events import Draft, draft
from gateway.runs.ledger import Lost, Tape, patiently
from gateway.runs.shares import may_begin
from gateway.runs.spec import RunSpec
from gateway.runs.state import Call, Run
from gateway.runs.status import ENDED, WORK
from gateway.runs.toolcall import intent
from gateway.runs.workflow_spec import set_to
from gateway.store.runs import RunRow
from gateway.tools.base import ToolSpec

MAX_DEPTH = 5
"""Runs within runs."""
LOOK_EVERY = 1.0
"""Seconds between looks at a child that another process works on."""


def child_id(run_id: str, call_id: str) -> str:
    """The id of the run that a call of another run is."""
    return "run_" + hashlib.sha256(f"{run_id}:{call_id}".encode()).hexdigest()[:24]


class Worker(Protocol):
    """Whoever claims runs for this process, and works on them."""

    @property
    def draining(self) -> bool:
        """Whether runs are let go at their next border, and nothing new is begun."""
        ...

    @property
    def owner(self) -> str:
        """The name on the claims."""
        ...

    def lease_until(self) -> float:
        """The end of a claim that is made now."""
        ...

    async def carry_out(self, row: RunRow) -> None:
        """Work on a claimed run until it ends, waits or is let go, within the caller's task: a
        child takes no place of its own among the runs that are worked on at once."""
        ...


class ChildRuns:
    """Starts, takes up and ends child runs."""

    def __init__(self, bench: Bench, worker: Worker) -> None:
        self._bench = bench
        self._worker = worker

    async def attend(self, tape: Tape, call: Call, tool: ToolSpec) -> list[Draft]:
        """See :class:`gateway.runs.toolcall.Children`."""
        run = tape.run
        if run.spec.depth >= MAX_DEPTH:
            return [_failed(call, f"Agents may call each other {MAX_DEPTH} deep at most.")]
        run_id = child_id(run.id, call.call_id)
        arguments = read(call.arguments, tool.parameters, self._bench.check)
        if call.child is None:
            told = intent(run, call, arguments, tool, child=run_id)
            if not await tape.record(lambda now: [told] if may_begin(now, call.call_id) else []):
                return []  # another has begun with what was left, or the run is to end
        row = await self._row(run_id)
        if row is None:
            row = await self._create(tape, call, run_id, arguments)
        row = await self._follow(row)
        if row.standing.status in WORK:
            return []  # let go at a border: the process is ending, somebody will take it up
        return [_result(call, row)]

    async def end(self, call: Call) -> Draft:
        """See :class:`gateway.runs.toolcall.Children`."""
        run_id, result = str(call.child), unmade(call)
        await self.cancel(run_id)
        row = await self._row(run_id)
        if row is None:
            return result  # it was never made
        row = await self._follow(row)
        return replace(result, data={**result.data, **_used(row)})

    async def cancel(self, run_id: str) -> None:
        """See :class:`gateway.runs.toolcall.Children`."""
        ledger = self._bench.ledger
        with contextlib.suppress(Lost):  # it was never made
            await patiently(ledger.clock, lambda: ledger.command(run_id, _cancelled))

    async def _create(
        self, tape: Tape, call: Call, run_id: str, arguments: Mapping[str, Any]
    ) -> RunRow:
        ledger, run = self._bench.ledger, tape.run
        spec = _spec(run, call, arguments)
        parent = await self._row(run.id)
        if parent is None:
            raise Lost(run.id)
        birth = replace(
            parent.birth,
            id=run_id,
            kind=spec.kind,
            agent=spec.agent,
            parent=run.id,
            created_at=ledger.clock.wall(),
            metadata={},
            idempotency_key=None,
            digest=None,
        )
        created = draft("run.created", spec=spec.plain())
        owner, until = self._worker.owner, self._worker.lease_until()
        # Whoever ends this run must find the child, not miss it by a moment.
        await shielded(
            patiently(ledger.clock, lambda: ledger.create(birth, [created], owner, until))
        )
        return await self._found(run_id)

    async def _row(self, run_id: str) -> RunRow | None:
        ledger = self._bench.ledger
        return await patiently(ledger.clock, lambda: ledger.store.run(run_id))

    async def _found(self, run_id: str) -> RunRow:
        row = await self._row(run_id)
        if row is None:
            raise Lost(run_id)
        return row

    async def _follow(self, row: RunRow) -> RunRow:
        """Work on the child, or wait for whoever does, until it has ended or waits itself."""
        run_id = row.birth.id
        with self._bench.hub.following(run_id) as (_, news):
            while row.standing.status in WORK:
                news.clear()
                mine = await self._claimed(row)
                if mine is not None:
                    await self._worker.carry_out(mine)
                else:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(news.wait(), LOOK_EVERY)
                row = await self._found(run_id)
                if mine is not None and self._worker.draining:
                    break
        return row

    async def _claimed(self, row: RunRow) -> RunRow | None:
        """The child, claimed for this process; ``None`` where another works on it."""
        owner, now = self._worker.owner, self._bench.ledger.clock.wall()
        if row.epoch == 0 and row.owner == owner:
            return replace(row, lease_until=None)  # made just now, with the claim in it
        until = self._worker.lease_until()
        with contextlib.suppress(Fault):  # a claim that took place all the same ends by itself
            return await self._bench.ledger.store.claim_run(row, owner, now, until)
        return None


def _cancelled(run: Run) -> Sequence[Draft]:
    """The wish to end a child, unless it has ended by itself."""
    return () if run.status in ENDED else commands.cancel(run, "parent")


def _spec(run: Run, call: Call, arguments: Mapping[str, Any]) -> RunSpec:
    """The child's spec: the agent or workflow called, what it is given, and its share of the
    budget."""
    reference = child_reference(run.spec.find(call.agent), call.name)
    child = RunSpec(
        kind="agent",
        agents=run.spec.agents,
        tools=run.spec.tools,
        budget=run.calls[call.call_id].share,
        end_user=run.spec.end_user,
        parent=run.id,
        depth=run.spec.depth + 1,
    )
    flow = run.spec.flow(reference)
    if flow is not None:
        flow = set_to(flow, arguments.get("settings", {}))
        given = arguments["input"]
        return replace(child, kind="workflow", agent=flow.name, workflow=flow, value=given)
    name = reference.partition(":")[2]
    said_to_it = (Message("user", (Text(str(arguments["input"])),)),)
    return replace(child, agent=name, input=said_to_it)


def _result(call: Call, row: RunRow) -> Draft:
    """What a child's end, or its waiting, means for the call."""
    standing, told = row.standing, {"call_id": call.call_id, "child_run_id": row.birth.id}
    if standing.status not in ENDED:
        waits = standing.waiting_for or "input"
        text = f"The child run {row.birth.id} is {standing.status}."
        return _about(call, "tool.progress", **told, message=text, waiting_for=waits)
    used, output = _used(row), standing.summary.get("output") or {}
    made = output.get("text") or ""
    if standing.status == "completed":
        value = output.get("value")
        data = {} if value is None else {"structured": value}
        return _about(call, "tool.completed", **told, **used, **data, content=said(made))
    why = (standing.summary.get("error") or {}).get("message") or standing.summary.get("reason")
    text = f"{row.birth.agent} did not finish: it is {standing.status}. {why or ''} {made}".strip()
    return _about(call, "tool.failed", **told, **used, kind="error", content=said(text))


def _used(row: RunRow) -> dict[str, Any]:
    """What a child has used, as its call tells it."""
    standing = row.standing
    usage = {
        "input_tokens": standing.input_tokens,
        "output_tokens": standing.output_tokens,
        "tool_calls": standing.tool_calls,
    }
    return {"usage": usage, "cost_nano": standing.cost_nano}


def _failed(call: Call, text: str) -> Draft:
    return _about(call, "tool.failed", call_id=call.call_id, kind="error", content=said(text))


def _about(call: Call, type: str, **data: Any) -> Draft:
    return draft(type, step=call.step, agent=call.agent, **data)
