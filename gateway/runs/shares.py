"""Who may use what is left of a run's budget, where several work for it at once. Pure.

A child run holds a share from its intent to its result, so nothing is given away twice; what it has
not used comes back with the result. Who finds nothing left but what children hold waits for them.
Seconds are not shared: they pass for all at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gateway.runs.asking import CHILDREN, child_reference
from gateway.runs.budget import Used, gauges, least, rest
from gateway.runs.judge import find_tool
from gateway.runs.spec import NO_BUDGET, Budget
from gateway.runs.state import Call, Run, Thread


def holding(run: Run) -> list[Call]:
    """The calls whose child runs are not over."""
    return [call for call in run.calls.values() if call.has_child]


def spoken_for(run: Run) -> Used:
    """What is used, or held by children who may use it yet."""
    used = run.used
    for call in holding(run):
        share = call.share
        used = replace(
            used,
            nano=used.nano + (share.nano or 0),
            input_tokens=used.input_tokens + (share.tokens or 0),
            tool_calls=used.tool_calls + (share.tool_calls or 0),
        )
    return used


def held_up(run: Run, but: tuple[str, ...] = ()) -> bool:
    """Whether there would be more, of another budget than ``but``, if no child held it."""
    used_up = {gauge.which for gauge in gauges(run.budget, run.used) if gauge.exhausted}
    gone = {gauge.which for gauge in gauges(run.budget, spoken_for(run)) if gauge.exhausted}
    return bool(gone - used_up - set(but))


def share(run: Run, call: Call) -> Budget:
    """What the child run of ``call``, whose intent is just written, may use: an equal part beside
    all that are about to begin or that talk meanwhile, and no more than its own budget."""
    free, beside = rest(run.budget, spoken_for(run)), beginning(run)
    own = _thread(call)
    asking = {_thread(one) for one in beside if _is_child(run, one)}
    at_rest = {own, *asking, *map(_thread, holding(run))}
    takers = 1 + sum(_is_child(run, one) for one in beside) + len(run.threads.keys() - at_rest)

    def part(amount: int | None) -> int | None:
        return None if amount is None else -(-max(0, amount) // takers)

    calls = None if free.tool_calls is None else free.tool_calls - len(beside)
    equal = Budget(part(free.nano), part(free.tokens), part(calls), free.seconds)
    reference = child_reference(run.spec.find(call.agent), call.name)
    return least(run.spec.budget_of(reference), equal)


def beginning(run: Run) -> list[Call]:
    """The calls that nothing stands against but a budget, in the order in which they were asked."""
    return [call for thread in run.threads.values() for call in _next(run, thread)]


def admitted(run: Run, ready: list[Call]) -> list[Call]:
    """Those of a conversation's calls that the budgets allow. What has begun before costs no
    further call."""
    if run.budget == NO_BUDGET:
        return ready
    waiting = beginning(run)
    if held_up(run, ("tool_calls",)):
        waiting = [call for call in waiting if not _is_child(run, call)]
    room = rest(run.budget, spoken_for(run)).tool_calls
    may_begin = {call.call_id for call in waiting[: None if room is None else room]}
    return [call for call in ready if call.tries or call.call_id in may_begin]


def may_begin(run: Run, call_id: str) -> bool:
    """Whether a call that was admitted a moment ago is so still: what began meanwhile counts, and
    nothing begins in a run that is to be cancelled."""
    return run.status == "running" and bool(admitted(run, [run.calls[call_id]]))


def _next(run: Run, thread: Thread) -> Iterator[Call]:
    asked = run.asked(thread)
    fresh = [call for call in asked if call.phase in ("new", "granted") and not call.tries]
    if run.spec.find(thread.agent).parallel_tools:
        yield from fresh
    elif not any(call.phase == "running" for call in asked):
        yield from fresh[:1]


def _is_child(run: Run, call: Call) -> bool:
    tool = find_tool(run, call)
    return tool is not None and tool.kind in CHILDREN


def _thread(call: Call) -> str:
    return call.step.rpartition("/")[0]
