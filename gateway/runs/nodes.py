"""What the events of a workflow's nodes, threads and people change in a run's state. Pure.

The rows of :data:`HANDLERS` are part of those of :mod:`~gateway.runs.fold`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.plain import parsed
from adapters.canonical.request import Message
from gateway.runs.events import Event
from gateway.runs.spec import AgentSpec
from gateway.runs.state import Node, Run, Thread

TEAM = frozenset({"coordinator", "planner", "factory", "publisher", "member"})
"""Kinds of the nodes that are a team's steps."""
PLAN = "plan"
"""The kind of the step in which a team's plan is stored."""
TALKING = frozenset({"call", "agent"}) | TEAM
"""Kinds of nodes that are a conversation; the input of such a node is its messages."""
THREADED = TALKING | {"tool"}
"""Kinds of nodes that have a thread: all that can call a model or a tool."""


def is_agent(name: str | None) -> bool:
    """Whether a name is that of an agent somebody has made, not of one that stands for a single
    call or tool (``call:PATH``, ``tool:PATH``)."""
    return name is not None and ":" not in name


def broken(run: Run, event: Event, failure: Mapping[str, Any]) -> Run:
    """The run after something that its thread can't go on from: of several threads, only one
    ends."""
    name = str(event.step).rpartition("/")[0]
    if run.spec.kind != "workflow":
        return replace(run, failure=failure)
    return run.with_thread(replace(run.threads[name], failure=failure))


def _started(run: Run, event: Event) -> Run:
    data, kind = event.data, event.data["kind"]
    attempt, given = data.get("attempt", 1), data.get("input")
    since, agent = run.used.seconds, event.agent
    node = Node(data["node"], kind, "running", attempt, given, since=since, agent=agent)
    run = run.with_node(node)
    if kind not in THREADED:
        return run
    said = () if given is None or kind not in TALKING else given["messages"]
    messages = tuple(parsed(Message, one) for one in said)
    agent = str(event.agent)
    schema = given.get("output_schema") if given is not None and kind in TALKING else None
    thread = Thread(node.place, agent, messages, first=agent, output_schema=schema)
    return run.with_thread(thread)


def _finished(run: Run, event: Event) -> Run:
    data = event.data
    node = run.nodes[data["node"]]
    over = replace(node, status=data["status"], output=data.get("output"), error=data.get("error"))
    if "retry_after" in data:
        over = replace(over, status="resting", again_at=event.at + data["retry_after"])
    return _closed(run.with_node(over), event, node.place)


def _closed(run: Run, event: Event, place: str) -> Run:
    """Without the threads and the questions of a node that is over: nothing is said there any
    more."""
    run = unasked(run, event, lambda asked: asked.get("node") == event.data["node"])
    left = {
        name: thread
        for name, thread in run.threads.items()
        if name != place and not name.startswith(f"{place}/")
    }
    return replace(run, threads=left)


def _skipped(run: Run, event: Event) -> Run:
    data = event.data
    known = run.nodes.get(data["node"])
    error = data.get("error", {"kind": data["reason"]})
    if known is None:
        return run.with_node(Node(data["node"], data.get("kind", ""), "skipped", error=error))
    return _closed(run.with_node(replace(known, status="skipped", error=error)), event, known.place)


def unasked(run: Run, event: Event, meant: Callable[[Mapping[str, Any]], bool]) -> Run:
    """The run after ``event`` has settled what some questions are about: who answers one of them
    now is late."""
    settled = {
        one.id: replace(one, answer=event) for one in run.open_interrupts() if meant(one.asked)
    }
    return replace(run, interrupts={**run.interrupts, **settled}) if settled else run


def _created(run: Run, event: Event) -> Run:
    """A new agent of a team is there for the rest of the run."""
    made = parsed(AgentSpec, event.data["spec"])
    return replace(run, spec=replace(run.spec, agents=(*run.spec.agents, made)))


def answered(run: Run, event: Event) -> Run:
    """What a person has said to a node is there for it; or that nobody has in time."""
    node = run.nodes.get(event.data.get("node", ""))
    if node is None:
        return run
    default = {"action": event.data.get("default", "expire"), "reason": "nobody answered in time"}
    return run.with_node(replace(node, answer=event.data.get("value", default)))


HANDLERS: Mapping[str, Callable[[Run, Event], Run]] = {
    "node.started": _started,
    "node.finished": _finished,
    "node.skipped": _skipped,
    "agent.created": _created,
}
