"""The one place where a run's events are written, and read back.

Written means committed: whoever is told of an event can rely on it. Each writer holds the state
that its next events are based on; if somebody else has written meanwhile, nothing is written, the
writer learns what happened, and thinks again. So ``seq`` has no gap, a state is never skipped,
and a command and a worker can't both win. Must not know what the events are about.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from adapters.canonical.clock import Clock
from adapters.canonical.faults import Fault
from adapters.wire.json import dumps, loads
from gateway.runs.events import DELTAS, Draft, Event, written
from gateway.runs.fold import evolve, fold
from gateway.runs.hub import Hub
from gateway.runs.standing import event_row, standing, task_row
from gateway.runs.state import Run
from gateway.runs.status import ENDED, Illegal
from gateway.runs.tasks import changes
from gateway.store.base import Store
from gateway.store.runs import Addition, Birth, EventRow, RunRow, TaskRow

log = logging.getLogger("gateway.runs")

T = TypeVar("T")

PAGE = 1_000
"""Events read at once."""
PATIENCE = 10.0
"""Seconds for which a fact is tried again while the store can't be written."""
PAUSE = 0.25

Command = Callable[[Run], Sequence[Draft]]
"""What to write, seen from a state; nothing if all is as it should be. May raise a fault."""

Facts = Sequence[Draft] | Callable[[Run], Sequence[Draft]]
"""What has happened; or what is told of it in the state in which it is written, if anything."""


class Lost(Exception):
    """The claim is another worker's now, or the run is gone: stop, and touch nothing more."""


class Ledger:
    """Runs in the books, for everybody in this process.

    :param ttl: seconds that a run may be idle, read at each use.
    """

    def __init__(self, store: Store, clock: Clock, hub: Hub, ttl: Callable[[], float]) -> None:
        self.store = store
        self.clock = clock
        self.hub = hub
        self.ttl = ttl

    async def create(
        self,
        birth: Birth,
        drafts: Sequence[Draft],
        owner: str | None = None,
        lease_until: float | None = None,
    ) -> RunRow | None:
        """Write a run with its first events.

        :returns: the run that was made under the same idempotency key (or id) before; ``None``
            if this one is written.
        """
        run: Run | None = None
        events = [
            written(one, birth.id, seq, birth.created_at, 0) for seq, one in enumerate(drafts, 1)
        ]
        tasks: list[TaskRow] = []
        for event in events:
            before, run = run, evolve(run, event)
            tasks += [task_row(birth.id, task) for task in changes(before, run, event)]
        assert run is not None
        rows = [event_row(event) for event in events]
        first = Addition(birth.id, 0, 0, rows, standing(run, self.ttl()), tasks)
        return await self.store.create_run(birth, first, owner, lease_until)

    async def tape(self, run_id: str) -> Tape:
        """The run as it is now, to write on.

        :raises Lost: there is no such run, or its content is past its retention.
        """
        row = await self.store.run(run_id)
        if row is None or row.swept:
            raise Lost(run_id)
        run = fold(await self.read(run_id, 0, leave_out=tuple(DELTAS)))
        run = replace(run, seq=max(run.seq, row.standing.last_seq))
        return Tape(self, run, row.epoch)

    async def read(self, run_id: str, after: int, *, leave_out: Sequence[str] = ()) -> list[Event]:
        """All events beyond ``after``."""
        events: list[Event] = []
        while True:
            rows = await self.store.run_events(run_id, after, PAGE, leave_out=leave_out)
            events += [event_of(row) for row in rows]
            if len(rows) < PAGE:
                return events
            after = rows[-1].seq

    async def command(self, run_id: str, command: Command) -> Run:
        """Carry out a command as one compare-and-set.

        :returns: the run as it is then.
        :raises Fault: what the command raises.
        :raises Lost: there is no such run.
        """
        while True:
            tape = await self.tape(run_id)
            try:
                if await tape.propose(command(tape.run)):
                    return tape.run
            except Lost:
                continue  # a worker has claimed the run in between, or it is gone: look again


class Tape:
    """A run as one writer sees it. Not for two tasks that do not know of each other's writing:
    they share one tape, whose writings are in order."""

    def __init__(self, ledger: Ledger, run: Run, epoch: int) -> None:
        self.run = run
        self.epoch = epoch
        self._ledger = ledger
        self._lock = asyncio.Lock()
        self.commit_seconds = 0.0
        """How long the last commit took: the measure of load."""

    async def propose(
        self, drafts: Sequence[Draft], at: float | None = None, base: int | None = None
    ) -> bool:
        """Write events that were decided on the present state; if that is past, take in what has
        happened, write nothing, and answer ``False``.

        :param base: the ``seq`` of the state that was looked at, where others write on this tape.
        :raises Lost: the claim is lost.
        """
        if not drafts:
            return True
        async with self._lock:
            if base is not None and base != self.run.seq:
                return False
            return await self._write(drafts, at)

    async def record(self, facts: Facts) -> bool:
        """Write facts: whatever else has happened, these have too. ``False`` where the run has
        ended meanwhile and nobody wants them any more, or where nothing is to be told as it stands.

        :raises Lost: the claim is lost.
        :raises Fault: ``store_unavailable``, after some patience.
        """
        if not facts:
            return True
        deadline = self._ledger.clock.monotonic() + PATIENCE
        async with self._lock:
            while self.run.status not in ENDED:
                drafts = facts(self.run) if callable(facts) else facts
                if not drafts:
                    return False
                try:
                    if await self._write(drafts, None):
                        return True
                except Fault:
                    if self._ledger.clock.monotonic() > deadline:
                        raise
                    await asyncio.sleep(PAUSE)
                    if _are(await patiently(self._ledger.clock, self._catch_up), drafts):
                        return True  # it was written after all; only the word of it was lost
        return False

    async def catch_up(self) -> None:
        """Take in what others have written.

        :raises Lost: the claim is lost.
        """
        async with self._lock:
            await self._catch_up()

    async def _write(self, drafts: Sequence[Draft], at: float | None) -> bool:
        ledger, run = self._ledger, self.run
        now = max(run.at, ledger.clock.wall() if at is None else at)
        events, tasks = [], []
        try:
            for seq, one in enumerate(drafts, run.seq + 1):
                event = written(one, run.id, seq, now, self.epoch)
                before, run = run, evolve(run, event)
                tasks += [task_row(run.id, task) for task in changes(before, run, event)]
                events.append(event)
        except Illegal:
            await self._catch_up()
            return False
        stands = (
            None if all(event.type in DELTAS for event in events) else standing(run, ledger.ttl())
        )
        rows = [event_row(event) for event in events]
        began = ledger.clock.monotonic()
        addition = Addition(run.id, self.run.seq, self.epoch, rows, stands, tasks)
        try:
            met = await ledger.store.add_run_events(addition)
        except Fault:
            ledger.hub.wake(run.id)  # they may be written all the same: everybody looks
            raise
        if not met:
            await self._catch_up()
            return False
        self.commit_seconds = ledger.clock.monotonic() - began
        self.run = run
        ledger.hub.publish(run.id, events)
        return True

    async def _catch_up(self) -> list[Event]:
        row = await self._ledger.store.run(self.run.id)
        if row is None or row.epoch != self.epoch or row.swept:
            raise Lost(self.run.id)
        events = await self._ledger.read(self.run.id, self.run.seq)
        for event in events:
            self.run = evolve(self.run, event)
        return events


async def patiently(clock: Clock, work: Callable[[], Awaitable[T]]) -> T:
    """Do ``work``, which reads or writes the books, again while they can't be had for a moment:
    whoever gives up loses what is under way.

    :raises Fault: after :data:`PATIENCE`.
    """
    deadline = clock.monotonic() + PATIENCE
    while True:
        try:
            return await work()
        except Fault:
            if clock.monotonic() > deadline:
                raise
            await asyncio.sleep(PAUSE)


def _are(events: Sequence[Event], drafts: Sequence[Draft]) -> bool:
    """Whether ``events`` begin with what ``drafts`` say."""
    said = [(event.type, dumps(event.data)) for event in events[: len(drafts)]]
    return said == [(one.type, dumps(one.data)) for one in drafts]


def event_of(row: EventRow) -> Event:
    """An event as the books kept it."""
    data: dict[str, Any] = loads(row.data)
    return Event(row.run_id, row.seq, row.type, row.at, row.epoch, row.step, row.agent, data)
