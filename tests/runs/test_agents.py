"""Agents as callers write them: what must be there, what is kept, what may be used how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from tests.harness import ADMIN, KEY, Answer, Harness, alias, gateway
from tests.runs.following import begin, data, watch
from tests.runs.tools import spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)


def agent(**fields: Any) -> dict[str, Any]:
    return {"agent": {"name": "helper", "model": "scripted", **fields}, "input": "go"}


async def put(g: Harness, name: str, body: Any) -> Answer:
    headers = {"authorization": f"Bearer {KEY}"}
    async with g.http.put(f"{g.url}/agents/{name}", json=body, headers=headers) as reply:
        return Answer(reply.status, dict(reply.headers), await reply.read())


async def test_a_key_s_run_is_told_again_whatever_has_become_of_its_agent(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("done")])
        await put(g, "mine", {"model": "scripted"})
        body, key = {"agent": "mine", "input": "go"}, {"idempotency-key": "one"}
        begun = await g.post("/runs", body, headers=key)
        headers = {"authorization": f"Bearer {KEY}"}
        async with g.http.delete(f"{g.url}/agents/mine", headers=headers) as reply:
            assert reply.status == 200
        again = await g.post("/runs", body, headers=key)
        assert (again.status, again.json()["id"]) == (201, begun.json()["id"])
        assert (await g.post("/runs", body)).status == 404
        other = await g.post("/runs", {**body, "input": "else"}, headers=key)
        assert other.status == 422


WHOLE: dict[str, Any] = {
    "model": "scripted",
    "description": "d",
    "instructions": "i",
    "tools": ["calculator", "agent:fixed", {"name": "mine", "parameters": {"type": "object"}}],
    "tool_policy": {"calculator": "approve"},
    "approvals": {"expires_in": 60.0, "default": "approve"},
    "handoffs": ["fixed"],
    "output_schema": {"type": "object"},
    "max_turns": 4,
    "parallel_tools": False,
    "context": "trim_history",
    "temperature": 0.5,
    "max_output_tokens": 99,
    "reasoning": {"effort": "low"},
    "budget": {"usd": 0.1, "tokens": 10, "tool_calls": 0, "seconds": 5.0},
    "on_budget": "wait",
    "contract": [
        "at_most 2 calculator",
        {"rule": "require mine before calculator", "on_violation": "fail"},
        "claims cite tool call ids or are marked as assumptions",
    ],
}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": ["calculator", "calculator"]}, "tools"),
        ({"tools": ["calculator", {"name": "calculator"}]}, "tools"),
        ({"tools": [{"name": "mine", "parameters": {"type": "nothing"}}]}, "tools"),
        ({"tools": ["calculator"], "tool_policy": {"calculater": "deny"}}, "tool_policy"),
        ({"tools": ["calculator"], "contract": ["at_most 1 calculater"]}, "contract"),
        ({"tools": ["calculator"], "contract": ["require x before calculator"]}, "contract"),
        ({"instructions": "Be brief.", "prompt": "support"}, "prompt"),
        ({"prompt": "nothing"}, "prompt.id"),
    ],
)
async def test_what_an_agent_is_told_of_must_be_there(
    tmp_path: Path, fields: Any, param: str
) -> None:
    """Else a misspelt ban or approval would be one that nobody keeps."""
    async with gateway(tmp_path, SCRIPTED) as g:
        answer = await g.post("/runs", agent(**fields))
        status, named = answer.status, answer.json()["error"]["param"]
        assert status in (400, 404)
        assert named == param
        assert (await g.get("/runs", key=KEY)).json()["data"] == []


async def test_a_prompt_that_an_agent_can_t_fill_is_refused_before_its_run(tmp_path: Path) -> None:
    """Each of its turns would fail, and the first would say so only then."""
    async with gateway(tmp_path, SCRIPTED) as g:
        for variable in ("string", {"type": "string", "default": "Ann"}):
            prompt = {"name": "p", "system": "For {{ who }}.", "variables": {"who": variable}}
            assert (await g.post("/admin/prompts", prompt, key=ADMIN)).status == 201
        answer = await g.post("/runs", agent(prompt="p@1"))
        error = answer.json()["error"]
        assert (answer.status, error["param"]) == (400, "prompt")
        assert "'who'" in error["message"]
        g.simulator.script("script", [Say("done")])
        await watch(g, await begin(g, agent(prompt="p@2")))
        assert "For Ann." in str(g.simulator.log[-1].body)


async def test_a_policy_may_speak_of_many_tools_and_the_nearest_word_counts(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, *(spy(name) for name in ("files__read", "files__write", "files__drop")))
        calls = [Call(f"files__{name}", "{}") for name in ("read", "write", "drop")]
        turns = [[*calls, Call("agent_child", '{"input": "x"}')], Say("done")]
        g.simulator.script("script", turns)
        tools = ["files__read", "files__*", "agent:child"]
        policy = {
            "files__*": "deny",
            "files__w*": "approve",
            "files__read": "allow",
            "agent:child": "deny",
        }
        body = agent(tools=tools, tool_policy=policy)
        run_id = await begin(g, {**body, "agents": [{"name": "child", "model": "scripted"}]})
        events = await watch(g, run_id, until="run.waiting")
        (started,) = data(events, "agent.started")
        names = [tool["name"] for tool in started["tools"]]
        assert names == ["files__read", "files__write", "files__drop", "agent_child"], "each once"
        asked = [one["tool"] for one in data(events, "approval.requested")]
        assert asked == ["files__write"]
        assert [one["reason"] for one in data(events, "tool.skipped")] == ["policy", "policy"]


@pytest.mark.parametrize("body", [WHOLE, {"model": "scripted"}, {"model": "m-chat", "prompt": "p"}])
async def test_what_is_read_of_an_agent_can_be_kept_again(tmp_path: Path, body: Any) -> None:
    fixed = '[agents.fixed]\nmodel = "scripted"\n'
    async with gateway(tmp_path, SCRIPTED, fixed) as g:
        assert (await put(g, "mine", body)).status == 201
        read = (await g.get("/agents/mine", key=KEY)).json()
        told = {name: read.pop(name) for name in ("object", "source", "version", "created_at")}
        assert (told["object"], told["source"], told["version"]) == ("agent", "store", 1)
        assert read == {"name": "mine", **body}
        assert (await put(g, "mine", read)).json()["version"] == 2
