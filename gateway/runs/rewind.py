"""A run's tape played again: without provider and tools, it must give the same events. Pure.

What came from outside (what models, tools and people said, and when) is on the tape. What was
decided is decided again from it, and held against the tape. So a tape that can't be played is a
mistake in the deciders, or one that somebody has changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapters.canonical.record import record
from adapters.wire.json import dumps
from gateway.runs.actions import AskModel, Decision, Effect, Emit, LookUpTools, MakeCall
from gateway.runs.arguments import Check
from gateway.runs.deciders import decide
from gateway.runs.events import Draft, Event
from gateway.runs.fold import evolve
from gateway.runs.judge import find_tool
from gateway.runs.shares import may_begin
from gateway.runs.state import Run
from gateway.runs.status import Illegal

DECIDED = frozenset(
    {
        "run.waiting",
        "run.completed",
        "run.incomplete",
        "run.cancelled",
        "agent.handoff",
        "node.skipped",
        "tool.in_doubt",
        "budget.threshold",
        "contract.violated",
    }
)
"""Types that nobody but a decider writes."""

ACTED = frozenset({"model.started", "tool.intent", "agent.started"})
"""Types that a worker writes when it begins what a decider has asked for."""


@record(frozen=True, slots=True)
class Difference:
    """Where a tape does not say what must follow."""

    seq: int
    found: str
    expected: str

    def __str__(self) -> str:
        return f"event {self.seq} is {self.found}; what follows is {self.expected}"


def replay(events: Sequence[Event], check: Check) -> Difference | None:
    """Play a whole tape; the first event that does not follow from those before it."""
    run: Run | None = None
    due: tuple[Draft, ...] = ()
    asked: set[str] = set()
    given = 1 + (_copied(events[0]) if events else 0)
    for event in events:
        if run is not None and event.seq > given:
            begun = bool(due)
            if not begun:
                decision = decide(run, event.at, check)
                due = tuple(d for one in decision if isinstance(one, Emit) for d in one.drafts)
                asked |= _effects(decision)
                if event.at > run.at:  # a worker had decided at once, before a node's time was up
                    asked |= _effects(decide(run, run.at, check))
            if due and _same(due[0], event):
                due = due[1:]
            elif begun or not _from_outside(run, event, asked):
                return Difference(event.seq, event.type, due[0].type if due else "nothing")
            else:
                due = ()
        try:
            run = evolve(run, event)
        except Illegal as error:
            return Difference(event.seq, event.type, f"impossible: {error}")
    return None if not due else Difference(events[-1].seq + 1, "missing", due[0].type)


def _effects(decision: Decision) -> set[str]:
    return {one.key for one in decision if isinstance(one, Effect)}


def _copied(created: Event) -> int:
    """How many events a fork has taken over from another run."""
    origin = created.data.get("forked_from") or {}
    return int(origin.get("copied", 0))


def _same(draft: Draft, event: Event) -> bool:
    told = (event.type, event.step, event.agent, dumps(event.data))
    return (draft.type, draft.step, draft.agent, dumps(draft.data)) == told


def _from_outside(run: Run, event: Event, asked: set[str]) -> bool:
    """Whether ``event`` may have come from a model, a tool, a person or a worker.

    :param asked: the effects that a decider has asked for, and whose beginning is not written yet.
    """
    if event.type in DECIDED:
        return False
    if event.type == "run.failed":  # else only where the gateway itself has failed
        return bool(event.data["reason"] == "internal")
    if event.type == "approval.requested":  # else only where a tool has changed under the run
        call = run.calls.get(event.data.get("call_id", ""))
        tool = None if call is None else find_tool(run, call)
        return tool is not None and tool.schema_hash != event.data["schema_hash"]
    return event.type not in ACTED or _wanted(run, event, asked)


def _wanted(run: Run, event: Event, asked: set[str]) -> bool:
    """Whether a decider has asked for what ``event`` begins; a turn may begin again by itself.

    Another conversation may have written between the decision and the beginning, so what was asked
    for in an earlier state counts, once.
    """
    if any(thread.open == event.step for thread in run.threads.values()):
        return True
    found = _effect(event).key in asked
    asked.discard(_effect(event).key)
    return found and (event.type != "tool.intent" or may_begin(run, event.data["call_id"]))


def _effect(event: Event) -> Effect:
    """What ``event``, one of :data:`ACTED`, is the beginning of."""
    match event.type:
        case "model.started":
            return AskModel(str(event.step))
        case "tool.intent":
            return MakeCall(event.data["call_id"])
        case _:
            thread = None if event.step is None else event.step.rpartition("/")[0]
            return LookUpTools(str(event.agent), thread)
