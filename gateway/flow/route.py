"""From a call to the plan of its attempts, written down where there is none."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from adapters.canonical.facts import needs
from adapters.wire.names import caller_name
from gateway.flow.books import Books
from gateway.flow.context import Call
from gateway.flow.count import Counted
from gateway.routing.plan import Ask, Plan
from gateway.settings.snapshot import Target


def listed(call: Call, counted: Counted) -> Plan | None:
    """The targets to try as most calls get them: all of the alias's, in their order. ``None``
    where some choosing has to be done."""
    alias = call.alias
    if not counted.surely_fits(alias.narrowest):
        return None
    return call.runtime.router.listed(alias, needs(call.request, counted.kinds))


def route(call: Call, counted: Counted) -> Coroutine[Any, Any, Plan]:
    """The targets to try, best first.

    :raises Fault: ``no_deployment``, ``unsupported`` or ``context_overflow`` where no target
        can take the call; the ledger then says so.
    """

    def misfit(target: Target) -> str | None:
        return counted.misfit(target, call.alias.context)

    targets = call.alias.targets
    priced = call.alias.strategy == "cheapest"
    facts = targets[0].deployment.facts
    ask = Ask(
        needs=needs(call.request, counted.kinds),
        fits=None if counted.surely_fits(call.alias.narrowest) else misfit,
        input_tokens=counted.estimate(facts).tokens if priced else 0,
        output_tokens=counted.output(facts) if priced else 0,
    )
    return planned_for(call, ask)


async def planned_for(call: Call, ask: Ask) -> Plan:
    """The targets for what ``call`` asks, best first; raises as :func:`route` does."""
    runtime = call.runtime
    now = runtime.clock.monotonic()
    planned = runtime.router.plan(call.alias, ask, now)
    if planned.fault is not None:
        param = planned.fault.param
        planned.fault.param = param and caller_name(call.request.origin, param)
        await Books(call, planned).refused(planned.fault, 0)
        raise planned.fault
    return planned
