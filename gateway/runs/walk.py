"""One look at all nodes of a workflow: what each of them wants done now, collected. Pure.

A walk reads the run's state and writes down drafts, effects, questions and times to look again;
it changes nothing. It goes over the whole graph each time: what is settled says so itself, so a
finished node can't run again. What a kind of node does is in :data:`WORK`, by kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from adapters.canonical.record import record
from gateway.runs.actions import Ask, Effect, Emit, End, Finding, LookAgain
from gateway.runs.agent import Rule, Scene, found
from gateway.runs.arguments import Check
from gateway.runs.binding import Scope, Unbound
from gateway.runs.ending import stopped, unmade
from gateway.runs.events import Draft, draft
from gateway.runs.nodes import is_agent
from gateway.runs.state import Node, Run, Thread
from gateway.runs.workflow_spec import NodeSpec, WorkflowSpec

Error = Mapping[str, Any]


class Result(NamedTuple):
    """How a graph ended: with an output, or with an error."""

    output: Any = None
    error: Error | None = None


@record(frozen=True, slots=True)
class Spot:
    """A node, where it stands in the run, and what it can refer to."""

    node: NodeSpec
    path: str
    scope: Scope


class Work(Protocol):
    """What a kind of node does."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        """All that it needs is there.

        :raises Unbound: but not what it refers to.
        """
        ...

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        """It has begun and is not over."""
        ...


@record(slots=True)
class Walk:
    """What was found. ``ending`` is the end of the whole run, where a node has brought it."""

    run: Run
    at: float
    check: Check
    work: Mapping[str, Work]
    drafts: list[Draft] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    alarms: list[float] = field(default_factory=list)
    busy: bool = False
    ending: End | None = None

    # a graph

    def graph(self, place: str, flow: WorkflowSpec, given: Scope) -> Result | None:
        """Go over a graph; how it ended, ``None`` while it has not.

        :param place: what its nodes are under; nothing for the workflow itself.
        :param given: what its nodes can refer to besides one another.
        """
        if place and flow.input_schema is not None and not self.begun(place, flow):
            wrong = self.check(flow.input_schema, given.get("input"))
            if wrong:
                return Result(error=misfit(place, wrong))
        states = self._states(place, flow)
        result = _result(flow, states)
        if result is not None:
            return result
        outputs = {n: s.output for n, s in states.items() if s and s.status == "completed"}
        settings = {name: one.get("default") for name, one in flow.settings.items()}
        scope = {"settings": settings, "workflow": flow.name, **given, "nodes": outputs}
        for node in flow.nodes:
            spot = Spot(node, under(place, node.id), scope)
            state = states[node.id]
            if state is None:
                self._consider(spot, flow, states)
            elif state.status == "running":
                self._go_on(spot, state)
            elif state.status == "resting":
                self._rest(spot, state)
        return None

    def settled(self, place: str, flow: WorkflowSpec) -> Result | None:
        """How a graph ended; ``None`` while it has not. Nothing in it is pushed on."""
        return _result(flow, self._states(place, flow))

    def _states(self, place: str, flow: WorkflowSpec) -> dict[str, Node | None]:
        """Where a graph's nodes stand; a long map asks for many graphs."""
        head, known = f"{place}/" if place else "", self.run.nodes
        return {node.id: known.get(head + node.id) for node in flow.nodes}

    def begun(self, place: str, flow: WorkflowSpec) -> bool:
        """Whether anything of the graph at ``place`` has begun."""
        return any(under(place, node.id) in self.run.nodes for node in flow.nodes)

    def _consider(self, spot: Spot, flow: WorkflowSpec, states: Mapping[str, Node | None]) -> None:
        """Begin a node whose needs are settled, or see that it is not needed."""
        needs = [states.get(name) for name in spot.node.needs]
        if any(state is None or state.open for state in needs):
            return
        reason = _not_needed(spot.node, flow, states)
        if reason is not None:
            self.skip(spot, reason)
            return
        try:
            self.work[spot.node.kind].begin(self, spot)
        except Unbound as error:
            self.start(spot, None)
            told = {"kind": "unbound", "message": str(error)}
            self.finish(spot, Node(spot.path, spot.node.kind, "running"), error=told)

    def _go_on(self, spot: Spot, state: Node) -> None:
        limit = spot.node.timeout
        if limit is not None:
            left = limit - (self.run.seconds(self.at) - state.since)
            if left <= 0:
                text = f"The node was not done within {limit:g} s of work."
                self.fail(spot, state, {"kind": "timeout", "message": text})
                return
            self.alarms.append(self.at + left)
        self.work[spot.node.kind].go_on(self, spot, state)

    def _rest(self, spot: Spot, state: Node) -> None:
        """Between two tries."""
        if self.at < state.again_at:
            self.alarms.append(state.again_at)
            self.busy = True
            return
        again = state.attempt + 1
        self.start(spot, state.input, agent=state.agent, kind=state.kind, attempt=again)

    # what happens to a node

    def start(
        self,
        spot: Spot,
        given: Any,
        *,
        agent: str | None = None,
        kind: str | None = None,
        attempt: int = 1,
    ) -> None:
        """A node begins, with this input."""
        told = {"node": spot.path, "kind": kind or spot.node.kind, "attempt": attempt}
        self.drafts.append(draft("node.started", step=spot.path, agent=agent, input=given, **told))

    def finish(
        self, spot: Spot, state: Node, output: Any = None, error: Error | None = None
    ) -> None:
        """A node is over: with an output, or with an error that its own rules may soften."""
        node, told = spot.node, {"node": spot.path, "kind": state.kind, "attempt": state.attempt}
        if error is None:
            self._end(spot.path, "node.finished", **told, status="completed", output=output)
        elif state.attempt <= node.retries and error["kind"] not in FINAL:
            wait = pause_before(spot, state.attempt, self.run.id)
            failed = {**told, "status": "failed", "error": error, "retry_after": wait}
            self._end(spot.path, "node.finished", **failed)
        elif node.on_error == "default_value":
            told["output"] = node.default
            self._end(spot.path, "node.finished", **told, status="completed", error=error)
        elif node.on_error == "skip":
            self._end(spot.path, "node.skipped", **told, reason="error", error=error)
        else:
            self._end(spot.path, "node.finished", **told, status="failed", error=error)

    def fail(self, spot: Spot, state: Node, error: Error) -> None:
        """End a node that may have something under way; that is stopped first."""
        active = [t.name for t in self.threads(state.place) if self._active(t)]
        if active:
            self.stops += active
            return
        for thread in self.threads(state.place):
            self._leave(thread)
        inner = f"{state.place}/"
        children = (node for node in self.run.nodes.values() if node.path.startswith(inner))
        self.drafts += [stopped(child) for child in children if child.open]
        self.finish(spot, state, error=error)

    def skip(self, spot: Spot, reason: str) -> None:
        """A node is not needed, or can't run any more."""
        told = {"node": spot.path, "kind": spot.node.kind, "reason": reason}
        self._end(spot.path, "node.skipped", **told)

    def _end(self, path: str, type: str, **told: Any) -> None:
        self.drafts.append(draft(type, step=path, **told))

    # threads

    def threads(self, place: str) -> list[Thread]:
        """The conversations of a node and of all in it."""
        threads = self.run.threads.items()
        return [t for name, t in threads if name == place or name.startswith(f"{place}/")]

    def converse(
        self,
        spot: Spot,
        state: Node,
        rules: tuple[Rule, ...],
        value: Callable[[Mapping[str, Any]], Any],
    ) -> None:
        """Push a node's conversation on.

        :param value: makes the node's output of what was said last (``{text, value}``).
        """
        thread = self.run.threads[state.place]
        finding = found(rules, Scene(self.run, thread, self.at, self.check))
        for one in finding:
            if isinstance(one, End):
                self._thread_ended(spot, state, thread, one, value)
            elif isinstance(one, Ask):
                self.asks.append(one)
        self._take(finding)

    def _take(self, finding: Finding) -> None:
        for one in finding:
            if isinstance(one, Emit):
                self.drafts += one.drafts
            elif isinstance(one, Effect):
                self.effects.append(one)
        self.busy = self.busy or not finding

    def _thread_ended(
        self,
        spot: Spot,
        state: Node,
        thread: Thread,
        end: End,
        value: Callable[[Mapping[str, Any]], Any],
    ) -> None:
        if end.whole:
            self.ending = end
        elif end.type == "run.completed":
            self._leave(thread, "answered")
            self.finish(spot, state, value(end.data["output"]))
        else:
            reason = end.data["reason"]
            text = f"The node did not come to an answer: {reason}."
            self.fail(spot, state, end.data.get("error", {"kind": reason, "message": text}))

    def _leave(self, thread: Thread, outcome: str = "stopped") -> None:
        """A conversation is over: open calls get a result, and its agent leaves."""
        calls = self.run.calls.values()
        mine = [c for c in calls if c.step.rpartition("/")[0] == thread.name]
        self.drafts += [unmade(call) for call in mine if call.phase != "done"]
        if thread.agent in thread.met and is_agent(thread.agent):
            step = f"{thread.name}/{thread.turns}"
            told = draft("agent.finished", step=step, agent=thread.agent, outcome=outcome)
            self.drafts.append(told)

    def _active(self, thread: Thread) -> bool:
        calls = [c for c in self.run.calls.values() if c.phase == "running" or c.has_child]
        mine = any(call.step.rpartition("/")[0] == thread.name for call in calls)
        return mine or thread.open is not None

    def later(self) -> tuple[LookAgain, ...]:
        """When to look again although nothing happens."""
        return (LookAgain(min(self.alarms)),) if self.alarms else ()


INCOMPLETE = "incomplete"
"""The kind of error that is a bound met, not a fault: the run is then ``incomplete``, too."""

FINAL = frozenset(
    {"unbound", "denied", "expired", "input_invalid", "invalid_arguments", "unknown_tool"}
    | {"bad_request", "unsupported", "too_large", "unauthenticated", "forbidden", "unknown_model"}
    | {"budget_exceeded", "context_overflow", INCOMPLETE}
)
"""Errors that another try can't change: the deterministic is not retried (promise 14)."""

MAX_WAIT = 60.0
"""Seconds between two tries, at most."""


def pause_before(spot: Spot, tried: int, run_id: str) -> float:
    """Seconds before a node's next try: twice as many each time, and spread over their second half
    by a hash, so that those that failed together do not all come back together; the same for
    whoever looks again."""
    longest = min(MAX_WAIT, spot.node.backoff * 2.0 ** (tried - 1))
    share = crc32(f"{run_id}:{spot.path}:{tried}".encode()) / 2**32
    return round(longest * (1 + share) / 2, 3)


def misfit(place: str, wrong: list[str]) -> Error:
    """What a graph was given is not what it takes."""
    text = f"The input does not fit the input_schema: {'; '.join(wrong[:5])}."
    return {"kind": "input_invalid", "message": text, **({"node": place} if place else {})}


def under(place: str, node: str) -> str:
    """The path of a node in a graph at ``place``."""
    return f"{place}/{node}" if place else node


def _not_needed(
    node: NodeSpec, flow: WorkflowSpec, states: Mapping[str, Node | None]
) -> str | None:
    """Why a node whose needs are settled will not run; ``None`` if it will."""
    needs = {name: state for name in node.needs if (state := states.get(name)) is not None}
    for name, state in needs.items():
        other = flow.find(name)
        decides = other is not None and other.branch is not None and node.id in other.branch.targets
        if decides and state.status == "completed" and node.id not in state.output["to"]:
            return "branch"
    there = [state for state in needs.values() if state.status == "completed"]
    if len(there) == len(needs) or (node.join == "any" and there):
        return None
    bad = any(state.status in ("failed", "cancelled") for state in needs.values())
    return "upstream_failed" if bad else "upstream_skipped"


def _result(flow: WorkflowSpec, states: Mapping[str, Node | None]) -> Result | None:
    """How a graph ended: the first error if a node failed, else the first output that is there."""
    settled: list[Node] = []
    failed: Node | None = None
    for state in states.values():
        if state is None or state.open:
            return None
        settled.append(state)
        if failed is None and state.status in ("failed", "cancelled"):
            failed = state
    if failed is not None:
        error = failed.error or {"kind": "cancelled", "message": "It was stopped."}
        return Result(error={"node": failed.path, **error})
    for node in flow.nodes:
        found = states[node.id]
        if node.kind == "output" and found is not None and found.status == "completed":
            return Result(found.output)
    skipped = next((s for s in settled if s.status == "skipped" and _own(s)), settled[-1])
    why = (skipped.error or {}).get("kind")
    text = f"No output was reached: the node {skipped.path!r} was skipped ({why})."
    return Result(error={"kind": "no_output", "message": text, "node": skipped.path})


def _own(state: Node) -> bool:
    """Whether a node was skipped for a reason of its own."""
    return (state.error or {}).get("kind") not in ("upstream_failed", "upstream_skipped", "branch")


def told_as(spot: Spot, path: str, **changed: Any) -> Spot:
    """A spot for a step of a node's own making."""
    return replace(spot, path=path, node=replace(spot.node, **changed))
