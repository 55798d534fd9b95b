"""The path of every call. Read this first.

HTTP endpoints, runs and workflows all come through here; nothing else talks to a provider.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from adapters.canonical.parts import Thinking, ToolCall
from gateway.flow.attempt import attempt
from gateway.flow.choices import choices, in_parallel
from gateway.flow.context import Call, CallSink, Outcome
from gateway.flow.count import Counted
from gateway.flow.rewrite import is_sent_as_is, rewritten
from gateway.flow.route import listed, route
from gateway.policy.admit import admit

REASONED = {Thinking, ToolCall}
"""The parts of a conversation that has, or had, sealed reasoning in it."""


async def recalled(call: Call) -> Call:
    """The call with the sealed reasoning that its client could not carry, and the makers known of
    whatever is sealed in it."""
    runtime = call.runtime
    request = runtime.memory.recall(call.principal.project, call.request)
    await runtime.memory.makers.learn(request, runtime.store)
    return call if request is call.request else replace(call, request=request)


def complete(call: Call, sink: CallSink) -> Coroutine[Any, Any, Outcome]:
    """Carry ``call`` to an answer. Events go to ``sink``; the terminal comes back unsent, with
    every row of the ledger settled, so that whoever is told of the end can rely on the books.

    :raises Fault: for what is refused before any provider is asked, and is on no bill.
    :raises asyncio.CancelledError: when the caller has left; the books are closed then, too.
    """
    admit(call.principal, call.request, call.alias)
    counted = Counted(call.request, call.size)
    straight = is_sent_as_is(call) and counted.kinds.isdisjoint(REASONED)
    planned = listed(call, counted) if straight else None
    if planned is None or in_parallel(call, planned):
        return _roundabout(call, counted, sink)
    return attempt(call, planned, counted, sink)


async def _roundabout(call: Call, counted: Counted, sink: CallSink) -> Outcome:
    """The path of a call of which something has to be found out, changed or chosen first."""
    if not counted.kinds.isdisjoint(REASONED):
        call = await recalled(call)
    if not is_sent_as_is(call):
        call = await rewritten(call)
    if call.request is not counted.request:
        counted = Counted(call.request, call.size)
    planned = listed(call, counted) or await route(call, counted)
    if in_parallel(call, planned):
        return await choices(call, planned, counted, sink)
    return await attempt(call, planned, counted, sink)
