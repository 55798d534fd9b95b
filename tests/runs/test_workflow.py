"""Workflows over HTTP: what runs together, is skipped, waits, is never done twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from gateway.runs.rewind import replay
from gateway.tools.base import ToolOutcome
from tests.harness import KEY, Harness, alias, gateway
from tests.runs.following import answered, begin, data, read, watch
from tests.runs.tools import slow, spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)

REFUND = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def echo(prompt: str, **more: Any) -> dict[str, Any]:
    return {"kind": "call", "model": "m-openai", "prompt": prompt, **more}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "tool", "tool": name, **more}


async def ended(
    g: Harness, nodes: dict[str, Any], given: Any = None, **more: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    run_id = await begin(g, {"workflow": {"nodes": nodes, **more}, "input": given})
    events = await watch(g, run_id)
    return await read(g, run_id), events


def finished(events: list[dict[str, Any]]) -> dict[str, Any]:
    return {d["node"]: d.get("output") for d in data(events, "node.finished")}


def skipped(events: list[dict[str, Any]]) -> dict[str, str]:
    return {d["node"]: d["reason"] for d in data(events, "node.skipped")}


async def test_calls_of_conversations_at_once_are_told_apart(tmp_path: Path) -> None:
    """Each answer calls its first call the same, as servers do that count from 0."""
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, work := spy("work"))
        g.simulator.script("script", [Call("work", "{}", id="call_0"), Say("done")], by="turn")
        agent = {"model": "scripted", "tools": ["work"]}
        names = [f"n{n}" for n in range(8)]
        nodes = {name: {"kind": "agent", "agent": agent, "prompt": "go"} for name in names}
        run, events = await ended(g, nodes, output=[{"from": f"/nodes/{n}"} for n in names])
        assert run["output"]["value"] == ["done"] * 8
        asked = {d["call_id"] for d in data(events, "tool.requested")}
        assert len(asked) == 8
        assert {d["call_id"] for d in data(events, "tool.completed")} == asked
        assert len(set(work.keys)) == len(work.keys) == 8


async def test_outputs_flow_typed_by_pointer_and_as_text_by_template(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, lookup := spy("lookup"))
        nodes = {
            "hello": echo("Hello {{ /input/name }}, {{ /input/tags }}"),
            "look": tool("lookup", arguments={"tags": {"from": "/input/tags"}, "by": "id"}),
        }
        output = {"said": {"from": "/nodes/hello"}, "n": {"from": "/input/tags/1"}}
        run, events = await ended(g, nodes, {"name": "Ann", "tags": [1, 2]}, output=output)
        assert run["status"] == "completed", run
        assert run["output"]["value"] == {"said": "Hello Ann, [1,2]", "n": 2}
        assert lookup.calls == [{"tags": [1, 2], "by": "id"}]
        assert finished(events)["look"] == "lookup done"


async def test_examples_and_history_stand_before_the_prompt(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        nodes = {
            "say": echo(
                "last",
                examples=[{"input": "in", "output": "out"}],
                history="/input/earlier",
            )
        }
        earlier = [{"role": "user", "content": "once"}, {"role": "assistant", "content": "yes"}]
        await ended(g, nodes, {"earlier": earlier}, output={"from": "/nodes/say"})
        said = [m["content"] for m in g.simulator.log.of("gpt-5.2")[0].body["input"]]
        texts = [one if isinstance(one, str) else one[0]["text"] for one in said]
        assert texts == ["once", "yes", "in", "out", "last"]


async def test_ready_nodes_run_together(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, spy("slow", slow(0.4)))
        nodes = {name: tool("slow") for name in "abc"}
        output = [{"from": f"/nodes/{name}"} for name in "abc"]
        run, _ = await ended(g, nodes, output=output)
        assert run["output"]["value"] == ["slow but done"] * 3
        assert run["usage"]["seconds"] < 1.0, "one after the other would take 1.2 s"


async def test_a_failed_node_skips_what_needs_it_and_lets_the_rest_finish(tmp_path: Path) -> None:
    async def broken(arguments: Any, context: Any) -> str:
        raise RuntimeError

    async with gateway(tmp_path) as g:
        use(g, spy("broken", broken), spy("slow", slow(0.2)))
        nodes = {
            "bad": tool("broken"),
            "after": tool("slow", needs=["bad"]),
            "good": tool("slow"),
        }
        run, events = await ended(g, nodes, output={"from": "/nodes/good"})
        assert run["status"] == "failed"
        assert run["error"]["node"] == "bad"
        assert run["error"]["kind"] == "raised"
        assert skipped(events) == {"after": "upstream_failed"}
        assert finished(events)["good"] == "slow but done"
        assert run["output"]["value"]["good"] == "slow but done", "what was made is there"


@pytest.mark.parametrize(
    ("rules", "status", "value"),
    [
        ({"on_error": "skip"}, "completed", "plan b"),
        ({"on_error": "default_value", "default_value": None}, "completed", "plan b"),
        ({"on_error": "default_value", "default_value": "d"}, "completed", "d"),
        ({"retries": 1}, "completed", "second"),
        ({}, "failed", None),
    ],
)
async def test_what_a_node_does_about_its_errors(
    tmp_path: Path, rules: dict[str, Any], status: str, value: Any
) -> None:
    tries: list[int] = []

    async def once(arguments: Any, context: Any) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError
        return "second"

    async with gateway(tmp_path) as g:
        use(g, spy("once", once))
        nodes = {
            "try": tool("once", **rules),
            "b": echo("plan b"),
        }
        output = {"first": [{"from": "/nodes/try"}, {"from": "/nodes/b"}]}
        run, events = await ended(g, nodes, output=output)
        assert run["status"] == status
        assert run["output"]["value"] == value if status == "completed" else True
        assert len(tries) == 1 + rules.get("retries", 0)
        attempts = [d["attempt"] for d in data(events, "node.started") if d["node"] == "try"]
        assert attempts == list(range(1, len(tries) + 1))


async def test_a_branch_takes_the_first_case_that_holds(tmp_path: Path) -> None:
    nodes = {
        "route": {
            "kind": "branch",
            "cases": [
                {"when": {"from": "/input/n", "gt": 10}, "to": ["big"]},
                {"when": {"from": "/input/n", "gt": 5}, "to": ["middle"]},
            ],
            "else": ["small"],
        },
        "big": echo("big"),
        "middle": echo("middle"),
        "small": echo("small"),
    }
    first = {"first": [{"from": f"/nodes/{n}"} for n in ("big", "middle", "small")]}
    async with gateway(tmp_path) as g:
        for n, wanted in ((11, "big"), (7, "middle"), (1, "small")):
            run, events = await ended(g, nodes, {"n": n}, output=first)
            assert run["output"]["text"] == wanted
            assert set(skipped(events)) == {"big", "middle", "small"} - {wanted}
            assert set(skipped(events).values()) == {"branch"}


async def test_a_map_keeps_the_order_within_its_bound(tmp_path: Path) -> None:
    running = most = 0

    async def work(arguments: Any, context: Any) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await slow(0.05 * (4 - arguments["n"] % 4))(arguments, context)
        running -= 1
        return f"did {arguments['n']}"

    async with gateway(tmp_path) as g:
        use(g, spy("work", work))
        nodes = {
            "all": {
                "kind": "map",
                "over": {"from": "/input"},
                "concurrency": 2,
                "node": tool("work", arguments={"n": {"from": "/item"}}),
            }
        }
        run, _ = await ended(g, nodes, [1, 2, 3, 4, 5], output={"from": "/nodes/all"})
        assert run["output"]["value"] == [f"did {n}" for n in (1, 2, 3, 4, 5)]
        assert most == 2
        none, _ = await ended(g, nodes, [], output={"from": "/nodes/all"})
        assert none["output"]["value"] == []


async def test_a_loop_ends_by_its_condition_and_remembers(tmp_path: Path) -> None:
    async def count(arguments: Any, context: Any) -> Any:
        n = arguments["n"] + 1
        return ToolOutcome((), structured={"n": n, "loop_history": ["never kept"]})

    async with gateway(tmp_path) as g:
        use(g, counter := spy("count", count))
        loop = {
            "kind": "loop",
            "input": {"n": 0, "keep": "me"},
            "until": {"from": "/output/n", "ge": 3},
            "max": 5,
            "history": 1,
            "body": {
                "nodes": {
                    "step": tool(
                        "count",
                        arguments={
                            "n": {"from": "/input/n"},
                            "kept": {"from": "/input/keep"},
                            "seen": {"from": "/loop_history"},
                        },
                    )
                },
                "output": {"from": "/nodes/step"},
            },
        }
        run, events = await ended(g, {"again": loop}, output={"from": "/nodes/again/n"})
        assert run["output"]["value"] == 3
        assert [c["n"] for c in counter.calls] == [0, 1, 2]
        assert {c["kept"] for c in counter.calls} == {"me"}, "an output is merged over the input"
        assert counter.calls[2]["seen"] == [{"turn": 2, "outputs": {"step": {"n": 2}}}]
        assert "again/3/step" in finished(events)
        never = {**loop, "until": {"from": "/output/n", "ge": 99}}
        run, _ = await ended(g, {"again": never}, output={"from": "/nodes/again/n"})
        assert (run["status"], run["reason"]) == ("failed", "max_turns")


async def test_a_person_is_asked_and_what_waits_behind_is_pending(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, send := spy("send"), other := spy("other"))
        nodes = {
            "other": tool("other"),
            "ok": {"kind": "approval", "message": "Send {{ /input }}?"},
            "send": tool("send", needs=["ok"]),
        }
        run_id = await begin(
            g, {"workflow": {"nodes": nodes, "output": {"from": "/nodes/send"}}, "input": "it"}
        )
        events = await watch(g, run_id, until="run.waiting")
        asked = data(events, "input.requested")[0]
        assert asked["arguments"]["message"] == "Send it?"
        assert events[-1]["data"]["for"] == "approval"
        assert other.calls
        assert not send.calls
        rows = (await g.get(f"/runs/{run_id}/tasks", key=KEY)).json()["data"]
        status = {row["task"]: row["status"] for row in rows if row["kind"] == "node"}
        assert status == {
            "other": "completed",
            "ok": "paused",
            "send": "pending",
            "output": "pending",
        }
        wrong = await answered(g, run_id, asked["interrupt_id"], action="result", content="yes")
        assert wrong.status == 400
        right = await answered(g, run_id, asked["interrupt_id"], action="approve")
        assert right.status == 200, right.body
        await watch(g, run_id)
        run = await read(g, run_id)
        assert run["output"]["text"] == "send done"
        assert len(other.calls) == 1, "what is finished never runs again"


async def test_a_no_skips_what_depends_on_it(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, send := spy("send"))
        nodes = {
            "ok": {"kind": "approval", "message": "Send?"},
            "send": tool("send", needs=["ok"]),
        }
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": {"from": "/nodes/send"}}})
        events = await watch(g, run_id, until="run.waiting")
        iid = data(events, "input.requested")[0]["interrupt_id"]
        assert (await answered(g, run_id, iid, action="deny", reason="no")).status == 200
        events = await watch(g, run_id)
        assert skipped(events) == {"ok": "denied", "send": "upstream_skipped",
                                   "output": "upstream_skipped"}  # fmt: skip
        run = await read(g, run_id)
        assert (run["status"], run["reason"]) == ("failed", "no_output")
        assert "denied" in run["error"]["message"]
        assert not send.calls


async def test_an_agent_node_is_a_loop_in_the_same_ledger(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("dig"))
        g.simulator.script("script", [Call("dig", "{}"), Say("found it")])
        nodes = {
            "research": {
                "kind": "agent",
                "agent": {"name": "digger", "model": "scripted", "tools": ["dig"]},
                "prompt": "dig",
            }
        }
        run, events = await ended(g, nodes, output={"from": "/nodes/research"})
        assert run["output"]["text"] == "found it"
        turns = [e for e in events if e["type"] == "model.finished"]
        assert [(e["agent"], e["step"]) for e in turns] == [
            ("digger", "research/1"),
            ("digger", "research/2"),
        ]
        assert len([e for e in events if e["type"] == "agent.finished"]) == 1


async def test_a_node_out_of_time_is_stopped_and_the_rest_goes_on(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, spy("slow", slow(30)), spy("quick", slow(0.3)))
        nodes = {
            "late": tool("slow", timeout=0.15, on_error="default_value", default_value="gave up"),
            "quick": tool("quick"),
        }
        output = [{"from": "/nodes/late"}, {"from": "/nodes/quick"}]
        run, events = await ended(g, nodes, output=output)
        assert run["output"]["value"] == ["gave up", "slow but done"]
        late = next(d for d in data(events, "node.finished") if d["node"] == "late")
        assert late["error"]["kind"] == "timeout"
        assert run["usage"]["seconds"] < 10


async def test_a_nested_workflow_and_an_open_setting(tmp_path: Path) -> None:
    inner = {
        "input_schema": {"type": "object", "required": ["who"]},
        "nodes": {"greet": echo("Hi {{ /input/who }}")},
        "output": {"from": "/nodes/greet"},
    }
    outer = {
        "settings": {"tone": {"default": "calm", "schema": {"type": "string"}, "open": True}},
        "nodes": {"sub": {"kind": "workflow", "workflow": inner, "input": {"who": "you"}}},
        "output": {"template": "{{ /nodes/sub }} ({{ /settings/tone }})"},
    }
    async with gateway(tmp_path) as g:
        run_id = await begin(g, {"workflow": outer, "settings": {"tone": "loud"}})
        await watch(g, run_id)
        assert (await read(g, run_id))["output"]["text"] == "Hi you (loud)"
        bad = await g.post("/runs", {"workflow": outer, "settings": {"tone": 1, "x": 2}})
        assert bad.status == 400
        assert "settings.tone" in bad.json()["error"]["message"]
        assert "settings.x" in bad.json()["error"]["message"]


async def test_a_cancelled_workflow_ends_once_and_says_how_each_node_stood(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, spy("slow", slow(30)))
        nodes = {"long": tool("slow"), "after": tool("slow", needs=["long"])}
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": {"from": "/nodes/after"}}})
        await watch(g, run_id, until="tool.intent")
        assert (await g.post(f"/runs/{run_id}/cancel", {})).status == 200
        events = await watch(g, run_id)
        assert events[-1]["type"] == "run.cancelled"
        states = {d["node"]: d["status"] for d in data(events, "node.finished")}
        assert states == {"long": "cancelled"}
        assert skipped(events) == {"after": "ended", "output": "ended"}


async def test_a_workflows_tape_gives_the_same_events(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        use(g, spy("slow", slow(0.1)), spy("quick"))
        step = tool("slow", arguments={"n": {"from": "/item"}})
        nodes = {
            "say": echo("hi"),
            "quick": tool("quick"),
            "all": {"kind": "map", "over": [1, 2, 3], "node": step},
            "ok": {"kind": "approval", "message": "?", "needs": ["all"]},
            "route": {
                "kind": "branch",
                "cases": [{"when": {"from": "/nodes/ok/approved", "equals": True}, "to": ["yes"]}],
                "else": ["no"],
            },
            "yes": echo("yes {{ /nodes/say }}"),
            "no": echo("no"),
        }
        output = {"first": [{"from": "/nodes/yes"}, {"from": "/nodes/no"}]}
        run_id = await begin(g, {"workflow": {"nodes": nodes, "output": output}})
        events = await watch(g, run_id, until="run.waiting")
        iid = data(events, "input.requested")[0]["interrupt_id"]
        await answered(g, run_id, iid, action="approve")
        await watch(g, run_id)
        tape = await g.state.runs.ledger.read(run_id, 0)
        assert replay(tape, g.state.runs.bench.check) is None
        place = next(n for n, e in enumerate(tape) if e.type == "node.skipped")
        assert replay(tape[:place] + tape[place + 1 :], g.state.runs.bench.check) is not None
