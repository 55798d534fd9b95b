"""A workflow is checked whole before it starts: one list, each flaw with its path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.app import check as check_all
from gateway.runs.workflow_check import Known, check
from gateway.services.workflow_compile import compiled
from tests.harness import gateway

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
          "additionalProperties": False}  # fmt: skip
INPUT = {**NUMBER, "properties": {**NUMBER["properties"], "list": {
    "type": "array", "items": {"type": "integer"}}}}  # fmt: skip


def call(prompt: str = "hi", **more: Any) -> dict[str, Any]:
    return {"kind": "call", "model": "m", "prompt": prompt, **more}


def flaws(nodes: dict[str, Any], parameters: Any = None, **more: Any) -> dict[str, str]:
    made = compiled({"nodes": nodes, **more}, "w", {}.get)
    answers = {agent.name: agent.output_schema for agent in made.agents}
    found = [*made.flaws, *check(made.workflow, Known(answers, parameters or {}))]
    return {flaw.path: flaw.message for flaw in found}


FROM_A = {"from": "/nodes/a"}

POSITIVE = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
CASE = "nodes.a.cases[0].when"
TAKES_TEXT = {
    "input_schema": {"type": "string"},
    "nodes": {"b": call("{{ /input }}")},
    "output": {"from": "/nodes/b"},
}


def when(condition: Any) -> dict[str, Any]:
    return {"kind": "branch", "cases": [{"when": condition, "to": []}]}


CASES: list[tuple[dict[str, Any], Any, str, str]] = [
    ({"a": call("{{ /nodes/b }}"), "b": call("{{ /nodes/a }}")}, FROM_A, "nodes", "wait for"),
    ({"a": call(needs=["x"])}, FROM_A, "nodes.a.needs", "no node 'x'"),
    ({"a": call("{{ /nodes/x }}")}, FROM_A, "nodes.a.prompt", "no node 'x'"),
    ({"a": call("{{ /settings/x }}")}, FROM_A, "nodes.a.prompt", "no setting 'x'"),
    ({"a": call("{{ /wrong }}")}, FROM_A, "nodes.a.prompt", "begins with one of"),
    ({"a": call()}, None, "nodes", "no output"),
    ({"a": call(), "b": call()}, FROM_A, "nodes.b", "leads to nothing"),
    ({"a": call()}, {"from": "/nodes/a/x"}, "nodes.output.value", "no 'x' in a value"),
    (
        {"a": call(output_schema=NUMBER)},
        {"from": "/nodes/a/m"},
        "nodes.output.value",
        "no field 'm'",
    ),
    (
        {"a": {"kind": "map", "over": {"from": "/input/n"}, "node": call()}},
        FROM_A,
        "nodes.a.over",
        "integer can't be array",
    ),
    (
        {"a": {"kind": "tool", "tool": "t", "arguments": {"n": "one"}}},
        FROM_A,
        "nodes.a.arguments",
        "string can't be integer",
    ),
    (
        {"a": {"kind": "tool", "tool": "t", "arguments": {}}},
        FROM_A,
        "nodes.a.arguments",
        "required field 'n' is missing",
    ),
    (
        {"a": {"kind": "loop", "times": 3, "max": 2, "node": call()}},
        FROM_A,
        "nodes.a.times",
        "more than max",
    ),
    ({"a": {"kind": "loop", "node": call()}}, FROM_A, "nodes.a", "times or until"),
    (
        {"a": {"kind": "loop", "until": {"from": "/output", "is": 1}, "node": call()}},
        FROM_A,
        "nodes.a.until",
        "no test 'is'",
    ),
    (
        {
            "a": {
                "kind": "branch",
                "cases": [{"when": {"from": "/input", "equals": 1}, "to": ["x"]}],
            }
        },
        FROM_A,
        "nodes.a.cases",
        "no node 'x'",
    ),
    (
        {"a": call(output_schema=NUMBER, on_error="default_value", default_value="x")},
        FROM_A,
        "nodes.a.default_value",
        "string can't be object",
    ),
    ({"a": call(on_error="default_value")}, FROM_A, "nodes.a", "go together"),
    (
        {"a": {"kind": "workflow", "workflow": "none"}},
        FROM_A,
        "nodes.a.workflow",
        "no workflow 'none'",
    ),
    (
        {"a": {"kind": "map", "over": [1], "body": {"nodes": {"b": call("{{ /nodes/z }}")}}}},
        FROM_A,
        "nodes.a.body.nodes.b.prompt",
        "no node 'z'",
    ),
    ({"a": call("{{ /item }}")}, FROM_A, "nodes.a.prompt", "begins with one of"),
    ({"a": call("Dear {{ name }}")}, FROM_A, "nodes.a.prompt", "is no reference"),
    ({"a": call("Dear {{ /input/n")}, FROM_A, "nodes.a.prompt", "is no reference"),
    ({"a": call({"from": 3})}, FROM_A, "nodes.a.prompt", "JSON pointer as a text"),
    ({"a": call()}, {"template": 5}, "nodes.output.value", "'template' takes a text"),
    ({"a": call()}, {"first": 5}, "nodes.output.value", "'first' takes a list"),
    ({"a": when({"from": "/input/n", "in": 3})}, FROM_A, CASE, "'in' takes a list"),
    ({"a": when({"from": "/input/n", "gt": "x"})}, FROM_A, CASE, "'gt' takes a number"),
    ({"a": when({"all": {"from": "/input"}})}, FROM_A, CASE, "'all' takes a list"),
    ({"a": when({"from": "/input/n", "equals": "x"})}, FROM_A, CASE, "can never hold"),
    ({"a": when({"from": "/input", "gt": 1})}, FROM_A, CASE, "object is no number"),
    (
        {"a": {"kind": "map", "over": [1], "node": call("{{ /nodes/b }}")}, "b": call()},
        FROM_A,
        "nodes.a.node.prompt",
        "/outer/nodes/b",
    ),
    (
        {"a": {"kind": "map", "over": [1], "node": call("{{ /outer/nodes/b }}")}},
        FROM_A,
        "nodes.a.node.prompt",
        "no node 'b'",
    ),
    (
        {"a": {"kind": "map", "over": [1], "node": {"kind": "call", "model": "m", "x": 1}}},
        FROM_A,
        "nodes.a.node.prompt",
        "is required",
    ),
    (
        {"a": {"kind": "map", "over": {"from": "/input/list"}, "body": TAKES_TEXT}},
        FROM_A,
        "nodes.a.over",
        "integer can't be string",
    ),
]


@pytest.mark.parametrize(("nodes", "output", "path", "text"), CASES)
def test_each_flaw_has_its_path(nodes: Any, output: Any, path: str, text: str) -> None:
    found = flaws(nodes, {"t": NUMBER}, output=output, input_schema=INPUT)
    assert text in found.get(path, ""), found


def test_a_node_of_two_cases_is_unreachable() -> None:
    branch = {
        "kind": "branch",
        "cases": [{"when": {"from": "/input", "equals": 1}, "to": ["a"]}],
        "else": ["b"],
    }
    both = call("{{ /nodes/a }} {{ /nodes/b }}")
    nodes = {"r": branch, "a": call(), "b": call(), "both": both}
    assert "unreachable" in flaws(nodes, output={"from": "/nodes/both"})["nodes.both"]
    either = {**nodes, "both": {**both, "join": "any"}}
    assert "nodes.both" not in flaws(either, output={"from": "/nodes/both"})


def test_a_whole_workflow_has_no_flaws() -> None:
    nodes = {
        "a": call(output_schema=NUMBER),
        "b": {"kind": "tool", "tool": "t", "arguments": {"n": {"from": "/nodes/a/n"}}},
    }
    assert flaws(nodes, {"t": NUMBER}, output={"from": "/nodes/b"}) == {}


def test_a_workflow_that_contains_itself_is_refused() -> None:
    written = {"w": {"nodes": {"a": {"kind": "workflow", "workflow": "w"}}, "output": FROM_A}}
    made = compiled(written["w"], "w", written.get)
    assert "contains itself" in made.flaws[0].message


async def test_what_is_not_there_is_told_with_the_rest(tmp_path: Path) -> None:
    """Shapes, agents, models, tools, schemas and the graph: one list, each with its path."""
    bad = {"type": "nonsense"}
    nodes = {
        "call": call(output_schema=bad) | {"model": "nomodel"},
        "agent": {"kind": "agent", "agent": "nobody", "prompt": "x"},
        "inline": {
            "kind": "agent",
            "agent": {"model": "nomodel", "tools": ["notool"], "handoffs": ["nobody"]},
            "prompt": "x",
        },
        "tool": {"kind": "tool", "tool": "notool"},
        "default": call(output_schema=POSITIVE, on_error="default_value", default_value={"n": 0}),
        "args": {"kind": "tool", "tool": "calculator", "arguments": {"expression": 3}},
        "ask": {"kind": "approval", "message": "?", "form": "schema", "schema": bad},
        "ring": call("{{ /nodes/ring }}"),
    }
    settings = {"tone": {"default": 1, "schema": {"type": "string"}}}
    async with gateway(tmp_path) as g:
        body = {"nodes": nodes, "settings": settings, "input_schema": bad}
        answer = await g.post("/runs", {"workflow": body, "settings": {"none": 1}})
        assert (answer.status, answer.json()["error"]["code"]) == (400, "invalid_workflow")
        found = {one["path"] for one in answer.json()["error"]["errors"]}
        assert found >= {
            "nodes",
            "input_schema",
            "settings.tone.default",
            "settings.none",
            "nodes.call.model",
            "nodes.call.output_schema",
            "nodes.agent.agent",
            "nodes.inline.agent",
            "nodes.inline.agent.model",
            "nodes.inline.agent.tools",
            "nodes.tool.tool",
            "nodes.default.default_value",
            "nodes.args.arguments",
            "nodes.ask.schema",
        }
        shapeless = {"nodes": {"a": {"kind": "call"}, "b": {"kind": "tool", "tool": "x", "y": 1}}}
        error = (await g.post("/runs", {"workflow": shapeless})).json()["error"]
        paths = [one["path"] for one in error["errors"]]
        assert paths == ["nodes.a.model", "nodes.a.prompt", "nodes.b.y"]


async def test_all_flaws_come_at_once_and_no_run_is_made(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        nodes = {"a": call("{{ /nodes/x }}"), "b": call(needs=["y"])}
        answer = await g.post("/runs", {"workflow": {"nodes": nodes}, "input": 1})
        assert answer.status == 400
        error = answer.json()["error"]
        assert error["code"] == "invalid_workflow"
        for text in ("no node 'x'", "no node 'y'", "no output"):
            assert text in error["message"]
        misfit = {"nodes": {"a": call() | {"model": "m-openai"}}, "output": FROM_A,
                  "input_schema": NUMBER}  # fmt: skip
        answer = await g.post("/runs", {"workflow": misfit, "input": {"n": "x"}})
        assert answer.status == 400
        assert "input" in answer.json()["error"]["message"]


async def test_the_configurations_workflows_are_proved_before_the_port_opens(
    tmp_path: Path,
) -> None:
    table = """
[workflows.bad.nodes.a]
kind = "call"
model = "none"
prompt = "{{ /nodes/x }}"

[workflows.bad.nodes.b]
kind = "tool"
tool = "calculator"
arguments = { expression = 3 }

[agents.lost]
model = "m-openai"
tools = ["workflow:nowhere", "node:bad/c", "notool"]
"""
    async with gateway(tmp_path, table) as g:
        told = check_all(g.state.snapshot)
    problems = {p.where: p.message for p in told}
    assert "no node 'x'" in problems["workflows.bad.nodes.a.prompt"]
    assert "no output" in problems["workflows.bad.nodes"]
    assert "no chat model 'none'" in problems["workflows.bad.nodes.a.model"]
    assert "integer can't be string" in problems["workflows.bad.nodes.b.arguments"]
    lost = " ".join(p.message for p in told if p.where == "agents.lost.tools")
    for text in ("no workflow 'nowhere'", "no node 'c'", "no tool 'notool'"):
        assert text in lost
