"""The tries of a conversation: send, follow the answer, prove it, COMMIT.

What all tries have in common (order, books, what follows a failure) is in :mod:`.trying`. Must
not know HTTP, nor what the vendors' JSON looks like.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from adapters.canonical.events import Failed, Finished
from adapters.canonical.faults import Fault
from adapters.canonical.stage import Pipe, Stage, prompt_sink
from adapters.registry import DIALECTS
from gateway.flow.books import Books, Try
from gateway.flow.context import Call, CallSink, Outcome, Prepared
from gateway.flow.count import Counted
from gateway.flow.freeform import Freeform, freeform
from gateway.flow.memory import Remember
from gateway.flow.prepare import prepare
from gateway.flow.prove import Promise, Proof, Unwrap, promise
from gateway.flow.repair import Repairs
from gateway.flow.restore import Restore
from gateway.flow.seals import Watch
from gateway.flow.stops import Stops
from gateway.flow.trying import Trying
from gateway.routing.plan import Plan
from gateway.routing.retry import Decision
from gateway.settings.snapshot import Target
from gateway.store.seals import Seal

log = logging.getLogger("gateway.flow")


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


class _Attempting(Trying):
    """The attempts of one conversation's call, in order."""

    def __init__(
        self, call: Call, route: Plan, counted: Counted, sink: CallSink, books: Books
    ) -> None:
        super().__init__(call, route, books)
        self._promise = promise(call)
        self._repairs = Repairs(call, counted)
        self._sink = sink

    def _prepare(self, target: Target) -> Prepared:
        call = self._call
        return prepare(
            self._repairs.asked,
            target,
            call.alias,
            makers=call.runtime.memory.makers,
            strict=call.strict,
            verify=call.verifies,
        )

    def _pipe(self, one: Try, watch: Watch) -> list[Stage]:
        """The stages of the attempt, in the design's order; the gate is always last."""
        call = self._call
        stages: list[Stage] = [one.meter, watch]
        if call.request.origin == "openai-chat":
            # before anything is put back: sealed reasoning returns to its maker as it was made
            stages.append(Remember(call.runtime.memory, call.principal.project))
        if one.prepared.stops:
            stages.append(Stops(one.prepared.stops))
        names = freeform(call.request)
        if names:
            stages.append(Freeform(names))
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

    async def _perform(self, one: Try) -> Fault | None:
        call, deployment = self._call, one.prepared.target.deployment
        same = call.request.origin == deployment.provider.dialect
        untouched = call.restores is None and not one.prepared.stops
        only_passed_on = not (call.proves or call.holds or freeform(call.request))
        watch = Watch(call.runtime.memory.makers, one.prepared.target)
        self._sink.use(self._head(one))
        one.pumped = await call.runtime.adapters[deployment.provider.name].pump(
            one.prepared.encoded.call,
            decoder=DIALECTS[deployment.provider.dialect].decoder(
                verbatim=same and untouched,
                skims=only_passed_on and prompt_sink(self._sink) is not None,
            ),
            pipe=Pipe(self._pipe(one, watch)),
            sink=self._sink,
            timeouts=self._timeouts(one.prepared),
            marks=one.marks,
        )
        if watch.seen:
            await self._write_down(watch.seen)
        terminal = one.pumped.terminal
        if isinstance(terminal, Failed):
            terminal.fault.deployment = deployment.name
            return terminal.fault
        self._sink.use(self._head(one, "ok"))
        held = one.gate.release()
        if held:
            await self._sink.send(held)
        return None

    async def _write_down(self, seals: Sequence[Seal]) -> None:
        """Let the makers of ``seals`` be known after a restart. An answer is not lost for that."""
        runtime = self._call.runtime
        try:
            await runtime.store.keep_seals(seals, runtime.clock.wall())
        except Fault as fault:
            log.warning(
                "request %s: who sealed its reasoning is known until a restart only: %s",
                self._call.id,
                fault.message,
            )

    def _terminal(self, one: Try) -> Finished:
        assert one.pumped is not None
        assert isinstance(one.pumped.terminal, Finished)
        return one.pumped.terminal

    def _moved_on(self) -> None:
        self._repairs.start_over()

    def _reask(self, one: Try, fault: Fault, now: float) -> Decision | None:
        """Ask the same target again, where it answered and the answer did not pass."""
        tries = self._tries
        if fault.row.again != "reask" or one.gate.committed or not tries.room(now):
            return None
        decision = self._repairs.after(one)
        if decision is not None:
            tries.chain.append(fault)
        return decision
