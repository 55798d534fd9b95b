"""A run seen otherwise: as workflow events, as Responses events, as a model on three doors."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from adapters.simulator import Call, Say
from tests.harness import KEY, Harness, alias, gateway
from tests.runs.following import begin, read, watch
from tests.runs.test_team import HAND_OVER, LAUNCH, SCRIPTED, says, team
from tests.runs.tools import slow, spy, use

TABLES = """
[agents.helper]
model = "m-openai"
tools = ["calculator"]

[workflows.greet]
output = { from = "/nodes/say" }
[workflows.greet.nodes.say]
kind = "call"
model = "m-openai"
prompt = "Hello {{ /input }}"
"""


async def seen(g: Harness, run_id: str, view: str, after: int = 0) -> list[dict[str, Any]]:
    headers = {"authorization": f"Bearer {KEY}", "last-event-id": str(after)}
    url = f"{g.url}/runs/{run_id}/events?format={view}"
    async with g.http.get(url, headers=headers) as reply:
        assert reply.status == 200, await reply.text()
        text = (await reply.read()).decode()
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]


async def test_workflow_events_have_exactly_these_fields_in_this_order(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", LAUNCH)
        run_id = await begin(g, {"workflow": team(), "input": "a poem"})
        await watch(g, run_id)
        told = await seen(g, run_id, "workflow-events")
        assert told[0] == {
            "event": "start_of_workflow",
            "data": {
                "workflow_id": run_id,
                "input": [{"role": "user", "content": "a poem"}],
            },
        }
        assert told[1] == {
            "event": "start_of_agent",
            "data": {"agent_name": "chief", "agent_id": f"{run_id}_chief_1"},
        }
        assert told[2]["event"] == "end_of_agent", "a hand-over is nobody's message"
        order = [
            (one["event"], one.get("agent_name") or one["data"].get("agent_name"))
            for one in told
            if one["event"] != "messages"
        ]
        assert order == [
            ("start_of_workflow", None),
            ("start_of_agent", "chief"),
            ("end_of_agent", "chief"),
            ("start_of_agent", "planner"),
            ("end_of_agent", "planner"),
            ("start_of_agent", "maker"),
            ("new_agent_created", "maker"),
            ("end_of_agent", "maker"),
            ("start_of_agent", "publisher"),
            ("end_of_agent", "publisher"),
            ("start_of_agent", "poet"),
            ("end_of_agent", "poet"),
            ("start_of_agent", "publisher"),
            ("end_of_agent", "publisher"),
            ("end_of_workflow", None),
        ]
        ids = [t["data"]["agent_id"] for t in told if t["event"] == "start_of_agent"]
        assert ids[-1] == f"{run_id}_publisher_2"
        made = next(one for one in told if one["event"] == "new_agent_created")
        assert set(made) == {"event", "agent_name", "data"}
        assert set(made["data"]) == {"new_agent_name", "agent_obj"}
        verse = [t for t in told if t["event"] == "messages" and t["agent_name"] == "poet"]
        assert "".join(t["data"]["delta"]["content"] for t in verse) == "a verse"
        assert {tuple(t["data"]) for t in verse} == {("message_id", "delta")}
        assert told[-1]["data"] == {
            "workflow_id": run_id,
            "messages": [{"role": "assistant", "content": "done: a verse"}],
        }
        for place in range(len(told)):
            assert await seen(g, run_id, "workflow-events", place) == told[place:]


async def test_an_error_is_one_event_with_a_safe_message(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", says(HAND_OVER, "no json", "no json", "no json"))
        run_id = await begin(g, {"workflow": team(), "input": "?"})
        await watch(g, run_id)
        told = await seen(g, run_id, "workflow-events")
        errors = [one for one in told if one["event"] == "error"]
        assert errors == [told[-1]]
        assert set(errors[0]["data"]) == {"workflow_id", "error"}
        assert isinstance(errors[0]["data"]["error"], str)
        assert "Traceback" not in json.dumps(told)


async def test_a_run_as_responses_events(tmp_path: Path) -> None:
    async with gateway(tmp_path, TABLES) as g:
        asked = {"agent": "helper", "input": 'call calculator {"expression": "1+2"}'}
        run_id = await begin(g, asked)
        await watch(g, run_id)
        told = await seen(g, run_id, "openai")
        assert told[0]["type"] == "response.created"
        assert [one["sequence_number"] for one in told] == list(range(len(told)))
        done = told[-1]
        assert done["type"] == "response.completed"
        texts = [i for i in done["response"]["output"] if i["type"] == "message"]
        assert texts[-1]["content"][0]["text"] == "The tool calculator says: 3"
        assert await seen(g, run_id, "openai", 3) == told[3:]
        bad = await g.get(f"/runs/{run_id}/events?format=x", key=KEY)
        assert bad.status == 400


async def test_a_view_is_had_as_pages_of_json_too(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", LAUNCH)
        run_id = await begin(g, {"workflow": team(), "input": "a poem"})
        await watch(g, run_id)
        headers = {"authorization": f"Bearer {KEY}", "accept": "application/json"}
        for view in ("workflow-events", "openai"):
            told = await seen(g, run_id, view)
            url = f"{g.url}/runs/{run_id}/events?format={view}"
            for after in (0, 3, len(told)):
                async with g.http.get(f"{url}&starting_after={after}", headers=headers) as reply:
                    assert reply.content_type == "application/json"
                    page = await reply.json()
                assert page == {"object": "list", "data": told[after:], "has_more": False}
            async with g.http.get(f"{url}&starting_after=999", headers=headers) as reply:
                assert reply.status == 400


async def test_a_run_is_begun_and_followed_in_another_vocabulary(tmp_path: Path) -> None:
    async with gateway(tmp_path, TABLES) as g:
        body = {"workflow": "greet", "input": "Ann", "stream": True}
        answer = await g.post("/runs?format=workflow-events", body)
        run_id = answer.headers["x-gateway-run"]
        assert answer.data() == await seen(g, run_id, "workflow-events")
        assert answer.data()[-1]["data"]["messages"][0]["content"] == "Hello Ann"
        assert (await g.post("/runs?format=none", body)).status == 400
        assert len((await g.get("/runs", key=KEY)).json()["data"]) == 1


async def test_nobody_is_shown_what_a_coordinator_says_when_it_hands_over(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", LAUNCH)
        run_id = await begin(g, {"workflow": team(), "input": "a poem"})
        await watch(g, run_id)
        for view in ("workflow-events", "openai"):
            assert "over to you" not in json.dumps(await seen(g, run_id, view)), view
        told = await seen(g, run_id, "openai")
        (aside,) = [e["text"] for e in told if e["type"] == "response.reasoning_summary_text.done"]
        assert "a verse" in aside.splitlines(), "each speaks on lines of its own"


@pytest.mark.parametrize("view", ["workflow-events", "openai"])
async def test_a_run_that_is_ended_from_outside_ends_once_in_every_view(
    tmp_path: Path, view: str
) -> None:
    async with gateway(tmp_path, alias("scripted", ("openai", "script")), AGENT) as g:
        use(g, spy("slow", slow(30)))
        g.simulator.script("script", [Call("slow", "{}")])
        run_id = await begin(g, {"agent": "sloth", "input": "go"})
        await watch(g, run_id, until="tool.intent")
        assert (await g.post(f"/runs/{run_id}/cancel", {})).status == 200
        await watch(g, run_id)
        told = await seen(g, run_id, view)
        if view == "openai":
            assert [e["type"] for e in told][-2:] == ["error", "response.failed"]
            return
        kinds = ["start_of_workflow", "start_of_agent", "end_of_agent", "error"]
        assert [e["event"] for e in told] == kinds
        assert told[0]["data"]["input"] == [{"role": "user", "content": "go"}]
        assert told[-1] == {
            "event": "error",
            "data": {"workflow_id": run_id, "error": "The run is cancelled."},
        }


async def test_the_openai_view_is_what_the_sdk_reads(tmp_path: Path) -> None:
    """Each event has exactly the fields that the SDK's own type of it wants."""
    reader: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    async with gateway(tmp_path, SCRIPTED, TABLES) as g:
        g.simulator.script("script", LAUNCH)
        bodies: list[Any] = [
            {"workflow": team(), "input": "a poem"},
            {"workflow": "greet", "input": "Ann"},
            {"agent": "helper", "input": 'call calculator {"expression": "1+2"}'},
        ]
        for body in bodies:
            run_id = await begin(g, body)
            await watch(g, run_id)
            for event in await seen(g, run_id, "openai"):
                assert reader.validate_python(event).type == event["type"]


@pytest.mark.parametrize(
    ("model", "text", "wanted"),
    [
        ("workflow:greet", "Ann", "Hello Ann"),
        ("agent:helper", 'call calculator {"expression": "1+2"}', "The tool calculator says: 3"),
    ],
)
async def test_any_client_can_drive_a_run(
    tmp_path: Path, model: str, text: str, wanted: str
) -> None:
    async with gateway(tmp_path, TABLES) as g:
        oai = openai.AsyncOpenAI(api_key=KEY, base_url=f"{g.url}/v1", max_retries=0)
        ant = anthropic.AsyncAnthropic(api_key=KEY, base_url=g.url, max_retries=0)
        async with oai, ant:
            ids = [one.id async for one in oai.models.list()]
            assert model in ids
            assert (await oai.models.retrieve(model)).id == model
            chat = await oai.chat.completions.with_raw_response.create(
                model=model, messages=[{"role": "user", "content": text}]
            )
            run = await read(g, chat.headers["x-gateway-run"])
            assert run["status"] == "completed"
            assert chat.parse().choices[0].message.content == wanted
            assert chat.parse().model == model
            response = await oai.responses.create(model=model, input=text)
            assert response.output_text == wanted
            message = await ant.messages.create(
                model=model, max_tokens=100, messages=[{"role": "user", "content": text}]
            )
            assert message.content[-1].type == "text"
            assert message.content[-1].text == wanted
            stream = await oai.chat.completions.create(
                model=model, messages=[{"role": "user", "content": text}], stream=True
            )
            said = [c.choices[0].delta.content or "" async for c in stream if c.choices]
            assert "".join(said) == wanted
            async with ant.messages.stream(
                model=model,
                max_tokens=100,
                messages=[{"role": "user", "content": text}],
                extra_headers={"x-gateway-steps": "reasoning"},
            ) as events:
                final = await events.get_final_message()
            assert final.content[-1].type == "text"
            assert final.content[0].type == "thinking"


async def test_a_run_goes_on_if_the_client_leaves_unless_told_otherwise(tmp_path: Path) -> None:
    async with gateway(tmp_path, alias("scripted", ("openai", "script")), AGENT) as g:
        use(g, spy("slow", slow(0.8)))
        for word, status in (("continue", "completed"), ("cancel", "cancelled")):
            g.simulator.script("script", [Call("slow", "{}"), Say("done")])
            headers = {"authorization": f"Bearer {KEY}", "x-gateway-on-disconnect": word}
            body = {"model": "agent:sloth", "stream": True,
                    "messages": [{"role": "user", "content": "go"}]}  # fmt: skip
            async with aiohttp.ClientSession() as mine:
                reply = await mine.post(f"{g.url}/v1/chat/completions", json=body, headers=headers)
                run_id = reply.headers["x-gateway-run"]
                await watch(g, run_id, until="tool.intent")
                reply.close()
            await asyncio.wait_for(watch(g, run_id), 10)
            assert (await read(g, run_id))["status"] == status


AGENT = """
[agents.sloth]
model = "scripted"
tools = ["slow"]
"""


async def test_what_a_run_does_not_look_at_is_named_and_a_wrong_name_is_told(
    tmp_path: Path,
) -> None:
    async with gateway(tmp_path, TABLES) as g:
        answer = await g.chat("workflow:greet", "x", temperature=0.5, seed=3)
        assert answer.headers["x-gateway-dropped"] == "temperature, seed"
        assert (await g.chat("workflow:gret")).status == 404
        assert "greet" in (await g.chat("workflow:gret")).json()["error"]["message"]
        assert (await g.chat("agent:none")).status == 404
