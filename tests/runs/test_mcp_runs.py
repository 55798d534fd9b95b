"""Agents with the tools of MCP servers: from the first moment, and while a server is away."""

from __future__ import annotations

import sys
from pathlib import Path

from adapters.simulator import Call, Say
from tests.harness import alias, gateway
from tests.runs.following import begin, data, read, watch

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
PROGRAM = Path(__file__).parents[1] / "tools/mcp/program.py"
AWAY = '[mcp.away]\nurl = "http://127.0.0.1:9/mcp"\nallow_private = ["127.0.0.1/32"]\n'


def local(folder: Path) -> str:
    args = [str(PROGRAM), str(folder / "effects")]
    return f"[mcp.local]\ncommand = {sys.executable!r}\nargs = {args}\n"


async def test_a_run_may_be_begun_before_the_servers_are_reached(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, local(tmp_path), AWAY) as g:
        g.simulator.script("script", [Call("local__add", '{"a": 1, "b": 2}'), Say("done")])
        agent = {"model": "scripted", "tools": ["local__add", "away__search"]}
        run_id = await begin(g, {"agent": agent, "input": "go"})
        events = await watch(g, run_id, seconds=60)
        (started,) = data(events, "agent.started")
        assert [tool["name"] for tool in started["tools"]] == ["local__add"]
        assert started["missing"] == ["away__search"]
        assert (await read(g, run_id))["trace"][0]["content"] == "3"


async def test_a_name_that_a_server_has_not_is_refused(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, local(tmp_path)) as g:
        agent = {"model": "scripted", "tools": ["local__ad"]}
        refused = await g.post("/runs", {"agent": agent, "input": "go"})
        assert refused.status == 400
        assert "local__add" in refused.json()["error"]["message"]
