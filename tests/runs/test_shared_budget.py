"""What is left of a run's budget is shared by those who work for it at once, never given twice."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Answer, Call, Say, Usage
from gateway.runs.rewind import replay
from tests.harness import KEY, Harness, alias, gateway
from tests.runs.following import answered, begin, data, idle, read, types, watch
from tests.runs.tools import slow, spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
OTHER = alias("other", ("openai", "other"), retries=0)
TURN = 100
"""Tokens of each turn here."""


def turn(*parts: Any) -> Answer:
    return Answer(tuple(parts), usage=Usage(prompt=TURN - 10, output=10))


def busy(g: Harness, turns: int) -> None:
    """Children that call a tool again and again, and at last have an answer."""
    calls = [turn(Call("t", "{}", id=f"t{n}")) for n in range(turns)]
    g.simulator.script("other", [*calls, turn(Say("child done"))], by="turn")


def parent(g: Harness, *rounds: int) -> dict[str, Any]:
    """An agent that asks so many children at once, turn by turn."""
    numbers = itertools.count(1)
    asks = [
        turn(*(Call("agent_child", '{"input": "work"}', id=f"c{next(numbers)}") for _ in range(n)))
        for n in rounds
    ]
    g.simulator.script("script", [*asks, turn(Say("done"))], by="turn")
    child = {"name": "child", "model": "other", "tools": ["t"], "max_turns": 50}
    agent = {"name": "lead", "model": "scripted", "tools": ["agent:child", "t"]}
    return {"agent": agent, "agents": [child], "input": "go"}


async def children_of(g: Harness, run_id: str) -> list[dict[str, Any]]:
    found = (await g.get(f"/runs?parent={run_id}", key=KEY)).json()["data"]
    return [await read(g, one["id"]) for one in sorted(found, key=lambda one: one["created_at"])]


async def share_of(g: Harness, child: dict[str, Any]) -> int:
    (created,) = data(await watch(g, child["id"]), "run.created")
    return int(created["spec"]["budget"]["tokens"])


def tokens(run: dict[str, Any]) -> int:
    return int(run["usage"]["total_tokens"])


async def test_three_children_at_once_share_what_is_left(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t"))
        busy(g, 40)
        run_id = await begin(g, parent(g, 3) | {"budget": {"tokens": 10 * TURN}})
        await watch(g, run_id)
        children = await children_of(g, run_id)
        assert [child["reason"] for child in children] == ["budget"] * 3
        assert [tokens(child) for child in children] == [3 * TURN] * 3, "nine turns, three each"
        run = await read(g, run_id)
        assert (run["status"], run["reason"]) == ("incomplete", "budget")
        assert tokens(run) == 10 * TURN, "all of it, and no more"


async def test_one_child_may_use_all_that_is_left(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t"))
        busy(g, 8)
        run_id = await begin(g, parent(g, 1) | {"budget": {"tokens": 11 * TURN}})
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], tokens(run)) == ("completed", 11 * TURN)


async def test_what_children_leave_is_the_next_ones(tmp_path: Path) -> None:
    """Two that use a turn each, then one that needs more than their shares were."""
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t"))
        short, long = turn(Say("child done")), turn(Call("t", "{}"))
        g.simulator.script("other", [short, short, *[long] * 6, short])
        run_id = await begin(g, parent(g, 2, 1) | {"budget": {"tokens": 12 * TURN}})
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], tokens(run)) == ("completed", 12 * TURN)


async def test_the_calls_of_children_count(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, tool := spy("t"))
        busy(g, 40)
        run_id = await begin(g, parent(g, 2, 1) | {"budget": {"tool_calls": 9}})
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["reason"]) == ("incomplete", "budget")
        assert run["usage"]["tool_calls"] == 2 + len(tool.calls) == 9


async def test_a_workflow_s_own_budget_holds_where_it_is_a_tool(tmp_path: Path) -> None:
    flow = """
[workflows.small]
budget = { tokens = 0 }
output = { from = "/nodes/say" }
[workflows.small.nodes.say]
kind = "call"
model = "m-openai"
prompt = "x"
"""
    async with gateway(tmp_path, SCRIPTED, flow) as g:
        g.simulator.script("script", [Call("workflow_small", '{"input": "x"}'), Say("done")])
        agent = {"model": "scripted", "tools": ["workflow:small"]}
        run_id = await begin(g, {"agent": agent, "input": "go"})
        await watch(g, run_id)
        (child,) = await children_of(g, run_id)
        assert (child["status"], child["reason"]) == ("incomplete", "budget")


async def test_a_child_made_after_a_crash_has_the_share_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try at making one fails, when its intent stands already."""
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t"))
        busy(g, 40)
        store, refused = g.state.store, set[str]()
        create = store.create_run

        async def create_run(birth: Any, *rest: Any) -> Any:
            if birth.parent is not None and not refused:
                refused.add(birth.id)
                raise RuntimeError("as if it had crashed")
            return await create(birth, *rest)

        monkeypatch.setattr(store, "create_run", create_run)
        run_id = await begin(g, parent(g, 3) | {"budget": {"tokens": 10 * TURN}})
        await watch(g, run_id, seconds=30)
        children = await children_of(g, run_id)
        assert len(refused) == 1
        assert [tokens(child) for child in children] == [3 * TURN] * 3
        assert tokens(await read(g, run_id)) == 10 * TURN
        tape = await g.state.runs.bench.ledger.read(run_id, 0)
        assert replay(tape, g.state.runs.bench.check) is None


def side_by_side(g: Harness, *agents: str) -> dict[str, Any]:
    """A workflow of agents that work at once; each asks one child."""
    call = turn(Call("agent_child", '{"input": "work"}', id="c"))
    g.simulator.script("script", [call, turn(Say("done"))], by="turn")
    child = {"name": "child", "model": "other", "tools": ["t"], "max_turns": 50}
    lead = {"model": "scripted", "tools": ["agent:child"]}
    nodes = {
        name: {"kind": "agent", "agent": {"name": name, **lead}, "prompt": "go"} for name in agents
    }
    output = [{"from": f"/nodes/{name}"} for name in agents]
    return {"workflow": {"nodes": nodes, "output": output}, "agents": [child]}


async def test_nodes_at_once_share_too(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t"))
        busy(g, 40)
        run_id = await begin(g, side_by_side(g, "a", "b", "c") | {"budget": {"tokens": 15 * TURN}})
        await watch(g, run_id)
        run, children = await read(g, run_id), await children_of(g, run_id)
        shares = [await share_of(g, child) for child in children]
        assert sum(shares) <= 14 * TURN
        assert min(shares) >= 3 * TURN
        assert tokens(run) <= 15 * TURN + 3 * TURN, "and a turn of each was under way"


async def test_a_turn_waits_for_what_a_child_holds(tmp_path: Path) -> None:
    more = alias("more", ("openai", "more"), retries=0)
    async with gateway(tmp_path, SCRIPTED, OTHER, more) as g:
        use(g, spy("t"))
        slowly = replace(turn(Say("child done")), pace=0.5)
        g.simulator.script("other", [slowly])
        first, *others = (turn(Call("t", "{}", id=f"b{n}")) for n in range(3))
        g.simulator.script("more", [replace(first, pace=0.2), *others, turn(Say("b done"))])
        body = side_by_side(g, "a")
        agent = {"name": "b", "model": "more", "tools": ["t"]}
        body["workflow"]["nodes"]["b"] = {"kind": "agent", "agent": agent, "prompt": "go"}
        run_id = await begin(g, body | {"budget": {"tokens": 7 * TURN}})
        events = await watch(g, run_id)
        run, (child,) = await read(g, run_id), await children_of(g, run_id)
        assert await share_of(g, child) == 3 * TURN, "beside b, which had not used any"
        assert (run["status"], tokens(run)) == ("completed", 7 * TURN)
        place = {(event["type"], event["step"]): event["seq"] for event in events}
        assert place["model.finished", "b/3"] < place["tool.completed", "a/1"]
        assert place["tool.completed", "a/1"] < place["model.started", "b/4"]


@pytest.mark.parametrize("calls", [1, 2])
async def test_nodes_at_once_make_no_call_too_many(tmp_path: Path, calls: int) -> None:
    async with gateway(tmp_path) as g:
        use(g, tool := spy("t", slow(0.1)))
        nodes = {name: {"kind": "tool", "tool": "t"} for name in "abc"}
        output = [{"from": f"/nodes/{name}"} for name in nodes]
        body = {"workflow": {"nodes": nodes, "output": output}, "budget": {"tool_calls": calls}}
        run_id = await begin(g, body)
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["reason"], len(tool.calls)) == ("incomplete", "budget", calls)


async def test_a_call_is_counted_before_the_next_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two agents want the last call at the same moment, while the books are slow: the first in the
    workflow, who asks a little later, is not given what the other has begun with."""
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, tool := spy("t", slow(0.1)))
        call = turn(Call("t", "{}"))
        g.simulator.script("script", [replace(call, pace=0.15), turn(Say("done"))])
        g.simulator.script("other", [call, turn(Say("done"))])
        write = g.state.store.add_run_events

        async def slow_write(addition: Any) -> Any:
            await asyncio.sleep(0.1)
            return await write(addition)

        monkeypatch.setattr(g.state.store, "add_run_events", slow_write)
        nodes = {
            name: {
                "kind": "agent",
                "agent": {"name": name, "model": model, "tools": ["t"]},
                "prompt": "go",
            }
            for name, model in (("a", "scripted"), ("b", "other"))
        }
        output = [{"from": f"/nodes/{name}"} for name in nodes]
        body = {"workflow": {"nodes": nodes, "output": output}, "budget": {"tool_calls": 1}}
        run_id = await begin(g, body)
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["reason"], len(tool.calls)) == ("incomplete", "budget", 1)
        tape = await g.state.runs.bench.ledger.read(run_id, 0)
        assert replay(tape, g.state.runs.bench.check) is None


# children that wait, and children that are cut


async def test_who_is_held_up_by_waiting_children_waits_with_them(tmp_path: Path) -> None:
    """Two tokens are left for three children; the first two hold one each, and ask a person."""
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t"))
        busy(g, 1)
        body = parent(g, 3) | {"budget": {"tokens": TURN + 2}}
        body["agents"][0]["tool_policy"] = {"t": "approve"}
        run_id = await begin(g, body)
        events = await watch(g, run_id, until="run.waiting")
        assert (events[-1]["data"]["for"], len(events[-1]["data"]["children"])) == ("approval", 2)
        await idle(g)
        for child in events[-1]["data"]["children"]:
            (question,) = (await read(g, child))["interrupts"]
            await answered(g, child, question["id"], action="approve")
        await watch(g, run_id)
        run, children = await read(g, run_id), await children_of(g, run_id)
        assert (run["status"], run["reason"]) == ("incomplete", "budget")
        assert sorted(tokens(child) for child in children) == [0, TURN, TURN]


async def test_a_child_that_goes_on_after_its_answer_ends_with_its_parent(tmp_path: Path) -> None:
    """The first of two ends at once, so that the parent goes on; the second works for long."""

    async def work(arguments: Any, context: Any) -> str:
        await asyncio.sleep(0 if len(tool.calls) == 1 else 20)
        return "done"

    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, tool := spy("t", work))
        busy(g, 1)
        body = parent(g, 2)
        body["agents"][0]["tool_policy"] = {"t": "approve"}
        run_id = await begin(g, body)
        children = (await watch(g, run_id, until="run.waiting"))[-1]["data"]["children"]
        for child in reversed(children):
            (question,) = (await read(g, child))["interrupts"]
            await answered(g, child, question["id"], action="approve")
            await watch(g, child, until="tool.intent")
        await watch(g, run_id, until="tool.completed")
        await g.post(f"/runs/{run_id}/cancel", {})
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.cancelled"
        statuses = [child["status"] for child in await children_of(g, run_id)]
        assert sorted(statuses) == ["cancelled", "completed"]
        assert tokens(await read(g, run_id)) == 4 * TURN, "the cut child's turn is in the bill"


async def test_a_child_that_is_just_being_made_ends_with_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on its way into the books can't be taken back: the child is there a moment later."""
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t", slow(20)))
        busy(g, 1)
        store, making = g.state.store, asyncio.Event()
        create = store.create_run

        async def late(birth: Any, *rest: Any) -> Any:
            if birth.parent is not None:
                making.set()
            await asyncio.sleep(0.3)
            return await create(birth, *rest)

        async def create_run(birth: Any, *rest: Any) -> Any:
            made = asyncio.ensure_future(late(birth, *rest))
            return await (made if birth.parent is None else asyncio.shield(made))

        monkeypatch.setattr(store, "create_run", create_run)
        run_id = await begin(g, parent(g, 1))
        await making.wait()
        await g.post(f"/runs/{run_id}/cancel", {})
        assert types(await watch(g, run_id))[-1] == "run.cancelled"
        async with asyncio.timeout(10):
            while [one["status"] for one in await children_of(g, run_id)] != ["cancelled"]:
                await asyncio.sleep(0.05)


async def test_what_the_child_of_a_node_out_of_time_has_used_counts(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t", slow(10)))
        busy(g, 1)
        body = side_by_side(g, "a")
        body["workflow"]["nodes"]["a"] |= {"timeout": 2.5, "on_error": "skip"}
        body["workflow"]["output"] = {"value": "plan b"}
        run_id = await begin(g, body)
        await watch(g, run_id)
        run, (child,) = await read(g, run_id), await children_of(g, run_id)
        assert (run["status"], child["status"]) == ("completed", "cancelled")
        assert tokens(run) == 2 * TURN
