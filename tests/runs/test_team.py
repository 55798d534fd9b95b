"""Teams: a plan, new agents out of a checked specification, rounds within a bound, plans kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Say
from gateway.runs.rewind import replay
from gateway.store.runs import AgentRow
from tests.harness import KEY, alias, gateway
from tests.runs.following import begin, data, read, watch

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
HAND_OVER = {"action": "hand_over", "text": "over to you"}
NEW = {"name": "poet", "purpose": "writes verse"}
MADE = {"model": "scripted", "instructions": "Write verse.", "tools": ["calculator"]}
PLAN = {"steps": [{"member": "poet", "task": "write"}], "new_agents": [NEW]}


def agent(name: str) -> dict[str, Any]:
    return {"name": name, "model": "scripted", "instructions": f"You are the {name}."}


def team(**more: Any) -> dict[str, Any]:
    crew = {
        "kind": "team",
        "coordinator": agent("chief"),
        "planner": agent("planner"),
        "publisher": agent("publisher"),
        "members": [agent("reader")],
        "factory": {"agent": agent("maker"), "models": ["scripted"], "tools": ["calculator"]},
        **more,
    }
    return {"name": "paper", "nodes": {"crew": crew}, "output": {"from": "/nodes/crew"}}


def says(*turns: Any) -> list[Say]:
    return [Say(turn if isinstance(turn, str) else json.dumps(turn)) for turn in turns]


def pick(name: str, text: str = "go on") -> dict[str, str]:
    return {"next": name, "text": text}


LAUNCH = says(HAND_OVER, PLAN, MADE, pick("poet"), "a verse", pick("finish", "done: a verse"))


async def test_a_team_plans_makes_an_agent_and_is_done(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", LAUNCH)
        run_id = await begin(g, {"workflow": team(), "input": "a poem"})
        events = await watch(g, run_id)
        run = await read(g, run_id)
        assert run["status"] == "completed", run
        assert run["output"]["text"] == "done: a verse"
        (created,) = data(events, "agent.created")
        assert created["created_by"] == "maker"
        assert created["spec"]["tools"] == ["calculator"]
        assert [d["to"] for d in data(events, "agent.handoff")] == ["poet"]
        started = [e["agent"] for e in events if e["type"] == "agent.started"]
        ended = [e["agent"] for e in events if e["type"] == "agent.finished"]
        assert started == ended
        assert started == ["chief", "planner", "maker", "publisher", "poet", "publisher"]
        prompts = json.dumps([r.body["input"] for r in g.simulator.log.of("script")])
        assert "over to you" not in prompts, "what the coordinator says is never shared"
        names = [a["name"] for a in (await g.get("/agents", key=KEY)).json()["data"]]
        assert names == ["paper.poet"], "the new agent is there for others; the plan is no agent"


async def test_a_plan_is_kept_changed_and_followed_without_planning(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", LAUNCH)
        run_id = await begin(g, {"workflow": team(), "input": "a poem"})
        await watch(g, run_id)
        plan_id = (await read(g, run_id))["plan"]["id"]
        plan = (await g.get(f"/plans/{plan_id}", key=KEY)).json()
        assert plan["version"] == 1
        assert plan["plan"] == PLAN
        assert [a["name"] for a in plan["agents"]] == ["poet"]

        changed = {"steps": [{"member": "reader", "task": "check"}], "new_agents": []}
        g.simulator.script("script", says(changed, pick("finish", "ok")))
        polish = {"mode": "polish", "plan_id": plan_id, "instruction": "shorter"}
        await watch(g, await begin(g, {"workflow": team(), "input": "a poem", **polish}))
        assert "shorter" in json.dumps(g.simulator.log.of("script")[-2].body["input"])
        plan = (await g.get(f"/plans/{plan_id}", key=KEY)).json()
        assert (plan["version"], plan["plan"]) == (2, changed)
        first = (await g.get(f"/plans/{plan_id}?version=1", key=KEY)).json()
        assert first["plan"] == PLAN

        g.simulator.script("script", says(pick("poet"), "old friend", pick("finish", "ok")))
        again = {"mode": "production", "plan_id": plan_id}
        run_id = await begin(g, {"workflow": team(), "input": "a poem", **again})
        events = await watch(g, run_id)
        kinds = [d["kind"] for d in data(events, "node.started")]
        assert kinds == ["team", "publisher", "member", "publisher", "output"]
        assert (await read(g, run_id))["status"] == "completed"
        assert (await g.get("/plans/plan_none", key=KEY)).status == 404


async def test_two_changes_of_a_plan_at_once_are_two_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run names the version that it has made, whichever came first; so does the same change
    made again, though it leaves the plan as it is."""
    other = alias("other", ("openai", "script2"), retries=0)
    async with gateway(tmp_path, SCRIPTED, other) as g:
        g.simulator.script("script", LAUNCH)
        run_id = await begin(g, {"workflow": team(), "input": "a poem"})
        await watch(g, run_id)
        plan_id = (await read(g, run_id))["plan"]["id"]
        body = {"workflow": team(), "mode": "polish", "plan_id": plan_id, "instruction": "x"}
        same = json.loads(json.dumps(team()).replace('"scripted"', '"other"'))
        overtaken, put = asyncio.Event(), g.state.store.put_agent

        async def slowly(row: AgentRow) -> bool:
            if row.spec["run_id"] == ids[0]:
                await overtaken.wait()
            return await put(row)

        monkeypatch.setattr(g.state.store, "put_agent", slowly)
        ids: list[str] = []
        for model, flow in (("script", team()), ("script2", same)):
            changed = {"steps": [{"member": "reader", "task": model}], "new_agents": []}
            g.simulator.script(model, says(changed, pick("finish", "ok")))
            ids.append(await begin(g, {**body, "workflow": flow}))
            await watch(g, ids[-1], until="model.finished")
        await watch(g, ids[1])
        overtaken.set()
        await watch(g, ids[0])
        versions = [(await read(g, one))["plan"]["version"] for one in ids]
        assert versions == [3, 2]
        for one, version in zip(ids, versions, strict=True):
            plan = (await g.get(f"/plans/{plan_id}?version={version}", key=KEY)).json()
            assert plan["run_id"] == one
        newest = (await g.get(f"/plans/{plan_id}", key=KEY)).json()
        assert newest["version"] == 3
        g.simulator.script("script", says(newest["plan"], pick("finish", "ok")))
        run_id = await begin(g, body)
        await watch(g, run_id)
        assert (await read(g, run_id))["plan"]["version"] == 4


async def test_of_several_teams_the_first_has_the_plan_that_is_kept(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        nodes = {"one": team()["nodes"]["crew"], "two": team(factory=None)["nodes"]["crew"]}
        del nodes["two"]["factory"]
        nodes["two"]["input"] = {"from": "/nodes/one"}
        flow = {"name": "both", "nodes": nodes, "output": {"from": "/nodes/two"}}
        second = {"steps": [{"member": "reader", "task": "check"}]}
        g.simulator.script("script", [*LAUNCH, *says(HAND_OVER, second, pick("finish", "good"))])
        run_id = await begin(g, {"workflow": flow, "input": "a poem"})
        events = await watch(g, run_id)
        run = await read(g, run_id)
        assert run["output"]["text"] == "good", run
        assert [d["node"] for d in data(events, "node.started") if d["kind"] == "plan"] == [
            "one/plan"
        ]
        plan = (await g.get(f"/plans/{run['plan']['id']}", key=KEY)).json()
        assert (plan["version"], plan["plan"]) == (1, PLAN)
        g.simulator.script(
            "script", says(pick("finish", "again"), HAND_OVER, second, pick("finish", "fine"))
        )
        again = {"workflow": flow, "mode": "production", "plan_id": plan["id"]}
        run_id = await begin(g, again)
        events = await watch(g, run_id)
        assert (await read(g, run_id))["output"]["text"] == "fine"
        planned = [d["node"] for d in data(events, "node.started") if d["kind"] == "planner"]
        assert planned == ["two/planner"], "the other team plans for itself"


async def test_a_team_at_its_bound_is_incomplete(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        plan = {"steps": [{"member": "reader", "task": "read"}], "new_agents": []}
        rounds = [turn for n in (1, 2) for turn in (pick("reader"), f"note {n}")]
        g.simulator.script("script", says(HAND_OVER, plan, *rounds))
        run_id = await begin(g, {"workflow": team(rounds=2), "input": "read"})
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["reason"]) == ("incomplete", "max_turns")
        assert run["output"]["text"] == "note 2"


async def test_a_coordinator_may_answer_itself(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", says({"action": "answer", "text": "42"}))
        run_id = await begin(g, {"workflow": team(), "input": "?"})
        await watch(g, run_id)
        assert (await read(g, run_id))["output"]["text"] == "42"


async def test_a_model_outside_the_closed_set_makes_no_agent(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        bad = {**MADE, "model": "m-claude"}
        g.simulator.script("script", says(HAND_OVER, PLAN, bad, bad, bad))
        run_id = await begin(g, {"workflow": team(), "input": "?"})
        events = await watch(g, run_id)
        assert (await read(g, run_id))["status"] == "failed"
        assert data(events, "agent.created") == []


async def test_modes_need_what_they_need(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        for fields in ({"mode": "polish"}, {"mode": "production"}, {"plan_id": "x"}):
            answer = await g.post("/runs", {"workflow": team(), "input": "?", **fields})
            assert answer.status == 400, fields


async def test_a_run_of_a_team_branches_off(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", LAUNCH)
        run_id = await begin(g, {"workflow": team(), "input": "a poem"})
        events = await watch(g, run_id)
        tape = await g.state.runs.ledger.read(run_id, 0)
        assert replay(tape, g.state.runs.bench.check) is None
        place = next(e["seq"] for e in events if e["type"] == "agent.handoff")
        g.simulator.script("script", says("another verse", pick("finish", "done: another")))
        forked = await g.post(f"/runs/{run_id}/fork?from={place}", {})
        assert forked.status == 201, forked.body
        await watch(g, forked.json()["id"])
        assert (await read(g, forked.json()["id"]))["output"]["text"] == "done: another"
