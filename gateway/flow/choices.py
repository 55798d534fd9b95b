"""Several choices from providers that give one answer a call: as many calls side by side.

All of them are one call in the ledger: its request row, its rate limit, its deadline. Each
choice retries and fails over by itself, with its own attempts of kind ``choice``; every choice
has reserved its tokens and money before the first one leaves. One that fails for good ends the
answer: the others are stopped and settled.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from adapters.canonical.events import Failed, Finished
from adapters.canonical.faults import Fault
from adapters.canonical.request import Request
from adapters.registry import DIALECTS
from gateway.flow.attempt import attempt
from gateway.flow.books import ACCIDENT, Books
from gateway.flow.context import Call, CallSink, Outcome, Prepared
from gateway.flow.count import Counted
from gateway.flow.merge import ChoiceSink, Merged, one_end, summed
from gateway.flow.record import Try, total_told
from gateway.flow.shielded import shielded
from gateway.flow.stops import own_stops
from gateway.routing.breaker import Admission
from gateway.routing.plan import Candidate, Plan
from gateway.settings.snapshot import Deployment
from gateway.store.base import AttemptRow, RequestEnd, Status

STOPPED = "Another choice of the same answer has failed."


def in_parallel(call: Call, route: Plan) -> bool:
    """Whether several choices are wanted that not every target of the route gives at once."""
    several = (call.request.sampling.n or 1) > 1
    return several and not all(
        _gives_several(c.target.deployment, call.request) for c in route.targets
    )


def _gives_several(deployment: Deployment, request: Request) -> bool:
    """Both the model and its provider's protocol must have choices, and stop them by themselves:
    where the gateway does that, the end of one answer is the end of its call."""
    mapped = DIALECTS[deployment.provider.dialect].FIELDS["sampling.n"].state == "mapped"
    return mapped and deployment.facts.can("n") and not own_stops(request, deployment)[1]


async def choices(call: Call, route: Plan, counted: Counted, sink: CallSink) -> Outcome:
    """As many calls as choices are wanted, at the same time, as one answer.

    :raises asyncio.CancelledError: when the caller has left, after settling what was used.
    """
    return await _Choices(call, route, sink).run(counted.size)


class _Choices:
    """The choices of one call."""

    def __init__(self, call: Call, route: Plan, sink: CallSink) -> None:
        self._call = call
        self._count = call.request.sampling.n or 1
        self._shared = _Shared(call, route, self._count)
        self._merged = Merged(sink, hold=call.holds)

    async def run(self, size: int) -> Outcome:
        """All of them to their end, or to the first failure."""
        request = self._call.request
        alone = replace(request, sampling=replace(request.sampling, n=None))
        part = replace(self._call, request=alone)
        counted = Counted(alone, size)
        tasks = [
            asyncio.create_task(self._one(part, counted, number)) for number in range(self._count)
        ]
        try:
            outcomes = await self._gathered(tasks)
            return await self._ended(outcomes)
        except asyncio.CancelledError:
            await _stop(tasks)
            fault = None if _all_well(tasks) else Fault("cancelled", self._shared.gone)
            await self._shared.close(fault, committed=self._merged.committed)
            raise
        except Exception as error:
            self._shared.gone = STOPPED
            await _stop(tasks)
            await self._shared.broken(error, committed=self._merged.committed)
            raise

    async def _one(self, part: Call, counted: Counted, number: int) -> Outcome:
        books = _PartBooks(part, self._shared)
        sink = ChoiceSink(self._merged, number)
        return await attempt(part, self._shared.route, counted, sink, books)

    async def _gathered(self, tasks: Sequence[asyncio.Task[Outcome]]) -> list[Outcome]:
        """The outcomes in the choices' order; a failed one alone where one has failed."""
        waiting = set(tasks)
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                outcome = task.result()
                if outcome.failed:
                    self._shared.gone = STOPPED
                    await _stop(tasks)
                    return [outcome]
        return [task.result() for task in tasks]

    async def _ended(self, outcomes: Sequence[Outcome]) -> Outcome:
        """One outcome for all, the call's row closed with it."""
        first = outcomes[0]
        if isinstance(first.terminal, Failed):
            await self._shared.close(first.terminal.fault, committed=self._merged.committed)
            return replace(first, head=self._merged.head)
        usage = summed([outcome.usage for outcome in outcomes])
        await self._merged.release(usage)
        await self._shared.close(None, committed=True)
        costs = [outcome.cost_nano for outcome in outcomes]
        starts = [o.first_content_at for o in outcomes if o.first_content_at is not None]
        return replace(
            first,
            terminal=one_end([o.terminal for o in outcomes if isinstance(o.terminal, Finished)]),
            head=self._merged.head,
            usage=usage,
            first_content_at=min(starts, default=None),
            cost_nano=None if None in costs else sum(cost for cost in costs if cost is not None),
            verdict=_worst(outcomes),
        )


def _worst(outcomes: Sequence[Outcome]) -> Mapping[str, Any] | None:
    """The verdict on all choices: the first that is not valid speaks for them."""
    verdicts = [outcome.verdict for outcome in outcomes if outcome.verdict is not None]
    return next((told for told in verdicts if told["valid"] is False), next(iter(verdicts), None))


def _all_well(tasks: Sequence[asyncio.Task[Outcome]]) -> bool:
    """Whether every choice had come to a good end already."""
    return not any(t.cancelled() or t.exception() or t.result().failed for t in tasks)


async def _stop(tasks: Sequence[asyncio.Task[Outcome]]) -> None:
    """Cancel what still runs and wait until it is settled."""
    for task in tasks:
        task.cancel()
    await shielded(_settled(tasks))


async def _settled(tasks: Sequence[asyncio.Task[Outcome]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


class _Shared:
    """What the choices have in common in the ledger: one request row, one numbering."""

    def __init__(self, call: Call, route: Plan, count: int) -> None:
        self._call = call
        self.route = route
        self.numbers = itertools.count(1)
        self.opened = False
        self.opening = asyncio.Lock()
        self.made = 0
        self.waiting = count
        self.all_reserved = asyncio.Event()
        self.probes: set[str] = set()
        """Deployments that one of the choices has found resting, and is probing."""
        self.first_cause: str | None = None
        self.gone = Books(call, route).gone

    def reserved(self) -> None:
        """One more choice has reserved what it may use."""
        self.waiting -= 1
        if self.waiting == 0:
            self.all_reserved.set()

    async def broken(self, error: Exception, *, committed: bool) -> None:
        """Close the request's row after an accident in one of the choices."""
        fault = error if isinstance(error, Fault) else Fault("internal", ACCIDENT)
        with suppress(Fault):  # as in `Books.broken`
            await self.close(fault, committed=committed)

    async def close(self, fault: Fault | None, *, committed: bool) -> None:
        """Close the request's row: the end of all choices together."""
        total = self._call.runtime.clock.monotonic() - self._call.started
        end = RequestEnd(
            status=_status(fault, committed),
            http_status=200 if fault is None else fault.status,
            fault=None if fault is None else fault.kind,
            first_cause=self.first_cause if fault is None else fault.kind,
            attempts=self.made,
            timings=total_told(total),
        )
        await Books(self._call, self.route).close(end)


def _status(fault: Fault | None, committed: bool) -> Status:
    if fault is None:
        return "completed"
    if committed:
        return "partial"
    return "cancelled" if fault.kind == "cancelled" else "failed"


class _PartBooks(Books):
    """The entries of one choice. The request's row is the others' too, so it is closed by
    whoever runs them all."""

    __slots__ = ("_reserved", "_shared")

    def __init__(self, call: Call, shared: _Shared) -> None:
        super().__init__(call, shared.route)
        self._shared = shared
        self._reserved = False

    async def open(self, kind: str, number: int, prepared: Prepared) -> Try:
        shared = self._shared
        async with shared.opening:
            self._opened = shared.opened
            one = await super().open(kind, number, prepared)
            shared.opened = True
            shared.made += 1
        if not self._reserved:
            self._reserved = True
            shared.reserved()
            try:
                await shared.all_reserved.wait()
            except asyncio.CancelledError:
                await self.cancelled(one, ())
                raise
        return one

    def admit(self, candidate: Candidate) -> Admission:
        """The choices of a call are one probe: they go together, or none could be whole."""
        name, probes = candidate.name, self._shared.probes
        admission = super().admit(candidate)
        if admission == "probe":
            probes.add(name)
        return "closed" if admission == "open" and name in probes else admission

    def _record(self, name: str, fault: Fault | None, now: float, *, probe: bool) -> None:
        if probe:
            self._shared.probes.discard(name)
        super()._record(name, fault, now, probe=probe)

    def _row(self, one: Try) -> AttemptRow:
        number = next(self._shared.numbers)
        kind = "choice" if one.kind == "first" and number > 1 else one.kind
        return super()._row(one)._replace(number=number, kind=kind)  # type: ignore[arg-type]

    def settle(
        self, one: Try, fault: Fault | None, chain: Sequence[Fault], *, last: bool
    ) -> asyncio.Future[None]:
        if fault is not None and self._shared.first_cause is None:
            self._shared.first_cause = fault.kind
        return super().settle(one, fault, chain, last=False)

    async def cancelled(self, one: Try, chain: Sequence[Fault]) -> None:
        self.gone = self._shared.gone
        await super().cancelled(one, chain)

    async def refused(self, fault: Fault, attempts: int) -> None:
        """Left to whoever runs all choices."""

    async def left(self, attempts: int, chain: Sequence[Fault]) -> None:
        """Left to whoever runs all choices."""
