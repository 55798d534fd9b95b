"""The workflow loop: what follows from where a graph stands. Pure; read it top to bottom.

Everything that can go on goes on at once; what a failed node leaves behind is skipped and the rest
is let finish; only when nothing is under way and somebody has to answer does the run wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.runs.actions import WAIT, Decision, Emit, End, Stop
from gateway.runs.agent import waiting
from gateway.runs.arguments import Check
from gateway.runs.binding import shown
from gateway.runs.ending import end
from gateway.runs.node_work import WORK
from gateway.runs.state import Run
from gateway.runs.team import TeamWork
from gateway.runs.walk import INCOMPLETE, Result, Walk, Work

KINDS: Mapping[str, Work] = {**WORK, "team": TeamWork()}
"""By kind of node: what it does."""


def decide(run: Run, at: float, check: Check) -> Decision:
    """What is to be done now; see :func:`gateway.runs.agent.decide`."""
    if run.status not in ("running", "cancelling"):
        return WAIT
    outside = _from_outside(run, at)
    if outside is not None:
        return end(run, outside.type, at, **outside.data)
    flow = run.spec.workflow
    assert flow is not None
    walk = Walk(run, at, check, KINDS)
    result = walk.graph("", flow, {"input": run.spec.value, "history": _history(run)})
    found = walk.ending or (None if result is None else _end_of(result))
    if found is not None:
        return end(run, found.type, at, **found.data)
    return _decision(walk)


def _decision(walk: Walk) -> Decision:
    """What is written comes first, what is stopped next; then what can be done is done. Effects are
    named beside what is written, for whoever asks whether they were wanted."""
    if walk.drafts:
        return (Emit(tuple(walk.drafts)), *walk.effects)
    if walk.stops:
        return (Stop(tuple(walk.stops)),)
    if walk.effects or walk.busy or not walk.asks:
        return (*walk.effects, *walk.later())
    children = tuple(child for ask in walk.asks for child in ask.children)
    return (Emit((waiting(walk.run, walk.asks[0].what, children),)),)


def _from_outside(run: Run, at: float) -> End | None:
    """A caller wants no more, or the time is up."""
    if run.status == "cancelling":
        return End("run.cancelled", {})
    limit = run.budget.seconds
    if limit is not None and run.seconds(at) >= limit:
        return End("run.incomplete", {"reason": "deadline"})
    return None


def _end_of(result: Result) -> End:
    if result.error is None:
        output = {"text": shown(result.output), "value": result.output}
        return End("run.completed", {"output": output})
    kind = result.error["kind"]
    if kind == INCOMPLETE:
        return End("run.incomplete", {"reason": "max_turns", "output": result.error["output"]})
    return End("run.failed", {"reason": kind, "error": dict(result.error)})


def _history(run: Run) -> list[dict[str, Any]]:
    """The conversation before this run, as a node may be given it."""
    return [
        {"role": message.role, "content": "".join(getattr(p, "text", "") for p in message.parts)}
        for message in run.spec.history
    ]
