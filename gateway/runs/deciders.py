"""Which decider a run has, by its kind. To add a kind of run, add its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.runs import agent, call, workflow
from gateway.runs.actions import Decision
from gateway.runs.arguments import Check
from gateway.runs.state import Run

Decider = Callable[[Run, float, Check], Decision]

DECIDERS: Mapping[str, Decider] = {
    "agent": agent.decide,
    "call": call.decide,
    "workflow": workflow.decide,
}


def decide(run: Run, at: float, check: Check) -> Decision:
    """What is to be done now, at Unix time ``at``. Pure."""
    return DECIDERS[run.spec.kind](run, at, check)
