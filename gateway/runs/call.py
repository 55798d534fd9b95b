"""A run of kind ``call``: one canonical request in the background, and its answer. Pure.

Tool calls end it, as they do with the provider: who asked makes them.
"""

from __future__ import annotations

from gateway.runs.actions import Decision, End, Finding
from gateway.runs.agent import (
    Rule,
    Scene,
    cancelled,
    failed,
    first,
    next_turn,
    out_of_budget,
    out_of_time,
    speaking,
)
from gateway.runs.arguments import Check
from gateway.runs.state import MAIN, Run


def decide(run: Run, at: float, check: Check) -> Decision:
    """What is to be done now; see :func:`gateway.runs.agent.decide`."""
    return first(RULES, Scene(run, run.threads[MAIN], at, check))


def answered(scene: Scene) -> Finding | None:
    """Any proven end of the one turn is the answer, with its own reason."""
    if scene.thread.reason is None:
        return None
    return (End("run.completed", {}),)


RULES: tuple[Rule, ...] = (
    cancelled,
    failed,
    out_of_time,
    speaking,
    answered,
    out_of_budget,
    next_turn,
)
"""Asked in this order."""
