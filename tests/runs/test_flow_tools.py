"""Workflows and nodes as tools of an agent: the function schema, the child run, the result."""

from __future__ import annotations

import json
from pathlib import Path

from adapters.simulator import Call, Say
from gateway.app import check
from gateway.services.workflow_tools import alone
from tests.harness import alias, gateway
from tests.runs.following import begin, data, read, watch

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)

TABLES = """
[workflows.greet]
description = "Greets people."
input_schema = { type = "object", properties = { who = { type = "string" } }, required = ["who"] }
output = { template = "{{ /nodes/say }} ({{ /settings/tone }})" }
[workflows.greet.settings]
tone = { default = "calm", schema = { type = "string" }, open = true }
secret = { default = "x", schema = { type = "string" }, open = false }
[workflows.greet.nodes.first]
kind = "call"
model = "m-openai"
prompt = "{{ /input/who }}"
[workflows.greet.nodes.say]
kind = "call"
model = "m-openai"
prompt = "Hello {{ /nodes/first }}"
"""


async def test_a_workflow_and_a_node_are_tools_of_an_agent(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, TABLES) as g:
        turns = [
            Call(
                "workflow_greet",
                json.dumps({"input": {"who": "Ann"}, "settings": {"tone": "loud"}}),
            ),
            Call("node_greet_say", json.dumps({"input": {"first": "Bob"}})),
            Say("done"),
        ]
        g.simulator.script("script", turns)
        tools = ["workflow:greet", "node:greet/say"]
        run_id = await begin(g, {"agent": {"model": "scripted", "tools": tools}, "input": "go"})
        events = await watch(g, run_id)
        run = await read(g, run_id)
        assert run["status"] == "completed", run
        said = [row["content"] for row in run["trace"]]
        assert said == ["Hello Ann (loud)", "Hello Bob"]
        child = await read(g, run["trace"][0]["child_run_id"])
        assert (child["kind"], child["parent_run_id"]) == ("workflow", run_id)
        offered = {t["name"]: t for t in data(events, "agent.started")[0]["tools"]}
        schema = offered["workflow_greet"]["parameters"]["properties"]
        assert schema["input"]["required"] == ["who"]
        assert list(schema["settings"]["properties"]) == ["tone"], "only the open ones"
        assert offered["node_greet_say"]["parameters"]["properties"]["input"]["required"] == [
            "first"
        ]


async def test_what_is_not_there_is_refused_before_the_run(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, TABLES) as g:
        for tool in ("workflow:none", "node:greet/none", "node:none/x"):
            agent = {"model": "scripted", "tools": [tool]}
            answer = await g.post("/runs", {"agent": agent, "input": "go"})
            assert answer.status == 400, tool


def test_a_node_alone_reads_from_its_input() -> None:
    node = {
        "kind": "tool",
        "tool": "t",
        "needs": ["a"],
        "arguments": {
            "a": {"from": "/nodes/a/x/0"},
            "b": {"template": "{{ /input/q }} and {{ /nodes/b }} in {{ /settings/s }}"},
        },
    }
    flow = {"nodes": {"n": node}, "input_schema": {"type": "object"}}
    made = alone(flow, "n")
    assert made["nodes"]["n"] == {
        "kind": "tool",
        "tool": "t",
        "arguments": {
            "a": {"from": "/input/a/x/0"},
            "b": {"template": "{{ /input/input/q }} and {{ /input/b }} in {{ /settings/s }}"},
        },
    }
    assert made["input_schema"]["required"] == ["a", "b", "input"]
    assert made["input_schema"]["properties"]["input"] == {"type": "object"}


async def test_every_kind_of_node_can_be_a_tool(tmp_path: Path) -> None:
    """Each is asked once, by an agent, for what it would have found around it."""
    inner = {"kind": "call", "model": "m-openai", "prompt": "{{ /outer/nodes/a }}{{ /index }}"}
    helper = {"name": "helper", "model": "m-openai"}
    roles = dict.fromkeys(("coordinator", "planner", "publisher"), "helper")
    nodes = {
        "a": {"kind": "call", "model": "m-openai", "prompt": "a"},
        "call": {"kind": "call", "model": "m-openai", "prompt": "{{ /nodes/a }}!"},
        "agent": {"kind": "agent", "agent": helper, "prompt": "{{ /nodes/a }}?"},
        "tool": {"kind": "tool", "tool": "calculator",
                 "arguments": {"expression": {"from": "/nodes/a"}}},
        "branch": {"kind": "branch", "cases": [
            {"when": {"from": "/nodes/a", "equals": "7"}, "to": ["call"]}], "else": ["agent"]},
        "map": {"kind": "map", "over": {"from": "/input"}, "node": inner},
        "loop": {"kind": "loop", "times": 2, "node": inner},
        "approval": {"kind": "approval", "message": "{{ /nodes/a }}?", "default": "approve",
                     "expires_in": 0.1},
        "workflow": {"kind": "workflow", "workflow": "greet",
                     "input": {"who": {"from": "/nodes/a"}}},
        "output": {"kind": "output", "value": {"said": {"from": "/nodes/a"}}, "needs": ["call"]},
        "team": {"kind": "team", "input": {"from": "/nodes/a"}, "members": ["helper"], **roles},
    }  # fmt: skip
    wanted = {
        "call": ({"a": "x"}, "x!"),
        "agent": ({"a": "x"}, "x?"),
        "tool": ({"a": "2*3"}, "6"),
        "branch": ({"a": "7"}, '{"case":0,"to":[]}'),
        "map": ({"a": "x", "input": [1, 2]}, '["x0","x1"]'),
        "loop": ({"a": "x"}, "x2"),
        "approval": ({"a": "x"}, '{"approved":true,"comment":"nobody answered in time"}'),
        "workflow": ({"a": "Ann"}, "Hello Ann (calm)"),
        "output": ({"a": "x"}, '{"said":"x"}'),
    }
    agents = "[agents.helper]\nmodel = 'm-openai'\n"
    flow = f"[workflows.all]\nnodes = {toml(nodes)}\n"
    async with gateway(tmp_path, SCRIPTED, TABLES, agents, flow) as g:
        assert check(g.state.snapshot) == []
        for kind, (given, said) in wanted.items():
            call = Call(f"node_all_{kind}", json.dumps({"input": given}))
            g.simulator.script("script", [call, Say("done")])
            asked = {"agent": {"model": "scripted", "tools": [f"node:all/{kind}"]}, "input": "go"}
            run_id = await begin(g, asked)
            await watch(g, run_id)
            run = await read(g, run_id)
            assert run["status"] == "completed", (kind, run)
            assert [row["content"] for row in run["trace"]] == [said], kind
        team = {"agent": {"model": "scripted", "tools": ["node:all/team"]}, "input": "go"}
        assert (await g.post("/runs", team)).status == 201


def toml(value: object) -> str:
    """JSON data as TOML's inline form."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    return json.dumps(value)
