"""What a worker finds that takes over a run: what is asked again, made again, or in doubt. Pure.

A completed model turn or tool call is never repeated (promise 10). A cut turn is asked again,
since asking has no effect. A cut call is made again only where a second one does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.record import record
from gateway.runs.events import Draft, draft
from gateway.runs.judge import find_tool
from gateway.runs.state import Call, Run


@record(frozen=True, slots=True)
class Spent:
    """What a cut turn had used all the same."""

    usage: Mapping[str, Any]
    cost_nano: int


def open_turns(run: Run) -> list[str]:
    """The steps of turns that were under way."""
    return [thread.open for thread in run.threads.values() if thread.open is not None]


def recovered(run: Run, spent: Mapping[str, Spent]) -> Draft:
    """The event that sorts what was under way.

    :param spent: by step, what the cut turns had used.
    """
    cut = [call for call in run.calls.values() if call.phase == "running"]
    return draft(
        "run.recovered",
        abandoned=[_abandoned(step, spent) for step in open_turns(run)],
        rerun=[call.call_id for call in cut if _repeatable(run, call)],
        in_doubt=[call.call_id for call in cut if not _repeatable(run, call)],
    )


def _abandoned(step: str, spent: Mapping[str, Spent]) -> dict[str, Any]:
    used = spent.get(step, Spent({}, 0))
    return {"step": step, "usage": dict(used.usage), "cost_nano": used.cost_nano}


def _repeatable(run: Run, call: Call) -> bool:
    tool = find_tool(run, call)
    return tool is not None and tool.repeatable
