"""Runs as callers use them: begun, read, answered, ended.

Made by the composition root with everything that runs are worked on with. Each method is given
the principal, and sees the runs of its project only.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.clock import Clock
from adapters.canonical.faults import Fault
from adapters.canonical.request import Message
from gateway.flow.context import Runtime
from gateway.northbound.runs.bodies import Fork, NewRun
from gateway.policy.auth import Keyring, Principal
from gateway.runs import commands
from gateway.runs.bench import Bench
from gateway.runs.budget import least
from gateway.runs.events import Draft, draft
from gateway.runs.fork import Changes, NotThere, fork
from gateway.runs.hub import Hub
from gateway.runs.ledger import Command, Ledger, Lost
from gateway.runs.spec import AgentSpec, Answer, Flow, RunSpec
from gateway.runs.state import MAIN, Run
from gateway.runs.status import ENDED, STATUSES
from gateway.runs.supervisor import Bounds, Supervisor
from gateway.runs.tasks import Task, authoritative
from gateway.services.agents import Agents, file_agents, fit, fit_together, known_tools
from gateway.settings.snapshot import Snapshot
from gateway.store.base import Store
from gateway.store.runs import Birth, RunQuery, RunRow, TaskRow
from gateway.tools.base import Registry

PREFIX = "run_"


Reached = tuple[AgentSpec, ...]
Beyond = Callable[[Principal, Reached, Reached], Awaitable[tuple[Reached, tuple[Flow, ...]]]]
"""Finds the workflows that agents have for tools: given the agents of a run and those that came
with the request, all that are then reached, and the workflows."""


async def _nothing_beyond(
    principal: Principal, reached: Reached, inline: Reached
) -> tuple[Reached, tuple[Flow, ...]]:
    """Where there are no workflows."""
    return reached, ()


class Runs:
    """All runs of this process.

    :param runtime: the parts of the gateway as of the configuration in force.
    :param tools: the tools that agents may be given, now.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        keyring: Keyring,
        runtime: Callable[[], Runtime],
        tools: Callable[[], Registry],
    ) -> None:
        self._store = store
        self._clock = clock
        self._keyring = keyring
        self._runtime = runtime
        self._tools = tools
        self._files: Mapping[str, AgentSpec] = {}
        self.hub = Hub()
        self.ledger = Ledger(store, clock, self.hub, lambda: self._bounds().ttl)
        self.bench = Bench(self.ledger, self.hub, runtime, tools, self._principal)
        self.supervisor = Supervisor(self.bench, self._bounds)
        self.beyond: Beyond = _nothing_beyond

    # what is in force

    def use(self, snapshot: Snapshot) -> None:
        """Take the agents of a configuration."""
        self._files = file_agents(snapshot)[0]

    def _bounds(self) -> Bounds:
        table = self._runtime().snapshot.extra["runs"]
        return Bounds(table["max_concurrent"], table["lease_seconds"], table["run_ttl"])

    def _principal(self, key_id: str) -> Principal | None:
        now = self._clock.wall()
        for principal in self._keyring.principals():
            if principal.key_id == key_id:
                expires = principal.expires_at
                return principal if expires is None or expires > now else None
        return None

    def agents(self, principal: Principal) -> Agents:
        """The agents that a caller may use."""
        return Agents(self._store, self._files, principal.project)

    # beginning

    async def begun(self, principal: Principal, key: str | None, body: bytes) -> RunRow | None:
        """The run that ``body`` has begun under this key before, whatever has become of what it
        was made of; ``None`` if there is none.

        :raises Fault: ``idempotency_mismatch`` where the key stands for another request.
        """
        row = None if key is None else await self._store.run_of_key(principal.project, key)
        return None if row is None else _same(row, hashlib.sha256(body).digest())

    async def create(
        self, principal: Principal, asked: NewRun, body: bytes, key: str | None = None
    ) -> RunRow:
        """Begin a run; from here it exists, whatever becomes of the caller.

        :param body: what was sent, for whoever sends something else under the same ``key``.
        :raises Fault: for what the run could not do anyway, and ``idempotency_mismatch``.
        """
        agents = self.agents(principal)
        first = asked.agent if isinstance(asked.agent, AgentSpec) else (
            await self._named(agents, asked.agent)
        )  # fmt: skip
        reached, flows = await self.beyond(
            principal, await agents.reach(first, asked.agents), asked.agents
        )
        runtime = self._runtime()
        await known_tools(reached, self._tools())
        for agent in reached:
            fit(agent, principal, runtime.snapshot, self._tools())
        fit_together(reached, runtime)
        spec = RunSpec(
            kind="agent",
            agent=first.name,
            agents=reached,
            tools=flows,
            input=asked.input,
            history=await self._history(principal, asked.previous_run_id),
            budget=least(asked.budget, first.budget),
            on_budget=self._on_budget(asked, first),
            on_disconnect=asked.on_disconnect,
            metadata=asked.metadata,
            end_user=asked.end_user,
            previous_run_id=asked.previous_run_id,
        )
        return await self.begin(principal, spec, key=key, digest=hashlib.sha256(body).digest())

    async def begin(
        self,
        principal: Principal,
        spec: RunSpec,
        *,
        key: str | None = None,
        digest: bytes | None = None,
        events: tuple[Draft, ...] = (),
        forked_from: Mapping[str, Any] | None = None,
    ) -> RunRow:
        """Write a run down and see that somebody takes it up.

        :param events: what has happened in it already, for a fork.
        :raises Fault: ``idempotency_mismatch`` where the key stands for another request.
        """
        birth = Birth(
            id=self._clock.new_id(PREFIX),
            project=principal.project,
            key_id=principal.key_id,
            kind=spec.kind,
            agent=spec.agent if spec.call is None else spec.call.model,
            created_at=self._clock.wall(),
            end_user=spec.end_user,
            metadata=spec.metadata,
            idempotency_key=key,
            digest=digest if key is not None else None,
        )
        told: dict[str, Any] = {"spec": spec.plain()}
        if forked_from is not None:
            told["forked_from"] = dict(forked_from)
        created = draft("run.created", **told)
        existing = await self.ledger.create(birth, [created, *events])
        if existing is not None:
            return _same(existing, digest)
        self.supervisor.nudge()
        return await self.get(principal, birth.id)

    async def fork(
        self, principal: Principal, run_id: str, seq: int, changed: Fork, key: str | None = None
    ) -> RunRow:
        """Begin a new run that branches off an old one after event ``seq``.

        :raises Fault: ``bad_request`` for a place or a change that is none.
        """
        row = await self.get(principal, run_id)
        if not 1 <= seq <= row.standing.last_seq:
            text = f"The run has events 1 to {row.standing.last_seq}; fork from one of them."
            raise Fault("bad_request", text, param="from")
        events = await self.ledger.read(run_id, 0)
        changes = Changes(changed.model, changed.instructions, changed.input, changed.results)
        try:
            spec, copied = fork(events, seq, changes)
        except NotThere as why:
            raise Fault("bad_request", f"It can't be changed: {why}.", param="changes") from None
        if changed.metadata is not None:
            spec = replace(spec, metadata=changed.metadata)
        await known_tools(spec.agents, self._tools())
        for agent in spec.agents:
            fit(agent, principal, self._runtime().snapshot, self._tools())
        origin = {"run_id": run_id, "seq": seq, "copied": len(copied)}
        digest = hashlib.sha256(repr((run_id, seq, changed)).encode()).digest()
        return await self.begin(
            principal, spec, key=key, digest=digest, events=copied, forked_from=origin
        )

    async def _named(self, agents: Agents, name: str) -> AgentSpec:
        try:
            return (await agents.get(name))[0]
        except Fault as fault:
            raise Fault("not_found", fault.message, param="agent") from None

    def _on_budget(self, asked: NewRun, agent: AgentSpec) -> Any:
        settings = self._runtime().snapshot.extra["runs"]["on_budget"]
        return asked.on_budget or agent.on_budget or settings

    async def _history(self, principal: Principal, run_id: str | None) -> tuple[Message, ...]:
        """The conversation of an earlier run, which must have ended."""
        if run_id is None:
            return ()
        row = await self._previous(principal, run_id)
        if row.standing.status not in ENDED:
            text = "The previous run has not ended yet. Wait for it, or cancel it."
            raise Fault("conflict", text, param="previous_run_id")
        run = (await self.ledger.tape(run_id)).run
        thread = run.threads.get(MAIN)
        return () if thread is None else run.transcript(thread)

    async def _previous(self, principal: Principal, run_id: str) -> RunRow:
        try:
            return await self.get(principal, run_id)
        except Fault as fault:
            raise Fault(fault.kind, fault.message, param="previous_run_id") from None

    async def ended(self, run_id: str, seconds: float = 10.0) -> RunRow:
        """The run once it has ended, or as it stands after so many seconds."""
        with self.hub.following(run_id) as (_, news), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (await self.row(run_id, None)).standing.status not in ENDED:
                    await news.wait()
                    news.clear()
        return await self.row(run_id, None)

    # reading

    async def page(self, query: RunQuery) -> list[RunRow]:
        """Runs of a project, newest first.

        :raises Fault: ``bad_request`` for a status that there is not, and for a page that ended
            with a run that is not there.
        """
        if query.status not in (None, *STATUSES):
            text = f"status is one of {', '.join(STATUSES)}."
            raise Fault("bad_request", text, param="status")
        before = query.before
        if before is not None and await self._store.run(before, query.project) is None:
            text = "after is the last_id of the page before; there is no run of this id here."
            raise Fault("bad_request", text, param="after")
        return await self._store.runs(query)

    async def get(self, principal: Principal, run_id: str) -> RunRow:
        """A run of the caller's project.

        :raises Fault: ``not_found``, or ``gone`` for one past its retention.
        """
        return await self.row(run_id, principal.project)

    async def row(self, run_id: str, project: str | None) -> RunRow:
        """A run, of whichever project where none is named; raises like :meth:`get`."""
        row = await self._store.run(run_id, project)
        if row is None:
            raise Fault("not_found", "There is no run of this id here.")
        if row.swept:
            raise Fault("gone", "This run has ended so long ago that its content is deleted.")
        return row

    async def tasks(self, principal: Principal, run_id: str) -> list[TaskRow]:
        """One authoritative record a task."""
        await self.get(principal, run_id)
        rows = await self._store.run_tasks(run_id)
        tries = {(row.task, row.attempt): row for row in rows}
        best = authoritative(Task(*row[1:]) for row in rows)  # type: ignore[arg-type]
        return [tries[(task.task, task.attempt)] for task in best]

    # commands

    async def cancel(self, principal: Principal, run_id: str, reason: str | None = None) -> RunRow:
        """Ask for the end; asking twice is asking once."""
        return await self._command(principal, run_id, lambda run: commands.cancel(run, reason))

    async def pause(self, principal: Principal, run_id: str) -> RunRow:
        """Pause at once, or at the border of the step under way."""
        row = await self._command(principal, run_id, commands.pause)
        if row.standing.status in ("running", "waiting"):
            await self._store.set_pausing(run_id, True)
            self.hub.publish(run_id, ())  # its worker may be between two tries of a node
            row = await self._command(principal, run_id, commands.pause)  # it may wait now
        return row

    async def resume(self, principal: Principal, run_id: str) -> RunRow:
        """Let a paused run go on, or take back a pause that has not come about."""
        row = await self.get(principal, run_id)
        if row.pausing:
            await self._store.set_pausing(run_id, False)
            row = await self.get(principal, run_id)
            if row.standing.status in ("running", "waiting"):
                return row
        by = principal.key_name
        return await self._command(principal, run_id, lambda run: commands.resume(run, by))

    async def answer(
        self, principal: Principal, run_id: str, interrupt_id: str, given: Answer
    ) -> RunRow:
        """Answer an open question; the first answer wins."""
        check, by = self.bench.check, principal.key_name

        def answered(run: Run) -> tuple[Draft, ...]:
            at = self.ledger.clock.wall()
            return commands.answer(run, interrupt_id, given, by, check, at)

        return await self._command(principal, run_id, answered)

    async def top_up(
        self, principal: Principal, run_id: str, added: Mapping[str, Any], key: str | None
    ) -> RunRow:
        """Add to a run's budget."""
        by = principal.key_name
        return await self._command(
            principal, run_id, lambda run: commands.top_up(run, added, by, key)
        )

    async def delete(self, principal: Principal, run_id: str) -> None:
        """Delete a run that has ended, with all its events.

        :raises Fault: ``conflict`` for one that has not, or whose result another run still needs.
        """
        row = await self.get(principal, run_id)
        if row.standing.status not in ENDED:
            raise Fault("conflict", "The run has not ended. Cancel it first, then delete it.")
        parent = None if row.birth.parent is None else await self._store.run(row.birth.parent)
        if parent is not None and parent.standing.status not in ENDED:
            text = f"The run {parent.birth.id}, whose tool call this one is, has not ended."
            raise Fault("conflict", text)
        await self._store.delete_run(run_id)

    async def _command(self, principal: Principal, run_id: str, command: Command) -> RunRow:
        await self.get(principal, run_id)
        try:
            await self.ledger.command(run_id, command)
        except Lost:
            raise Fault("not_found", "There is no run of this id here.") from None
        self.supervisor.nudge()
        return await self.get(principal, run_id)


def _same(row: RunRow, digest: bytes | None) -> RunRow:
    """``row``, if it is what the request with this digest asks for.

    :raises Fault: ``idempotency_mismatch``.
    """
    if row.birth.digest != digest:
        raise Fault(
            "idempotency_mismatch",
            "This Idempotency-Key was used for another request. Use a new key.",
        )
    return row
