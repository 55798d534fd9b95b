"""An agent with a tool, over HTTP: begun, followed, read."""

from __future__ import annotations

from pathlib import Path

from tests.harness import KEY, gateway
from tests.runs.following import types, watch

ASKED = {
    "agent": {"model": "m-openai", "tools": ["calculator"], "instructions": "Be brief."},
    "input": 'call calculator {"expression": "1+2"}',
}


async def test_an_agent_calls_a_tool_and_answers(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        begun = await g.post("/runs", ASKED)
        assert begun.status == 201
        run_id = begun.json()["id"]
        assert begun.headers["location"] == f"/runs/{run_id}"
        events = await watch(g, run_id)
        assert types(events) == [
            "run.created",
            "run.started",
            "agent.started",
            "model.started",
            "model.finished",
            "tool.requested",
            "tool.intent",
            "tool.completed",
            "model.started",
            "message.delta",
            "message.completed",
            "model.finished",
            "agent.finished",
            "run.completed",
        ]
        assert [event["seq"] for event in events] == list(range(1, 15))
        read = (await g.get(f"/runs/{run_id}", key=KEY)).json()
        assert read["status"] == "completed"
        assert read["output"]["text"] == "The tool calculator says: 3"
        assert read["usage"] == events[-1]["data"]["usage"]
        assert read["usage"]["cost_nano"] > 0
        assert [row["outcome"] for row in read["trace"]] == ["completed"]
        again = await watch(g, run_id, after=10)
        assert again == events[10:], "replay is reading"


async def test_a_run_can_be_followed_from_its_beginning_in_the_same_request(
    tmp_path: Path,
) -> None:
    async with gateway(tmp_path) as g:
        answer = await g.post("/runs", {**ASKED, "stream": True})
        assert answer.status == 200
        assert answer.body.startswith(b": ping\n\nretry: ")
        assert answer.data()[0]["type"] == "run.created"
        assert answer.data()[-1]["type"] == "run.completed"
        assert answer.headers["x-gateway-run"] == answer.data()[0]["run_id"]
