"""Try, retry, fail over, commit: the attempts of one call, each with its own row.

Each try reserves and opens its row before the request leaves, and settles it before anyone
hears of its end (promise 8). What follows a failure is decided by ``routing.retry`` alone.
Must not know HTTP, nor what the vendors' JSON looks like.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from adapters.canonical.events import Failed, Finished
from adapters.canonical.faults import Fault
from adapters.canonical.stage import Pipe, Stage
from adapters.registry import DIALECTS
from adapters.wire.call import Timeouts
from gateway.flow.books import Books, Try
from gateway.flow.context import AttemptNote, Call, CallSink, Head, Outcome, Prepared
from gateway.flow.count import Counted
from gateway.flow.gate import Gate
from gateway.flow.memory import Remember
from gateway.flow.prepare import prepare
from gateway.flow.prove import Promise, Proof, Unwrap, promise
from gateway.flow.record import Meter
from gateway.flow.repair import Repairs
from gateway.flow.restore import Restore
from gateway.routing.plan import Plan
from gateway.routing.retry import Attempts, Decision, failure

NEXT = {"again": "retry", "next": "failover", "repair": "repair", "more_room": "more_room"}
"""What a decision makes of the next try: its kind in the ledger."""


async def attempt(
    call: Call, route: Plan, counted: Counted, sink: CallSink, books: Books | None = None
) -> Outcome:
    """Try the route's targets until one answers, or nothing is left that may be tried.

    The outcome is settled in the ledger; its terminal has not been sent.

    :param books: the call's entries in the ledger, where it is a part of a greater one.

    :raises Fault: for a schema that no answer could be held against.
    :raises asyncio.CancelledError: when the caller has left, after settling what was used.
    """
    books = Books(call, route) if books is None else books
    return await _Attempting(call, route, counted, sink, books).run()


class _Attempting:
    """The attempts of one call, in order."""

    __slots__ = ("_books", "_call", "_notes", "_promise", "_repairs", "_route", "_sink", "_tries")

    def __init__(
        self, call: Call, route: Plan, counted: Counted, sink: CallSink, books: Books
    ) -> None:
        runtime = call.runtime
        self._call = call
        self._route = route
        self._promise = promise(call)
        self._repairs = Repairs(call, counted)
        self._sink = sink
        self._tries = Attempts(call.alias, route.targets, call.started, runtime.random.random)
        self._books = books
        self._notes: list[AttemptNote] = []

    async def run(self) -> Outcome:
        """The whole call. A caller may leave at any moment, between two attempts too: then
        the call's own row is closed here, if the attempt under way has not closed it."""
        try:
            return await self._all()
        except asyncio.CancelledError:
            await self._books.left(len(self._notes), self._tries.chain)
            raise

    async def _all(self) -> Outcome:
        kind = "first"
        while True:
            outcome, decision = await self._one(kind)
            if outcome is not None:
                return outcome
            if decision.delay > 0:
                await asyncio.sleep(decision.delay)
            kind = NEXT[decision.action]
            if kind == "failover":
                self._repairs.start_over()

    async def _one(self, kind: str) -> tuple[Outcome | None, Decision]:
        """One try: the outcome if the call has ended with it, and else what to do next."""
        call, tries = self._call, self._tries
        candidate = tries.candidate
        breakers, now = call.runtime.breakers, call.runtime.clock.monotonic()
        admission = breakers.admit(candidate.name, now, forced=candidate.forced)
        if admission == "open":
            return await self._skip(Fault("no_deployment", f"{candidate.name} is resting."))
        probe = admission == "probe"
        try:
            prepared = prepare(
                self._repairs.asked,
                candidate.target,
                call.alias.context,
                strict=call.strict,
                verify=call.verifies,
            )
            number = tries.begin()
            one = await self._books.open(kind, number, prepared, self._stages())
        except Fault as refusal:
            self._books.unprobe(candidate.name, refusal, probe=probe)
            if refusal.kind == "unsupported":
                return await self._skip(refusal)
            return await self._refused(refusal), Decision("stop")
        if probe:
            self._books.probing(one)
        try:
            fault = await self._pump(one)
        except asyncio.CancelledError:
            await self._books.cancelled(one, tries.chain)
            raise
        return await self._ended(one, fault)

    def _stages(self) -> tuple[Meter, Gate]:
        return Meter(self._call.runtime.clock.monotonic), Gate(hold_all=self._call.holds)

    def _pipe(self, one: Try) -> list[Stage]:
        """The stages of the attempt, in the design's order; the gate is always last."""
        call = self._call
        stages: list[Stage] = [one.meter]
        if call.request.origin == "openai-chat":
            # before anything is put back: sealed reasoning returns to its maker as it was made
            stages.append(Remember(call.runtime.memory, call.principal.project))
        if call.restores is not None:
            stages.append(Restore(call.restores, call.request))
        if self._promise is not None:
            stages += self._proving(one, self._promise)
        stages.append(one.gate)
        return stages

    def _proving(self, one: Try, promised: Promise) -> list[Stage]:
        """What holds the answer against the promise. Behind the meter, which counts what the
        provider sent, and behind whatever restores redacted text."""
        asked = one.prepared.asked
        one.proof = Proof(promised, asked, self._call.verifies)
        if asked is None or asked.tool is None:
            return [one.proof]
        return [Unwrap(asked.tool), one.proof]

    async def _pump(self, one: Try) -> Fault | None:
        """Carry the attempt to its end; its fault, or ``None`` if the answer is whole."""
        call, deployment = self._call, one.prepared.target.deployment
        same = call.request.origin == deployment.provider.dialect and call.restores is None
        self._sink.use(self._head(one))
        one.pumped = await call.runtime.adapters[deployment.provider.name].pump(
            one.prepared.encoded.call,
            decoder=DIALECTS[deployment.provider.dialect].decoder(verbatim=same),
            pipe=Pipe(self._pipe(one)),
            sink=self._sink,
            timeouts=self._timeouts(one.prepared),
            marks=one.marks,
        )
        terminal = one.pumped.terminal
        if isinstance(terminal, Failed):
            terminal.fault.deployment = deployment.name
            return terminal.fault
        self._sink.use(self._head(one, "ok"))
        held = one.gate.release()
        if held:
            await self._sink.send(held)
        return None

    def _timeouts(self, prepared: Prepared) -> Timeouts:
        """The target's time-outs, none longer than what is left of the call's deadline."""
        timeouts = prepared.target.timeouts
        left = self._tries.remaining(self._call.runtime.clock.monotonic())
        return timeouts if timeouts.total <= left else replace(timeouts, total=left)

    async def _ended(self, one: Try, fault: Fault | None) -> tuple[Outcome | None, Decision]:
        """Settle the row, then give the outcome or the next step."""
        tries, now = self._tries, self._call.runtime.clock.monotonic()
        self._notes.append(AttemptNote(one.deployment, "ok" if fault is None else fault.kind))
        if fault is None:
            assert one.pumped is not None
            cost = await self._books.settle(one, None, tries.chain, last=True)
            return self._outcome(one, one.pumped.terminal, cost), Decision("stop")
        committed = one.gate.committed
        decision = self._reask(one, fault, now) or tries.after(fault, now, committed=committed)
        last = decision.action == "stop"
        cost = await self._books.settle(one, fault, tries.chain, last=last)
        if not last:
            return None, decision
        shown = fault if committed else failure(tries.chain)
        return self._outcome(one, Failed(shown), cost), decision

    def _reask(self, one: Try, fault: Fault, now: float) -> Decision | None:
        """Ask the same target again, where it answered and the answer did not pass."""
        tries = self._tries
        if fault.row.again != "reask" or one.gate.committed or not tries.room(now):
            return None
        decision = self._repairs.after(one)
        if decision is not None:
            tries.chain.append(fault)
        return decision

    def _outcome(self, one: Try, terminal: Finished | Failed, cost: int | None) -> Outcome:
        return Outcome(
            terminal=terminal,
            committed=one.gate.committed,
            head=self._head(one),
            usage=one.meter.usage,
            deployment=one.prepared.target.deployment,
            first_content_at=one.meter.first_content,
            model=one.meter.model,
            cost_nano=cost,
            considered=self._route.considered,
            verdict=None if one.proof is None else one.proof.told(),
        )

    def _head(self, one: Try, outcome: str | None = None) -> Head:
        """What the headers may say of ``one``: nothing of those before but how they ended."""
        notes = tuple(self._notes)
        if outcome is not None:
            notes = (*notes, AttemptNote(one.deployment, outcome))
        elif not notes or len(notes) < one.number:
            notes = (*notes, AttemptNote(one.deployment, "streaming"))
        return Head(
            attempts=notes,
            dropped=(*self._call.dropped, *one.prepared.dropped),
            adjusted=one.prepared.adjusted,
            mended=() if one.proof is None else tuple(map(str, one.proof.changes)),
            trimmed=one.prepared.trimmed,
            rates=one.rates,
        )

    async def _skip(self, fault: Fault) -> tuple[Outcome | None, Decision]:
        """Nothing was sent to the candidate: go on, or end with why it could not be."""
        decision = self._tries.skip(self._call.runtime.clock.monotonic())
        if decision.action == "stop":
            return await self._refused(fault), decision
        return None, decision

    async def _refused(self, fault: Fault) -> Outcome:
        """The end of a call whose last target never saw it: the first cause speaks."""
        chain = self._tries.chain
        shown = failure(chain) if chain else fault
        await self._books.refused(shown, len(self._notes))
        return Outcome(
            terminal=Failed(shown),
            committed=False,
            head=Head(
                attempts=tuple(self._notes),
                dropped=self._call.dropped,
                rates=await self._books.rates(),
            ),
            considered=self._route.considered,
        )
