"""The tries of a conversation: send, follow the answer, prove it, COMMIT.

What all tries have in common (order, books, what follows a failure) is in :mod:`.trying`. Must
not know HTTP, nor what the vendors' JSON looks like.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from adapters.adapter import Way
from adapters.canonical.completion import Completion
from adapters.canonical.events import Failed
from adapters.canonical.faults import Fault
from adapters.canonical.stage import Pipe, Stage, prompt_sink, whole_sink
from adapters.registry import DIALECTS
from gateway.flow.books import Books
from gateway.flow.context import Call, CallSink, Outcome, Prepared
from gateway.flow.count import Counted
from gateway.flow.freeform import Freeform, freeform
from gateway.flow.memory import Remember
from gateway.flow.prepare import prepare
from gateway.flow.prove import Promise, Proof, Unwrap, promise
from gateway.flow.record import Try
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


def attempt(
    call: Call, route: Plan, counted: Counted, sink: CallSink, books: Books | None = None
) -> Coroutine[Any, Any, Outcome]:
    """Try the route's targets until one answers, or nothing is left that may be tried.

    The outcome is settled in the ledger; its terminal has not been sent.

    :param books: the call's entries in the ledger, where it is a part of a greater one.

    :raises Fault: for a schema that no answer could be held against.
    :raises asyncio.CancelledError: when the caller has left, after settling what was used.
    """
    books = Books(call, route) if books is None else books
    return _Attempting(call, route, counted, sink, books).run()


class _Attempting(Trying):
    """The attempts of one conversation's call, in order."""

    _freeform: frozenset[str] = frozenset()
    _repairs: Repairs | None = None
    _watch: Watch | None = None
    """Who has made the seals of the answer under way, once there are any."""

    def __init__(
        self, call: Call, route: Plan, counted: Counted, sink: CallSink, books: Books
    ) -> None:
        super().__init__(call, route, books)
        self._counted = counted
        self._promise = promise(call)
        if self._promise is not None:
            self._repairs = Repairs(call, counted)
        if call.request.tools:
            self._freeform = freeform(call.request)
        self._sink = sink
        self._whole = whole_sink(sink)
        """The sink, if it tells nobody of an attempt before there is an outcome."""

    def _prepare(self, target: Target) -> Prepared:
        call = self._call
        return prepare(
            self._counted if self._repairs is None else self._repairs.asked,
            target,
            call.alias,
            makers=call.runtime.memory.makers,
            strict=call.strict,
            verify=self._promise is not None and call.verifies,
        )

    def _pipe(self, one: Try) -> list[Stage]:
        """The stages of the attempt, in the design's order; the gate is always last."""
        call = self._call
        stages: list[Stage] = [one.meter]
        if one.prepared.stops:
            stages.append(Stops(one.prepared.stops))
        if self._freeform:
            stages.append(Freeform(self._freeform))
        if call.restores is not None:
            stages.append(Restore(call.restores, call.request))
        if self._promise is not None:
            stages += self._proving(one, self._promise)
        stages.append(one.gate)
        return stages

    def _watchers(self) -> list[Stage]:
        """What looks at reasoning before anything is put back: sealed reasoning returns to its
        maker as it was made."""
        call, target = self._call, self._tries.candidate.target
        self._watch = Watch(call.runtime.memory.makers, target)
        if call.request.origin != "openai-chat":
            return [self._watch]
        return [self._watch, Remember(call.runtime.memory, call.principal.project)]

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
        if self._whole is None:
            self._sink.use(self._head(one, "streaming"))
        one.pumped = await call.runtime.adapters[deployment.provider.name].pump(
            one.prepared.encoded.call, self._way(one), self._timeouts(one.prepared), one.marks
        )
        if self._watch is not None and self._watch.seen:
            await self._write_down(self._watch.seen)
        terminal = one.pumped.terminal
        if isinstance(terminal, Failed):
            terminal.fault.deployment = deployment.name
            return terminal.fault
        one.head = self._head(one, "ok")
        self._sink.use(one.head)
        held = one.gate.release()
        if held:
            await self._sink.send(held)
        return None

    def _way(self, one: Try) -> Way:
        """What the answer goes through. Where nothing changes it and nothing judges it, text may
        go through in runs, and an ordinary whole answer in one step."""
        self._watch, one.meter.on_reasoning = None, self._watchers
        call, dialect = self._call, one.prepared.target.deployment.provider.dialect
        same = call.request.origin == dialect
        untouched = call.restores is None and not one.prepared.stops
        if not untouched or self._promise is not None or self._freeform:
            decoder = DIALECTS[dialect].decoder(verbatim=same and untouched)
            return Way(decoder, Pipe(self._pipe(one)), self._sink)
        pipe = Pipe((one.meter, one.gate))
        sink = self._whole
        if sink is None:
            skims = not one.gate.holds_all and prompt_sink(self._sink) is not None
            return Way(DIALECTS[dialect].decoder(verbatim=same, skims=skims), pipe, self._sink)

        def take(answer: Completion) -> None:
            one.meter.take(answer)
            one.gate.committed = True
            sink.take(answer)

        return Way(DIALECTS[dialect].decoder(verbatim=same), pipe, sink, take)

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

    def _moved_on(self) -> None:
        if self._repairs is not None:
            self._repairs.start_over()

    def _reask(self, one: Try, fault: Fault, now: float) -> Decision | None:
        """Ask the same target again, where it answered and the answer did not pass."""
        tries, repairs = self._tries, self._repairs
        if (
            repairs is None
            or fault.row.again != "reask"
            or one.gate.committed
            or not tries.room(now)
        ):
            return None
        decision = repairs.after(one)
        if decision is not None:
            tries.chain.append(fault)
        return decision
