"""What workflows wait for: the next try of a node, and people who do not answer; and what a graph
within a graph is given."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.runs.rewind import replay
from gateway.runs.walk import MAX_WAIT, Spot, pause_before
from gateway.runs.workflow_spec import NodeSpec
from tests.harness import KEY, Harness, gateway
from tests.runs.following import answered, begin, data, idle, read, watch
from tests.runs.test_workflow import echo, ended, finished, skipped, tool
from tests.runs.tools import spy, use


class Fails:
    """A tool's work that goes wrong the first ``times`` times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.at: list[float] = []

    async def __call__(self, arguments: Any, context: Any) -> str:
        self.at.append(time.monotonic())
        self.left -= 1
        if self.left >= 0:
            raise RuntimeError
        return "at last"


async def test_a_node_waits_before_it_is_tried_again(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        work = Fails(2)
        use(g, spy("work", work))
        nodes = {"try": tool("work", retries=3, backoff=0.4)}
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": {"from": "/nodes/try"}}})
        await watch(g, run_id, until="node.finished")
        rows = (await g.get(f"/runs/{run_id}/tasks", key=KEY)).json()["data"]
        assert {r["task"]: r["status"] for r in rows}["try"] == "pending", "it is tried again"
        events = await watch(g, run_id)
        assert (await read(g, run_id))["output"]["text"] == "at last"
        waits = [d["retry_after"] for d in data(events, "node.finished") if "retry_after" in d]
        assert 0.2 <= waits[0] <= 0.4 <= waits[1] <= 0.8
        gaps = [b - a for a, b in zip(work.at, work.at[1:], strict=False)]
        assert all(gap >= wait for gap, wait in zip(gaps, waits, strict=True))
        tape = await g.state.runs.ledger.read(run_id, 0)
        assert replay(tape, g.state.runs.bench.check) is None


def test_the_waits_double_up_to_a_bound_and_are_spread() -> None:
    spot = Spot(NodeSpec("n", "tool", backoff=1.0), "n", {})
    waits = [pause_before(spot, tried, "run_1") for tried in range(1, 11)]
    for number, wait in enumerate(waits):
        longest = min(MAX_WAIT, 2.0**number)
        assert longest / 2 <= wait <= longest
    assert len({pause_before(spot, 1, f"run_{n}") for n in range(20)}) > 10


async def test_others_go_on_while_a_node_rests_and_it_can_be_paused(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, spy("work", Fails(1)), other := spy("other"))
        nodes = {"try": tool("work", retries=1, backoff=20), "other": tool("other")}
        output = [{"from": "/nodes/try"}, {"from": "/nodes/other"}]
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": output}})
        events = await watch(g, run_id, until="node.finished")
        assert (await g.post(f"/runs/{run_id}/pause", {})).status == 200
        events = await watch(g, run_id, until="run.paused")
        assert other.calls
        assert (await g.post(f"/runs/{run_id}/cancel", {})).status == 200
        events = await watch(g, run_id)
        assert events[-1]["type"] == "run.cancelled"
        assert [d["status"] for d in data(events, "node.finished") if d["node"] == "try"] == [
            "failed"
        ]
        assert await left_open(g, run_id) == []


async def test_a_node_that_rests_ends_with_what_it_stands_in(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, spy("work", Fails(1)))
        inner = tool("work", retries=1, backoff=30)
        nodes = {"all": {"kind": "map", "over": [1], "node": inner, "timeout": 0.3}}
        run, _ = await ended(g, nodes, output={"from": "/nodes/all"})
        assert (run["status"], run["error"]["kind"]) == ("failed", "timeout")
        assert await left_open(g, run["id"]) == []


async def left_open(g: Harness, run_id: str) -> list[str]:
    """The tasks of a run that are not over."""
    rows = (await g.get(f"/runs/{run_id}/tasks", key=KEY)).json()["data"]
    over = ("completed", "failed", "skipped", "cancelled")
    return [row["task"] for row in rows if row["status"] not in over]


async def test_a_run_that_nobody_answers_ends_with_all_its_nodes(tmp_path: Path) -> None:
    async with gateway(tmp_path, "[runs]\nrun_ttl = 1\n") as g:
        use(g, spy("mail"))
        nodes = {
            "done": echo("done"),
            "ok": {"kind": "approval", "message": "?"},
            "mail": tool("mail", policy="approve"),
            "after": tool("mail", needs=["ok", "mail", "done"]),
        }
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": {"from": "/nodes/after"}}})
        events = await watch(g, run_id)
        assert events[-1]["type"] == "run.expired"
        run = await read(g, run_id)
        assert run["output"]["value"] == {"done": "done"}, "what was made is there"
        ends = {d["node"]: d["status"] for d in data(events, "node.finished")}
        assert ends == {"done": "completed", "ok": "cancelled", "mail": "cancelled"}
        assert skipped(events) == {"after": "ended", "output": "ended"}
        assert [e for e in events if e["type"] == "agent.finished"] == [], "no agent took part"
        assert await left_open(g, run_id) == []


async def test_what_another_try_can_t_change_is_tried_once(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        use(g, strict := spy("strict", parameters=schema))
        nodes = {"try": tool("strict", arguments={"n": {"from": "/input"}}, retries=3)}
        run, events = await ended(g, nodes, "x", output={"from": "/nodes/try"})
        assert run["error"]["kind"] == "invalid_arguments"
        assert len(data(events, "node.finished")) == 1
        assert strict.calls == []


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({}, "failed", None),
        ({"on_deny": "continue"}, "completed", "no: nobody answered in time"),
        ({"default": "approve"}, "completed", "yes: nobody answered in time"),
    ],
)
async def test_a_yes_or_no_that_nobody_gives_is_the_default(
    tmp_path: Path, fields: dict[str, Any], status: str, text: str | None
) -> None:
    async with gateway(tmp_path) as g:
        nodes = {
            "ok": {"kind": "approval", "message": "?", "expires_in": 1, **fields},
            "route": {
                "kind": "branch",
                "cases": [{"when": {"from": "/nodes/ok/approved", "equals": True}, "to": ["yes"]}],
                "else": ["no"],
            },
            "yes": echo("yes: {{ /nodes/ok/comment }}"),
            "no": echo("no: {{ /nodes/ok/comment }}"),
        }
        output = {"first": [{"from": "/nodes/yes"}, {"from": "/nodes/no"}]}
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": output}})
        events = await watch(g, run_id, until="run.waiting")
        asked = data(events, "input.requested")[0]
        assert asked["default"] == fields.get("default", "deny")
        shown = (await read(g, run_id))["interrupts"][0]
        assert shown["expires_at"] == asked["expires_at"]
        events = await watch(g, run_id)
        assert data(events, "approval.expired")[0]["node"] == "ok"
        run = await read(g, run_id)
        assert run["status"] == status
        if text is None:
            assert skipped(events)["ok"] == "denied"
        else:
            assert run["output"]["text"] == text
        late = await answered(g, run_id, asked["interrupt_id"], action="approve")
        assert late.status == 409
        tape = await g.state.runs.ledger.read(run_id, 0)
        assert replay(tape, g.state.runs.bench.check) is None


async def test_a_text_that_nobody_gives_is_an_error_like_any_other(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        ask = {"kind": "approval", "message": "?", "form": "text", "expires_in": 0.2}
        run, _ = await ended(g, {"ask": ask}, output={"from": "/nodes/ask"})
        assert (run["status"], run["error"]["kind"]) == ("failed", "expired")
        soft = {**ask, "on_error": "default_value", "default_value": "none"}
        run, _ = await ended(g, {"ask": soft}, output={"from": "/nodes/ask"})
        assert run["output"]["text"] == "none"


async def test_an_approval_lapses_while_others_still_work(tmp_path: Path) -> None:
    async def long(arguments: Any, context: Any) -> str:
        await asyncio.sleep(1.5)
        return "worked"

    async with gateway(tmp_path) as g:
        use(g, spy("long", long))
        nodes = {
            "ok": {"kind": "approval", "message": "?", "expires_in": 0.2, "on_deny": "continue"},
            "after": echo("{{ /nodes/ok/approved }}"),
            "long": tool("long"),
        }
        output = [{"from": "/nodes/after"}, {"from": "/nodes/long"}]
        run, events = await ended(g, nodes, output=output)
        assert run["output"]["value"] == ["false", "worked"]
        order = [e["type"] for e in events]
        assert order.index("approval.expired") < order.index("tool.completed")
        assert "run.waiting" not in order
        await idle(g)


async def test_an_inner_graph_refers_to_the_one_around_it(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        inner = {
            "nodes": {
                "deep": {
                    "kind": "loop",
                    "times": 1,
                    "node": echo("{{ /outer/outer/nodes/head }}{{ /outer/item }}"),
                }
            },
            "output": {"template": "{{ /nodes/deep }}{{ /outer/input/end }}"},
        }
        nodes = {
            "head": echo("<"),
            "flat": {
                "kind": "map",
                "over": ["a", "b"],
                "node": echo("{{ /outer/nodes/head }}{{ /item }}{{ /outer/settings/sep }}"),
            },
            "nested": {"kind": "map", "over": ["c"], "body": inner},
        }
        run, events = await ended(
            g,
            nodes,
            {"end": ">"},
            settings={"sep": {"default": ";", "schema": {"type": "string"}}},
            output=[{"from": "/nodes/flat"}, {"from": "/nodes/nested"}],
        )
        assert run["status"] == "completed", run
        assert run["output"]["value"] == [["<a;", "<b;"], ["<c>"]]
        order = [d["node"] for d in data(events, "node.started")]
        assert order.index("head") < order.index("flat"), "what is referred to comes first"


async def test_an_inner_workflow_is_not_begun_with_what_it_does_not_take(tmp_path: Path) -> None:
    inner = {
        "input_schema": {"type": "object", "required": ["n"]},
        "nodes": {"say": echo("n is {{ /input/n }}")},
        "output": {"from": "/nodes/say"},
    }
    async with gateway(tmp_path) as g:
        given = {"from": "/input"}
        for node in (
            {"kind": "workflow", "workflow": inner, "input": given},
            {"kind": "map", "over": [given], "body": inner},
            {"kind": "loop", "times": 1, "input": given, "body": inner},
        ):
            run, events = await ended(g, {"sub": node}, {"m": 1}, output={"from": "/nodes/sub"})
            assert (run["status"], run["error"]["kind"]) == ("failed", "input_invalid"), node
            assert "say" not in "".join(finished(events)), node
            run, _ = await ended(g, {"sub": node}, {"n": 1}, output={"from": "/nodes/sub"})
            assert run["status"] == "completed", run
