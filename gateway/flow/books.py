"""The ledger's side of an attempt: reserve and open before, settle after, exactly once.

Also tells the breaker, the latency averages and the metrics how it ended, so that whoever
counts attempts counts the same ones. Must not know why a next attempt follows.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter

from adapters.canonical.events import Finished
from adapters.canonical.faults import Fault
from gateway.flow.context import Call, Prepared
from gateway.flow.gate import Gate
from gateway.flow.meter import Meter
from gateway.flow.record import Try, settlement, total_told
from gateway.flow.shielded import shielded
from gateway.flow.tracing import OPERATIONS, UNTRACED, begin_try, end_try
from gateway.observe.metrics import AttemptEnd
from gateway.observe.traces import NO_SPAN
from gateway.routing.breaker import Admission
from gateway.routing.plan import Candidate, Plan
from gateway.store.base import (
    AttemptRow,
    Opening,
    Rates,
    RequestEnd,
    RequestRow,
    Settlement,
)

LEASE_MARGIN = 60.0
"""Seconds that a reservation outlives its attempt's longest time, before it counts as lost."""

ACCIDENT = "The gateway made a mistake."

GONE = "The caller closed the connection before the answer was complete."

_TOLD = (
    "ttft_ms",
    "total_ms",
    "fault",
    "cost_nano",
    "usage_source",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
)
_told = itemgetter(*map(Settlement._fields.index, _TOLD))
"""What of a settlement the averages and the metrics are told."""


class Books:
    """One call's entries in the ledger. ``gone`` is why an attempt is cancelled, if one is."""

    __slots__ = ("_call", "_closed", "_opened", "_route", "_under_way", "gone")

    def __init__(self, call: Call, route: Plan) -> None:
        self._call = call
        self._route = route
        self._opened = False
        self._closed = False
        self._under_way: Try | None = None
        self.gone = GONE

    async def open(self, kind: str, number: int, prepared: Prepared) -> Try:
        """Reserve and open the row; committed when this returns.

        :raises Fault: ``rate_limited``, ``budget_exceeded`` or ``store_unavailable``.
        """
        call = self._call
        runtime, target = call.runtime, prepared.target
        clock = runtime.clock
        meter, gate = Meter(clock.monotonic), Gate(hold_all=call.holds)
        marks, name = {"opened": clock.monotonic()}, target.deployment.name
        one = Try(clock.new_id("att_"), number, kind, name, prepared, meter, gate, marks)
        if runtime.tracer.makes_spans or call.trace is not UNTRACED:
            self._begin_span(one)
        request = None if self._opened else request_row(call, self._route)
        row = self._row(one)
        lease, principal = row.at + target.timeouts.total + LEASE_MARGIN, call.principal
        opening = Opening(request, row, principal.key_id, principal.limits, lease)
        try:
            one.rates = await runtime.store.open_attempt(opening)
        except BaseException:
            one.span.end("refused")
            raise
        self._opened = True
        self._under_way = one
        runtime.leases.add(one.id, lease)
        marks["reserved"] = clock.monotonic()
        return one

    def _begin_span(self, one: Try) -> None:
        """The try's span; its context goes with the request."""
        call, prepared = self._call, one.prepared
        operation = OPERATIONS[call.alias.kind]
        deployment = prepared.target.deployment
        tracer = call.runtime.tracer
        one.span, context = begin_try(
            tracer, call.trace, operation, deployment, one.number, one.kind
        )
        if context is None:
            return
        wire = prepared.encoded.call
        wire = replace(wire, headers={**wire.headers, "traceparent": context.header()})
        one.prepared = replace(prepared, encoded=replace(prepared.encoded, call=wire))

    def _row(self, one: Try) -> AttemptRow:
        call, prepared = self._call, one.prepared
        deployment = prepared.target.deployment
        provider, price = deployment.provider, deployment.facts.price
        return AttemptRow(
            one.id,
            call.id,
            one.number,
            one.kind,  # type: ignore[arg-type]
            call.runtime.clock.wall(),
            provider.name,
            deployment.model,
            provider.dialect,
            prepared.estimated_input,
            prepared.tokens,
            prepared.nano,
            "" if price is None else price.date,
        )

    def settle(
        self, one: Try, fault: Fault | None, chain: Sequence[Fault], *, last: bool
    ) -> Future[None]:
        """Settle the row and, with the call's last one, the call; done when it is committed.

        Goes on to its end although the caller be cancelled meanwhile.
        """
        call = self._call
        runtime = call.runtime
        now = runtime.clock.monotonic()
        settled = settlement(call, one, fault, chain, now, last=last)
        one.nano = settled.cost_nano
        self._under_way = None
        if last:
            self._closed = True
        self._tell(one, fault, settled, now)
        runtime.leases.discard(one.id)
        return runtime.store.settle_attempt(settled)

    async def cancelled(self, one: Try, chain: Sequence[Fault]) -> None:
        """The caller left: a proven end stays a success (case A04), anything else is a cancel.
        What had not been sent by then costs nothing."""
        fault = None
        if not isinstance(one.meter.terminal, Finished):
            billed = None if "sent" in one.marks else False
            fault = Fault("cancelled", self.gone, billed=billed)
        with suppress(Fault):  # the store owes the row; a cancellation stays a cancellation
            await self.settle(one, fault, chain, last=True)

    def _tell(self, one: Try, fault: Fault | None, settled: Settlement, now: float) -> None:
        call, name = self._call, one.deployment
        runtime, alias, deployment = call.runtime, call.alias, one.prepared.target.deployment
        self._record(name, fault, now, probe=one.probe)
        first, total, kind, nano, source, given, made, read, written = _told(settled)
        if fault is None or fault.trips == "yes":
            taken = first
            if first is None and fault is None:
                taken = total  # vectors, and what ends well without content
            runtime.stats.observe(name, now, None if taken is None else taken / 1000)
        if source != "provider":
            given = made = read = written = None  # the metrics count a provider's own numbers only
        runtime.metrics.attempt_ended(
            AttemptEnd(
                alias.name,
                OPERATIONS[alias.kind],
                deployment.provider.name,
                deployment.model,
                one.kind,
                kind or "",
                (total or 0.0) / 1000,
                given,
                made,
                read,
                written,
                nano,
            )
        )
        if one.span is not NO_SPAN:
            end_try(one.span, settled)

    def admit(self, candidate: Candidate) -> Admission:
        """May a try go to ``candidate`` now? ``probe`` was taken by asking."""
        runtime = self._call.runtime
        if not runtime.breakers.tripped:
            return "closed"
        now = runtime.clock.monotonic()
        return runtime.breakers.admit(candidate.name, now, forced=candidate.forced)

    def probing(self, one: Try) -> None:
        """``one`` is a half-open breaker's probe. Its first content closes the breaker for
        everybody: a long stream need not end first."""
        one.probe = True

        def answered() -> None:
            one.probe = False
            self._record(one.deployment, None, self._call.runtime.clock.monotonic(), probe=True)

        one.meter.on_first_content = answered

    def _record(self, name: str, fault: Fault | None, now: float, *, probe: bool) -> None:
        call = self._call
        call.runtime.breakers.record(name, call.alias.breaker, now, fault=fault, probe=probe)

    def unprobe(self, name: str, *, probe: bool) -> None:
        """Give back a probe that was taken for a try which never left."""
        if probe:
            now = self._call.runtime.clock.monotonic()
            self._record(name, Fault("cancelled", self.gone), now, probe=True)

    async def refused(self, fault: Fault, attempts: int) -> None:
        """Write down a call that ends without a further attempt."""
        self._closed = True
        now = self._call.runtime.clock.monotonic()
        end = RequestEnd(
            status="cancelled" if fault.kind == "cancelled" else "failed",
            http_status=fault.status,
            fault=fault.kind,
            first_cause=fault.kind,
            attempts=attempts,
            timings=total_told(now - self._call.started),
        )
        await self.close(end)

    async def close(self, end: RequestEnd) -> None:
        """End the call's row outside of any attempt, written if it is not there yet."""
        row = request_row(self._call, self._route)
        await shielded(self._call.runtime.store.record_refusal(row, end))

    async def rates(self) -> Rates:
        """Where the key's rate limits stand, for an answer to a call that took nothing; nothing
        is told where the store can't say."""
        principal = self._call.principal
        if principal.limits.rpm is None and principal.limits.tpm is None:
            return {}
        runtime = self._call.runtime
        now = runtime.clock.wall()
        with suppress(Fault):
            return await runtime.store.rates(principal.key_id, principal.limits, now)
        return {}

    async def broken(self, error: Exception, attempts: int, chain: Sequence[Fault]) -> None:
        """The call ends by an accident: a mistake of ours, or a store that went away. What is
        under way is settled and the call closed, as soon as the store can."""
        fault = error if isinstance(error, Fault) else Fault("internal", ACCIDENT)
        one = self._under_way
        with suppress(Fault):  # the accident is what is told
            if one is not None:
                await self.settle(one, fault, chain, last=True)
            elif not self._closed:
                await self.refused(fault, attempts)

    async def left(self, attempts: int, chain: Sequence[Fault]) -> None:
        """The caller left; close the call, unless its last attempt has."""
        if self._closed:
            return
        gone = Fault("cancelled", self.gone)
        gone.attempts = tuple(chain)
        with suppress(Fault):  # as in `cancelled`
            await self.refused(gone, attempts)


def request_row(call: Call, route: Plan) -> RequestRow:
    """The call's own row."""
    principal, request, prompt = call.principal, call.request, call.prompt
    ref = request.prompt
    return RequestRow(
        call.id,
        call.at,
        principal.project,
        principal.key_id,
        principal.key_name,
        call.alias.name,
        request.origin,
        request.stream,
        call.runtime.snapshot.hash,
        call.end_user,
        call.parent,
        prompt.reference if prompt is not None else None if ref is None else ref.id,
        None if prompt is None else prompt.hash,
        call.trace.id,
        route.told,
    )
