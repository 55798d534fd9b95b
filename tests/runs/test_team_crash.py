"""A team under ``kill -9``: coordinator, planner, factory, publisher, members; after every event,
and between the storing of an agent or a plan and the event that tells of it.

The rig and the process that kills itself are those of the agents' own crash suite.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Answer, Say
from adapters.simulator.script import Scripts
from adapters.simulator.words import Ask
from tests.runs import test_crash
from tests.runs.nursery import Nursery
from tests.runs.test_crash import ENDS, Rig, rig, survive
from tests.runs.test_team import HAND_OVER, MADE, PLAN, pick, team

LAST = 62
SOME = (-2, -1, 9, 16, 23, 30, 36, 44, 53)
"""Killed after in ``make test``; all others in ``make test-all``."""

SAYS: tuple[tuple[str, Any], ...] = (
    ("Specify an agent called poet", MADE),
    ("go on\n\nDone so far", "a verse"),
    ("poet: a verse", pick("finish", "done: a verse")),
    ("Done so far:\nnothing yet", pick("poet")),
    ("Members:", PLAN),
    ("a poem", HAND_OVER),
)
"""What is answered, by the first of these that the prompt holds."""


def answer(scripts: Scripts, ask: Ask) -> Answer:
    """The same question always gets the same answer, however often it is asked."""
    found = next(said for mark, said in SAYS if mark in ask.prompt)
    return Answer((Say(found if isinstance(found, str) else json.dumps(found)),))


@pytest.fixture(autouse=True)
def _team(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_crash, "ASKED", {"workflow": team(), "input": "a poem"})
    monkeypatch.setattr(Scripts, "next", answer)


async def check(one: Rig, run: dict[str, Any], kill_at: int) -> None:
    events = one.seen
    assert run["status"] == "completed", events[-3:]
    assert run["output"]["text"] == "done: a verse"
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), "each once"
    assert [event["type"] for event in events if event["type"] in ENDS] == ["run.completed"]
    told = Counter(event["type"] for event in events)
    ends = Counter(e["data"]["node"] for e in events if e["type"] == "node.finished")
    assert set(ends.values()) == {1}, "a step that is finished never runs again"
    assert told["agent.created"] == told["agent.handoff"] == 1
    assert told["model.finished"] == 6
    known = [event for event in events if event["seq"] <= kill_at]
    begun = sum(event["type"] == "model.started" for event in known)
    finished = sum(event["type"] == "model.finished" for event in known)
    assert len(one.simulator.log) <= 6 + begun - finished, "only a cut turn is asked again"
    _, made = await one.call("GET", "/agents/paper.poet")
    assert (made["version"], made["tools"]) == (1, ["calculator"]), "made once, kept once"
    _, plan = await one.call("GET", f"/plans/{run['plan']['id']}")
    assert (plan["version"], plan["plan"]) == (run["plan"]["version"], PLAN) == (1, PLAN)
    assert len(events) <= LAST, len(events)


async def run_it(folder: Path, kill_at: int, nursery: Nursery, url: str | None = None) -> None:
    async with rig(folder, nursery, url) as one:
        await check(one, await survive(one, kill_at), kill_at)
        if kill_at and kill_at < len(one.seen):
            assert any(event["epoch"] > 1 for event in one.seen) or kill_at == 1


async def test_without_a_crash(tmp_path: Path, nursery: Nursery) -> None:
    await run_it(tmp_path, 0, nursery)


@pytest.mark.parametrize("kill_at", SOME)
async def test_killed_after(tmp_path: Path, nursery: Nursery, kill_at: int) -> None:
    await run_it(tmp_path, kill_at, nursery)


@pytest.mark.all
@pytest.mark.parametrize("kill_at", [n for n in range(1, LAST) if n not in SOME])
async def test_killed_after_any_event(tmp_path: Path, nursery: Nursery, kill_at: int) -> None:
    await run_it(tmp_path, kill_at, nursery)
