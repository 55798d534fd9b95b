"""A new run that branches off an old one: what had happened until then, with something changed.

The events up to the branch are copied and cost nothing again. What was under way or asked there
is not taken over: the new run does it, or asks it, anew. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from adapters.canonical.parts import Text
from adapters.canonical.plain import plain
from adapters.canonical.record import record
from adapters.canonical.request import Message
from gateway.runs.events import Draft, Event
from gateway.runs.fold import fold
from gateway.runs.spec import AgentSpec, RunSpec
from gateway.runs.state import Run

LEFT_OUT = ("run.", "budget.", "message.delta", "reasoning.delta", "tool.progress")
"""Beginnings of types that belong to the old run alone."""

RESULTS = frozenset({"tool.completed", "tool.failed", "tool.skipped"})
QUESTIONS = frozenset({"approval.requested", "input.requested", "tool.in_doubt"})


@record(frozen=True, slots=True)
class Changes:
    """What is different in the new run. ``model`` and ``instructions`` are of the agent that
    speaks at the branch; ``results`` are contents by call id."""

    model: str | None = None
    instructions: str | None = None
    input: tuple[Message, ...] | None = None
    results: Mapping[str, tuple[Text, ...]] | None = None


class NotThere(Exception):
    """A change of something that has not happened before the branch; the text says what."""


def fork(events: Sequence[Event], seq: int, changes: Changes) -> tuple[RunSpec, tuple[Draft, ...]]:
    """The new run's spec, and the events that it begins with.

    :param events: all of the old run's.
    :param seq: the last one that the new run shares; a turn and its calls are not torn apart.
    :raises NotThere: a changed result is of no call that had one, or a later turn has seen it.
    """
    events = events[: _border(events, seq)]
    run = fold(events)
    unknown = [name for name in changes.results or () if not _has_result(run, name)]
    if unknown:
        raise NotThere(f"the call {unknown[0]!r} had no result before the branch")
    seen = _turn_after(events, changes.results or {})
    if seen is not None:
        raise NotThere(f"the turn at event {seen} has seen the old result; fork from before it")
    kept = [event for event in events[1:] if _kept(run, event)]
    return _spec(run, changes), tuple(_copy(event, changes) for event in kept)


def _border(events: Sequence[Event], seq: int) -> int:
    """How many events the new run shares: a turn's end and the calls that it asks for are one."""
    while seq < len(events) and events[seq].type == "tool.requested":
        seq += 1
    return seq


def _has_result(run: Run, call_id: str) -> bool:
    call = run.calls.get(call_id)
    return call is not None and call.outcome is not None


def _turn_after(events: Sequence[Event], results: Mapping[str, object]) -> int | None:
    """The first turn that was told a result which is to be another."""
    told = False
    for event in events:
        if event.type in RESULTS:
            told = told or event.data["call_id"] in results
        elif told and event.type == "model.started":
            return event.seq
    return None


def _kept(run: Run, event: Event) -> bool:
    """Whether ``event`` is over and done with at the branch."""
    if event.type.startswith(LEFT_OUT):
        return False
    if event.type in QUESTIONS:
        return not run.interrupts[event.data["interrupt_id"]].open
    if event.type == "tool.intent":
        return run.calls[event.data["call_id"]].phase == "done"
    return not any(thread.open == event.step for thread in run.threads.values())


def _copy(event: Event, changes: Changes) -> Draft:
    data = dict(event.data)
    if "usage" in data:
        data |= {"usage": None, "cost_nano": 0}
    changed = (changes.results or {}).get(data.get("call_id", ""))
    type = event.type
    if changed is not None and type in RESULTS:
        type, data = "tool.completed", {"call_id": data["call_id"], "content": plain(changed)}
    return Draft(type, data, event.step, event.agent)


def _spec(run: Run, changes: Changes) -> RunSpec:
    spec = run.spec
    speaking = {thread.agent for thread in run.threads.values()}
    agents = tuple(
        _agent(agent, changes) if agent.name in speaking else agent for agent in spec.agents
    )
    return replace(
        spec,
        agents=agents,
        input=spec.input if changes.input is None else changes.input,
        parent=None,
        depth=0,
    )


def _agent(agent: AgentSpec, changes: Changes) -> AgentSpec:
    if changes.model is not None:
        agent = replace(agent, model=changes.model)
    if changes.instructions is not None:
        agent = replace(agent, instructions=changes.instructions, prompt=None)
    return agent
