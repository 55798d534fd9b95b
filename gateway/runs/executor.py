"""Carries out one run while it holds the claim: decide, act, write, decide again.

What is decided is pure and stands elsewhere. Here are the tasks under way, at most one for each
turn and call, and their ends: at a border, at a cancel, at the loss of the claim. No task outlives
its executor but one that will not stop; that one is handed over, and nothing it does is heard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.plain import plain
from gateway.runs.actions import (
    AskModel,
    Effect,
    Emit,
    Halt,
    Keep,
    LookAgain,
    LookUpTools,
    MakeCall,
    Stop,
)
from gateway.runs.asking import child_spec, flow_spec
from gateway.runs.bench import Bench
from gateway.runs.deciders import decide
from gateway.runs.ending import unmade
from gateway.runs.events import Draft, draft
from gateway.runs.hub import Feed
from gateway.runs.ledger import Tape, patiently
from gateway.runs.recovery import Spent, recovered
from gateway.runs.spec import AgentSpec
from gateway.runs.state import Run
from gateway.runs.status import ENDED
from gateway.runs.toolcall import Children, ToolCalls
from gateway.runs.turn import Turn
from gateway.store.runs import AgentRow, Birth
from gateway.tools.base import ToolSpec

log = logging.getLogger("gateway.runs")

GRACE = 5.0
"""Seconds in which a cancelled tool or turn has to end before it is given up."""


class Executor:
    """One claimed run.

    :param abandon: takes tasks that did not end within the grace time, and keeps them.
    """

    def __init__(
        self,
        bench: Bench,
        tape: Tape,
        birth: Birth,
        children: Children,
        abandon: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self.tape = tape
        self.draining = False
        self.grace = GRACE
        self._bench = bench
        self._birth = birth
        self._children = children
        self._abandon = abandon
        self._calls = ToolCalls(bench, tape, birth.key_id, birth.project)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[str, Turn] = {}
        self._feed = Feed()
        self._flag = asyncio.Event()
        self._alarm: float | None = None

    async def run(self, *, orphaned: bool) -> None:
        """Work until the run ends, waits, is paused, or is to be released.

        :param orphaned: it was claimed from a worker that is gone.
        :raises Lost: the claim is another's.
        :raises Fault: ``store_unavailable``: the run is left as it stands.
        """
        with self._bench.hub.following(self.tape.run.id) as (self._feed, self._flag):
            try:
                await self._begin(orphaned=orphaned)
                while await self._step():
                    pass
            finally:
                await self._stop_tasks()

    def wake(self) -> None:
        """Something may have changed: look."""
        self._flag.set()

    # the loop

    async def _begin(self, *, orphaned: bool) -> None:
        run = self.tape.run
        if run.status == "waiting" and run.children:
            await self.tape.propose([draft("run.resumed", by="child")])
        elif run.under_way or (orphaned and run.started and run.status == "running"):
            spent = {step: await self._spent(step) for step in self._open_steps()}
            await self.tape.record([recovered(run, spent)])
        if not self.tape.run.started and self.tape.run.status in ("queued", "running"):
            await self.tape.propose([draft("run.started")])

    async def _step(self) -> bool:
        """One decision and what it asks for; whether there is more to come."""
        await self._hear()
        clock, run = self._bench.ledger.clock, self.tape.run
        at = clock.wall()
        if run.status in ENDED:
            return False
        decision = decide(run, at, self._bench.check)
        emits = [action for action in decision if isinstance(action, Emit)]
        if emits:
            drafts = [d for emit in emits for d in emit.drafts]
            await patiently(clock, lambda: self.tape.propose(drafts, at, run.seq))
        elif any(isinstance(action, Halt) for action in decision):
            await self._halt()
        elif stops := [action for action in decision if isinstance(action, Stop)]:
            await self._halt([name for stop in stops for name in stop.threads])
        else:
            self._alarm = next((a.at for a in decision if isinstance(a, LookAgain)), None)
            return await self._act([a for a in decision if isinstance(a, Effect)])
        return True

    async def _act(self, effects: list[Effect]) -> bool:
        """Begin what is not under way yet, then wait for anything to happen."""
        fresh = [effect for effect in effects if effect.key not in self._tasks]
        if fresh and not self.draining and not await self._pausing():
            for effect in fresh:
                self._start(effect)
        if not self._tasks:
            waits = self.tape.run.status == "waiting"
            goes_on = bool(effects) or self._alarm is not None
            if self.draining or not (goes_on or waits):
                return False
            if effects or await self._pausing():  # it could go on, or may soon, and is not to
                await self.tape.propose([draft("run.paused")])
                return False
            if not goes_on:
                return False
        await self._wait()
        return True

    async def _pausing(self) -> bool:
        ledger = self._bench.ledger
        row = await patiently(ledger.clock, lambda: ledger.store.run(self.tape.run.id))
        return row is not None and row.pausing

    async def _wait(self) -> None:
        """Until a task is done, somebody else has written, or the time is up."""
        flag = asyncio.ensure_future(self._flag.wait())
        try:
            await asyncio.wait(
                [flag, *self._tasks.values()],
                timeout=self._seconds_left(),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            flag.cancel()
        for key in [key for key, task in self._tasks.items() if task.done()]:
            task = self._tasks.pop(key)
            self._turns.pop(key, None)
            task.result()

    async def _hear(self) -> None:
        """Take in what others have written. First the flag is cleared, then the books are read, so
        that no news falls between; what is known to be one's own need not be read."""
        if self._flag.is_set():
            self._flag.clear()
            if self._feed.foreign or self._feed.latest != self.tape.run.seq:
                self._feed.foreign = False
                await patiently(self._bench.ledger.clock, self.tape.catch_up)

    def _seconds_left(self) -> float | None:
        """Until the run's time is up, or a decider wants to look again."""
        run, now = self.tape.run, self._bench.ledger.clock.wall()
        ends = [] if self._alarm is None else [self._alarm - now]
        if run.budget.seconds is not None:
            ends.append(run.budget.seconds - run.seconds(now))
        return max(0.0, min(ends)) + 0.001 if ends else None

    # effects

    def _start(self, effect: Effect) -> None:
        work: Coroutine[Any, Any, None]
        match effect:
            case AskModel(step=step):
                turn = Turn(self._bench, self.tape, self._birth.key_id, step)
                self._turns[effect.key] = turn
                work = turn.make()
            case MakeCall(call_id=call_id):
                work = self._calls.make(call_id, self._children)
            case LookUpTools(agent=name, thread=thread):
                work = self._introduce(name, thread)
            case Keep():
                work = self._keep(effect)
        task = asyncio.get_running_loop().create_task(work, name=f"{self.tape.run.id}:{effect.key}")
        self._tasks[effect.key] = task

    async def _keep(self, effect: Keep) -> None:
        """Store a definition, and say which version it is."""
        version = await patiently(self._bench.ledger.clock, lambda: self._version(effect))
        await self.tape.record(effect.told(version))

    async def _version(self, effect: Keep) -> int:
        """The version as which a definition is stored, now or before a crash."""
        store, project = self._bench.ledger.store, self._birth.project
        version: int | None = None
        while version is None:
            newest = await store.agent(project, effect.name, None)
            last = 0 if newest is None else newest.version
            version = await self._kept_as(effect, last)
            now = self._bench.ledger.clock.wall()
            row = AgentRow(project, effect.name, last + 1, now, effect.spec)
            if version is None and await store.put_agent(row):
                version = row.version
        return version

    async def _kept_as(self, effect: Keep, last: int) -> int | None:
        """The version as which a definition is there already."""
        since = last - 1 if effect.since is None else effect.since
        for version in range(last, since, -1):
            row = await self._bench.ledger.store.agent(self._birth.project, effect.name, version)
            if row is not None and not row.deleted and row.spec == effect.spec:
                return version
        return None

    async def _introduce(self, name: str, thread: str | None) -> None:
        """Write down which tools an agent has now."""
        agent = self.tape.run.spec.find(name)
        tools, missing = await self._tools(agent)
        told: dict[str, Any] = {"tools": [_shown(tool) for tool in tools]}
        if missing:
            told["missing"] = missing
        step = None if thread is None else f"{thread}/0"
        started = draft("agent.started", agent=name, step=step, **told)
        # Meanwhile the node that this conversation was of may have ended.
        await self.tape.record(
            lambda now: [started] if thread is None or thread in now.threads else []
        )

    async def _tools(self, agent: AgentSpec) -> tuple[list[ToolSpec], list[str]]:
        """What the agent can use now, each once, and what it was given that is not to be had."""
        registry = self._bench.tools()
        await registry.ready([name for name in agent.tools if ":" not in name])
        found: dict[str, ToolSpec] = {tool.name: tool for tool in agent.client_tools}
        missing = []
        for name in agent.tools:
            if ":" in name:
                child = self._child(name)
                found.setdefault(child.name, child)
                continue
            try:
                specs = registry.specs([name])
            except Fault:
                specs = []
            usable = [s for s in specs if self._bench.may_use(self._birth.key_id, s.name)]
            for spec in usable:
                found.setdefault(spec.name, spec)
            if not usable:
                missing.append(name)
        return list(found.values()), missing

    def _child(self, reference: str) -> ToolSpec:
        """The tool that an agent or a workflow is."""
        spec = self.tape.run.spec
        flow = spec.flow(reference)
        if flow is not None:
            return flow_spec(reference, flow)
        return child_spec(reference, spec.find(reference.partition(":")[2]).description)

    # the ends of tasks

    async def _halt(self, threads: Collection[str] | None = None) -> None:
        """Stop what is under way, kindly and then for good, and write down how it stood: in these
        threads, or everything."""

        def meant(step: str) -> bool:
            return threads is None or step.rpartition("/")[0] in threads

        for call in self.tape.run.calls.values():
            if call.has_child and meant(call.step):  # else somebody may take up what is let go
                await self._children.cancel(str(call.child))
        await self._stop_tasks(meant)
        await patiently(self._bench.ledger.clock, self.tape.catch_up)
        run = self.tape.run
        steps = [
            step for step in self._open_steps() if meant(step) and f"model:{step}" in self._turns
        ]
        drafts = [await self._turns.pop(f"model:{step}").cut() for step in steps]
        for call in run.calls.values():
            if call.has_child and meant(call.step):
                drafts.append(await self._children.end(call))
            elif call.phase == "running" and meant(call.step):
                drafts.append(unmade(call))
        await self.tape.record(lambda now: [one for one in drafts if _unsettled(now, one)])

    async def _stop_tasks(self, meant: Callable[[str], bool] = lambda step: True) -> None:
        keys = [key for key in self._tasks if meant(self._step_of(key))]
        tasks = [self._tasks.pop(key) for key in keys]
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        done, left = await asyncio.wait(tasks, timeout=self.grace)
        for task in done:
            if not task.cancelled() and task.exception() is not None:
                log.info("run %s: %r at its end", self.tape.run.id, task.exception())
        for task in left:
            log.warning("run %s: %s does not stop; it is given up", *task.get_name().split(":", 1))
            self._abandon(task)

    def _step_of(self, key: str) -> str:
        """The step that a task belongs to."""
        kind, _, name = key.partition(":")
        return self.tape.run.calls[name].step if kind == "call" else name

    def _open_steps(self) -> list[str]:
        return [t.open for t in self.tape.run.threads.values() if t.open is not None]

    async def _spent(self, step: str) -> Spent:
        """What the calls of a cut turn have used, by their rows."""
        events = await self._bench.ledger.read(self.tape.run.id, 0, leave_out=_NOT_ASKED)
        ids = [e.data["request_id"] for e in events if e.type == "model.started" and e.step == step]
        used = await self._bench.ledger.store.calls_usage(ids)
        usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        return Spent(usage, used.cost_nano)


_NOT_ASKED = ("message.delta", "reasoning.delta", "tool.progress", "tool.completed")
"""Types that need not be read to find the requests of a turn."""


def _unsettled(run: Run, end: Draft) -> bool:
    """Whether what ``end`` is to settle is open still: the end that its task was writing when it
    was stopped may have come into the books."""
    call_id = end.data.get("call_id")
    if call_id is not None:
        return run.calls[call_id].phase != "done"
    return any(thread.open == end.step for thread in run.threads.values())


def _shown(tool: ToolSpec) -> dict[str, Any]:
    return {**plain(tool), "schema_hash": tool.schema_hash}
