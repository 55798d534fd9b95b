"""A workflow under ``kill -9``: a call, an agent, a map, an approval, a tool with an effect.

The rig, the person and the process that kills itself are those of the agents' own crash suite.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from tests.harness import KEYS, alias
from tests.runs import test_crash
from tests.runs.nursery import Nursery
from tests.runs.test_crash import ENDS, Rig, over_postgres, rig, survive
from tests.store.postgres_server import Server

LAST = 66
SOME = (2, 7, 13, 19, 26, 33, 40, 47)
"""Killed after in ``make test``; all others in ``make test-all``."""
FEW = SOME[1::3]
"""The same, over PostgreSQL."""

WORKFLOW = {
    "workflow": {
        "nodes": {
            "draft": {"kind": "call", "model": "m-openai", "prompt": "Dear {{ /input/name }}"},
            "work": {
                "kind": "agent",
                "agent": {"name": "worker", "model": "scripted", "tools": ["write"]},
                "prompt": "go",
            },
            "all": {
                "kind": "map",
                "over": {"from": "/input/items"},
                "node": {"kind": "tool", "tool": "read", "arguments": {"x": {"from": "/item"}}},
            },
            "ok": {"kind": "approval", "message": "Send?", "needs": ["work", "all"]},
            "send": {"kind": "tool", "tool": "mail", "needs": ["ok"]},
        },
        "output": {
            "draft": {"from": "/nodes/draft"},
            "work": {"from": "/nodes/work"},
            "all": {"from": "/nodes/all"},
            "sent": {"from": "/nodes/send"},
        },
    },
    "input": {"name": "Ann", "items": ["a", "b"]},
}
MADE = {
    "draft": "Dear Ann",
    "work": "worked",
    "all": ["read done", "read done"],
    "sent": "mail done",
}


@pytest.fixture(autouse=True)
def _workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_crash, "ASKED", WORKFLOW)
    monkeypatch.setattr(test_crash, "TURNS", [[Call("write", "{}", id="c1")], Say("worked")])
    plain = alias("m-openai", ("openai", "gpt-5.2"))
    monkeypatch.setattr(test_crash, "KEYS", plain + KEYS)


def check(one: Rig, run: dict[str, Any], kill_at: int) -> None:
    events = one.seen
    assert run["status"] == "completed", run
    assert run["output"]["value"] == MADE
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), "each once"
    assert [event["type"] for event in events if event["type"] in ENDS] == ["run.completed"]
    ends = Counter(e["data"]["node"] for e in events if e["type"] == "node.finished")
    assert set(ends.values()) == {1}, "a node that is finished never runs again"
    for line, times in one.effects().items():
        assert times == 1 or line.startswith("read "), f"{line}: {times} times"
    turns = sum(event["type"] == "model.finished" for event in events)
    assert turns == 3
    known = [event for event in events if event["seq"] <= kill_at]
    finished = sum(event["type"] == "model.finished" for event in known)
    begun = sum(event["type"] == "model.started" for event in known)
    assert len(one.simulator.log) <= 3 + begun - finished, "only a cut turn is asked again"
    assert len(events) <= LAST


async def run_it(folder: Path, kill_at: int, nursery: Nursery, url: str | None = None) -> None:
    async with rig(folder, nursery, url) as one:
        check(one, await survive(one, kill_at), kill_at)


async def test_without_a_crash(tmp_path: Path, nursery: Nursery) -> None:
    await run_it(tmp_path, 0, nursery)


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
