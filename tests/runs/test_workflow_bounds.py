"""Workflows at their bounds: budgets, pauses, time-outs of turns, hand-overs, failing items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adapters.simulator import Call, Say
from tests.harness import KEY, alias, gateway
from tests.runs.following import answered, begin, data, read, types, watch
from tests.runs.test_workflow import SCRIPTED, echo, ended, finished, skipped, tool
from tests.runs.tools import slow, spy, use


async def test_a_used_up_budget_ends_the_run_with_what_was_made(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        nodes = {"one": echo("first"), "two": echo("{{ /nodes/one }} second")}
        body = {"workflow": {"nodes": nodes, "output": {"from": "/nodes/two"}}}
        run_id = await begin(g, {**body, "budget": {"tokens": 1}})
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["reason"]) == ("incomplete", "budget")
        assert run["output"]["value"] == {"one": "first"}


async def test_a_budget_can_be_waited_for(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        nodes = {"one": echo("first"), "two": echo("{{ /nodes/one }} second")}
        body = {"workflow": {"nodes": nodes, "output": {"from": "/nodes/two"}}}
        more = {"budget": {"tokens": 1}, "on_budget": "wait"}
        run_id = await begin(g, {**body, **more})
        events = await watch(g, run_id, until="run.waiting")
        assert events[-1]["data"]["for"] == "budget"
        iid = data(events, "budget.exhausted")[0]["interrupt_id"]
        top_up = {"action": "top_up", "budget": {"tokens": 10_000}}
        assert (await answered(g, run_id, iid, **top_up)).status == 200
        await watch(g, run_id)
        assert (await read(g, run_id))["output"]["text"] == "first second"


async def test_a_workflow_is_paused_at_a_border_and_goes_on(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, work := spy("work", slow(0.3)))
        nodes = {"one": tool("work"), "two": tool("work", needs=["one"])}
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": {"from": "/nodes/two"}}})
        await watch(g, run_id, until="tool.intent")
        assert (await g.post(f"/runs/{run_id}/pause", {})).status == 200
        await watch(g, run_id, until="run.paused")
        assert len(work.calls) == 1
        assert (await g.post(f"/runs/{run_id}/resume", {})).status == 200
        await watch(g, run_id)
        assert (await read(g, run_id))["status"] == "completed"
        assert len(work.calls) == 2


async def test_a_turn_out_of_time_is_cut(tmp_path: Path) -> None:
    pace = alias("slow-model", ("openai", "slow-20000"), retries=0)
    async with gateway(tmp_path, pace) as g:
        late = {"kind": "call", "model": "slow-model", "prompt": "x", "timeout": 0.4}
        nodes = {"late": {**late, "on_error": "skip"}, "b": echo("plan b")}
        output = {"first": [{"from": "/nodes/late"}, {"from": "/nodes/b"}]}
        run, events = await ended(g, nodes, output=output)
        assert run["output"]["text"] == "plan b"
        assert skipped(events) == {"late": "error"}
        assert data(events, "node.skipped")[0]["error"]["kind"] == "timeout"
        cut = [d for d in data(events, "model.finished") if d["finish_reason"] == "cut"]
        assert len(cut) == 1
        assert run["usage"]["seconds"] < 10


async def test_an_agent_node_may_hand_over(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Call("transfer_to_closer", "{}"), Say("closed")])
        opener = {"name": "opener", "model": "scripted", "handoffs": ["closer"]}
        node = {"kind": "agent", "agent": opener, "prompt": "go"}
        body = {
            "workflow": {"nodes": {"talk": node}, "output": {"from": "/nodes/talk"}},
            "agents": [{"name": "closer", "model": "scripted"}],
        }
        run_id = await begin(g, body)
        events = await watch(g, run_id)
        assert (await read(g, run_id))["output"]["text"] == "closed"
        ended_by = [(e["agent"], e["data"]["outcome"]) for e in events
                    if e["type"] == "agent.finished"]  # fmt: skip
        assert ended_by == [("opener", "handed_over"), ("closer", "answered")]


async def test_a_tool_may_need_approval_while_others_go_on(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, mail := spy("mail"), spy("other", slow(0.1)))
        nodes = {"send": tool("mail", policy="approve"), "other": tool("other")}
        output = [{"from": "/nodes/send"}, {"from": "/nodes/other"}]
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": output}})
        events = await watch(g, run_id, until="run.waiting")
        assert "other" in finished(events)
        assert mail.calls == []
        iid = data(events, "approval.requested")[0]["interrupt_id"]
        assert (await answered(g, run_id, iid, action="approve")).status == 200
        await watch(g, run_id)
        assert (await read(g, run_id))["output"]["value"] == ["mail done", "slow but done"]


async def test_after_an_item_has_failed_no_further_one_begins(tmp_path: Path) -> None:
    async def work(arguments: Any, context: Any) -> str:
        if arguments["n"] == 2:
            raise RuntimeError
        return "fine"

    async with gateway(tmp_path) as g:
        use(g, worker := spy("work", work))
        node = tool("work", arguments={"n": {"from": "/item"}})
        nodes = {"all": {"kind": "map", "over": [1, 2, 3, 4], "concurrency": 1, "node": node}}
        run, _ = await ended(g, nodes, output={"from": "/nodes/all"})
        assert run["status"] == "failed"
        assert run["error"]["node"] == "all/1/node", "the first cause"
        assert [c["n"] for c in worker.calls] == [1, 2]
        keep = {"all": {**nodes["all"], "node": {**node, "on_error": "default_value",
                                                 "default_value": None}}}  # fmt: skip
        run, _ = await ended(g, keep, output={"from": "/nodes/all"})
        assert run["output"]["value"] == ["fine", None, "fine", "fine"]


async def test_a_loop_counts(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        body = {
            "nodes": {"say": echo("{{ /input }}.")},
            "output": {"from": "/nodes/say"},
        }
        loop = {"kind": "loop", "times": 3, "input": {"from": "/input"}, "body": body}
        run, _ = await ended(g, {"again": loop}, "x", output={"from": "/nodes/again"})
        assert run["output"]["text"] == "x..."


async def test_a_person_fills_a_form(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with gateway(tmp_path) as g:
        nodes = {
            "form": {"kind": "approval", "message": "How many?", "schema": schema},
            "words": {"kind": "approval", "message": "Why?", "form": "text"},
        }
        output = {"n": {"from": "/nodes/form/n"}, "why": {"from": "/nodes/words"}}
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": output}})
        await watch(g, run_id, until="run.waiting")
        form, words = (await read(g, run_id))["interrupts"]
        bad = await answered(g, run_id, form["id"], action="result", structured={"n": "x"})
        assert bad.status == 400
        good = await answered(g, run_id, form["id"], action="result", structured={"n": 3})
        assert good.status == 200
        again = await answered(g, run_id, form["id"], action="result", structured={"n": 4})
        assert again.status == 409, "the first answer counts"
        await answered(g, run_id, words["id"], action="result", content="because")
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.completed"
        assert (await read(g, run_id))["output"]["value"] == {"n": 3, "why": "because"}
        rows = (await g.get(f"/runs/{run_id}/tasks", key=KEY)).json()["data"]
        assert {row["status"] for row in rows} == {"completed"}
