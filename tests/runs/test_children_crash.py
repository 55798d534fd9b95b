"""Child runs under ``kill -9``: three at once, on what is left of one budget.

The rig, the person and the process that kills itself are those of the agents' own crash suite. The
event after which it dies may be any run's: whichever comes to that number first.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from adapters.simulator.script import Scripts, _normal
from adapters.simulator.words import Answer, Ask
from tests.runs import test_crash
from tests.runs.crashing import EFFECT
from tests.runs.nursery import Nursery
from tests.runs.test_crash import ENDS, Rig, over_postgres, rig, survive
from tests.store.postgres_server import Server

LAST = 27
EFFECTS = tuple(EFFECT - number for number in (1, 2, 3))
SOME = (*EFFECTS, 6, 9, 11, 13, 16, 20)
"""Killed after in ``make test``; all others in ``make test-all``."""
FEW = (EFFECTS[1], 9, 16)
"""The same, over PostgreSQL."""

ASKED = {
    "agent": {"name": "lead", "model": "scripted", "tools": ["agent:child"]},
    "agents": [{"name": "child", "model": "scripted", "tools": ["write"]}],
    "input": "go",
    "budget": {"tool_calls": 6},
}
LEAD = ([Call("agent_child", '{"input": "work"}', id=f"c{n}") for n in range(3)], Say("all done"))
CHILD = (Call("write", "{}", id="w"), Say("child done"))


def answer(scripts: Scripts, ask: Ask) -> Any:
    """By who asks, and how far he is."""
    found: Answer | Any = _normal((CHILD if "work" in ask.prompt else LEAD)[ask.turn])
    return found


@pytest.fixture(autouse=True)
def _children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_crash, "ASKED", ASKED)
    monkeypatch.setattr(Scripts, "next", answer)


async def check(one: Rig, run: dict[str, Any]) -> None:
    sound(one.seen)
    assert (run["status"], run["output"]["text"]) == ("completed", "all done")
    assert run["usage"]["tool_calls"] == 6
    assert sorted(one.effects().values()) == [1, 1, 1]
    _, found = await one.call("GET", f"/runs?parent={run['id']}")
    spent = 0
    for child in found["data"]:
        _, page = await one.call("GET", f"/runs/{child['id']}/events", accept="application/json")
        sound(page["data"])
        assert page["data"][0]["data"]["spec"]["budget"]["tool_calls"] == 1
        assert child["status"] == "completed"
        spent += child["usage"]["total_tokens"]
    assert len(found["data"]) == 3
    own = [e["data"]["usage"] for e in one.seen if e["type"] == "model.finished"]
    cut = [
        turn["usage"]
        for event in one.seen
        if event["type"] == "run.recovered"
        for turn in event["data"]["abandoned"]
    ]
    spent += sum(usage["input_tokens"] + usage["output_tokens"] for usage in (*own, *cut))
    assert run["usage"]["total_tokens"] == spent


def sound(events: list[dict[str, Any]]) -> None:
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), "each once"
    assert [event["type"] for event in events if event["type"] in ENDS] == ["run.completed"]
    done = Counter(e["data"]["call_id"] for e in events if e["type"] == "tool.completed")
    assert set(done.values()) == {1}


async def run_it(folder: Path, kill_at: int, nursery: Nursery, url: str | None = None) -> None:
    async with rig(folder, nursery, url) as one:
        await check(one, await survive(one, kill_at))


async def test_without_a_crash(tmp_path: Path, nursery: Nursery) -> None:
    async with rig(tmp_path, nursery) as one:
        await check(one, await survive(one, 0))
        assert len(one.seen) <= LAST, len(one.seen)


@pytest.mark.parametrize("kill_at", SOME)
async def test_killed_after(tmp_path: Path, nursery: Nursery, kill_at: int) -> None:
    await run_it(tmp_path, kill_at, nursery)


@pytest.mark.all
@pytest.mark.parametrize("kill_at", [n for n in range(1, LAST) if n not in SOME])
async def test_killed_after_any_event(tmp_path: Path, nursery: Nursery, kill_at: int) -> None:
    await run_it(tmp_path, kill_at, nursery)


async def test_killed_over_postgres(tmp_path: Path, nursery: Nursery, postgres: Server) -> None:
    await over_postgres(postgres, tmp_path, FEW, partial(run_it, nursery=nursery))


@pytest.mark.all
async def test_killed_after_any_event_over_postgres(
    tmp_path: Path, nursery: Nursery, postgres: Server
) -> None:
    points = [n for n in range(1, LAST) if n not in FEW]
    await over_postgres(postgres, tmp_path, points, partial(run_it, nursery=nursery))
