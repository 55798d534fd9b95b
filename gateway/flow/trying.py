"""Try, retry, fail over: the tries of one call, each with its own row.

Each try reserves and opens its row before the request leaves, and settles it before anyone
hears of its end (promise 8). What follows a failure is decided by ``routing.retry`` alone.
Must not know what a try does: that is its subclasses' matter.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from adapters.canonical.events import Failed, Terminal
from adapters.canonical.faults import Fault
from adapters.wire.call import Timeouts
from gateway.flow.books import Books
from gateway.flow.context import AttemptNote, Call, Head, Outcome, Prepared
from gateway.flow.echo import without_echo
from gateway.flow.record import Try
from gateway.routing.plan import Candidate, Plan
from gateway.routing.retry import Attempts, Decision, failure
from gateway.settings.snapshot import Target

NEARLY_ALL = 1.0
"""Seconds of a target's ``total`` that may be gone before its try begins. Deadline and ``total``
are equal by default: a call that used up both was kept waiting by the provider."""

NEXT = {"again": "retry", "next": "failover", "repair": "repair", "more_room": "more_room"}
"""What a decision makes of the next try: its kind in the ledger."""

DONE = Decision("stop")


class Trying(ABC):
    """The tries of one call, in order."""

    _notes: tuple[AttemptNote, ...] = ()
    """How the tries so far have ended."""

    def __init__(self, call: Call, route: Plan, books: Books) -> None:
        self._call = call
        self._books = books
        self._tries = Attempts(call.alias, route.targets, call.started, call.runtime.random.random)

    # what a try is

    @abstractmethod
    def _prepare(self, target: Target) -> Prepared:
        """The request as ``target`` takes it.

        :raises Fault: ``unsupported`` where this target can't, any other where none can.
        """

    @abstractmethod
    async def _perform(self, one: Try) -> Fault | None:
        """Carry the try to its end; its fault, or ``None`` if the answer is whole, which then is
        in ``one.pumped``."""

    @abstractmethod
    def _moved_on(self) -> None:
        """The next try goes to another target."""

    def _reask(self, one: Try, fault: Fault, now: float) -> Decision | None:
        """Whether to ask the same target again because of what it answered, and how."""
        return None

    # the order of things

    async def run(self) -> Outcome:
        """The whole call. A caller may leave at any moment, between two attempts too, and an
        accident may happen: then the call's own row is closed here, if nothing else has."""
        kind = "first"
        try:
            while True:
                outcome, decision = await self._one(kind)
                if outcome is not None:
                    return outcome
                if decision.delay > 0:
                    await asyncio.sleep(decision.delay)
                kind = NEXT[decision.action]
                if kind == "failover":
                    self._moved_on()
        except asyncio.CancelledError:
            await self._books.left(len(self._notes), self._tries.chain)
            raise
        except Exception as error:
            await self._books.broken(error, len(self._notes), self._tries.chain)
            raise

    async def _one(self, kind: str) -> tuple[Outcome | None, Decision]:
        """One try: the outcome if the call has ended with it, and else what to do next."""
        tries = self._tries
        candidate = tries.candidate
        admission = self._books.admit(candidate)
        if admission == "open":
            return await self._skip(self._resting(candidate))
        probe = admission == "probe"
        try:
            prepared = self._prepare(candidate.target)
            number = tries.begin()
            one = await self._books.open(kind, number, prepared)
        except asyncio.CancelledError:
            self._books.unprobe(candidate.name, probe=probe)
            raise
        except Fault as refusal:
            self._books.unprobe(candidate.name, probe=probe)
            if refusal.kind == "unsupported":
                return await self._skip(refusal)
            return await self._refused(refusal), DONE
        if probe:
            self._books.probing(one)
        try:
            fault = await self._perform(one)
        except asyncio.CancelledError:
            await self._books.cancelled(one, tries.chain)
            raise
        if fault is not None:
            return await self._failed(one, fault)
        assert one.pumped is not None
        head = self._head(one, "ok") if one.head is None else one.head
        self._notes = head.attempts
        await self._books.settle(one, None, tries.chain, last=True)
        return self._outcome(one, one.pumped.terminal, head), DONE

    def _timeouts(self, prepared: Prepared) -> Timeouts:
        """The target's time-outs, none longer than what is left of the call's deadline."""
        own = prepared.target.timeouts
        left = self._tries.deadline_at - self._call.runtime.clock.monotonic()
        if left >= own.total:
            return own
        return Timeouts(own.connect, own.first_event, own.between_events, max(left, 0.0))

    async def _failed(self, one: Try, fault: Fault) -> tuple[Outcome | None, Decision]:
        """Settle the row, then give the outcome or the next step."""
        tries = self._tries
        if fault.phase == "total":
            fault = self._out_of_time(one, fault)
        head = self._head(one, fault.kind)
        self._notes = head.attempts
        if fault.detail is not None:
            fault.detail = without_echo(fault.detail, one.prepared.encoded.call.body)
        committed = one.gate.committed
        now = self._call.runtime.clock.monotonic()
        decision = self._reask(one, fault, now) or tries.after(fault, now, committed=committed)
        last = decision.action == "stop"
        one.pause = decision.delay
        await self._books.settle(one, fault, tries.chain, last=last)
        if not last:
            return None, decision
        shown = fault if committed else failure(tries.chain)
        return self._outcome(one, Failed(shown), head), decision

    def _out_of_time(self, one: Try, fault: Fault) -> Fault:
        """A time-out that was the call's: the deadline had left the try less than the time that
        is the provider's, so nothing speaks against the provider."""
        left = self._tries.deadline_at - one.marks["opened"]
        if left > one.prepared.target.timeouts.total - NEARLY_ALL:
            return fault
        return Fault(
            "deadline",
            f"No answer was complete within this model's deadline ({self._call.alias.deadline:g} "
            "s), over all tries.",
            deployment=fault.deployment,
            upstream_status=fault.upstream_status,
            upstream_request_id=fault.upstream_request_id,
            billed=fault.billed,
        )

    def _resting(self, candidate: Candidate) -> Fault:
        """Its breaker has opened, or another call has begun to probe it, since the plan."""
        runtime = self._call.runtime
        return Fault(
            "no_deployment",
            f"{candidate.name} has failed lately, and another call is finding out whether it works "
            "again.",
            retry_after=runtime.breakers.wait(candidate.name, runtime.clock.monotonic()),
        )

    async def _skip(self, fault: Fault) -> tuple[Outcome | None, Decision]:
        """Nothing was sent to the candidate: go on, or end with why it could not be."""
        decision = self._tries.skip(self._call.runtime.clock.monotonic())
        if decision.action == "stop":
            return await self._refused(fault), decision
        return None, decision

    # what is told of it

    def _outcome(self, one: Try, terminal: Terminal, head: Head) -> Outcome:
        return Outcome(
            terminal,
            one.gate.committed,
            head,
            one.meter.usage,
            one.prepared.target.deployment,
            one.meter.model,
            one.meter.first_content,
            one.nano,
            None if one.proof is None else one.proof.told(),
        )

    def _head(self, one: Try, outcome: str) -> Head:
        """What the headers may say of ``one``: nothing of those before but how they ended."""
        return Head(
            (*self._notes, AttemptNote(one.deployment, outcome)),
            self._call.dropped + one.prepared.dropped,
            one.prepared.adjusted,
            one.prepared.trimmed,
            () if one.proof is None else tuple(map(str, one.proof.changes)),
            one.rates,
        )

    async def _refused(self, fault: Fault) -> Outcome:
        """The end of a call whose last target never saw it: the first cause speaks."""
        chain = self._tries.chain
        shown = failure(chain) if chain else fault
        await self._books.refused(shown, len(self._notes))
        return Outcome(
            terminal=Failed(shown),
            committed=False,
            head=Head(
                attempts=self._notes,
                dropped=self._call.dropped,
                rates=await self._books.rates(),
            ),
        )
