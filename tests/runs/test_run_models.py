"""Agents and workflows behind the three doors, driven by the vendors' own SDKs: who may use them,
what they answer, and what becomes of a run whose caller leaves, or that waits for somebody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from adapters.canonical.faults import Fault
from adapters.simulator import Call, Say
from tests.harness import ENVIRONMENT, KEY, Harness, alias, gateway
from tests.runs.following import answered, data, read, watch
from tests.runs.test_views import TABLES
from tests.runs.tools import slow, spy, use

MORE = """
[agents.sloth]
model = "scripted"
tools = ["slow"]

[agents.asker]
model = "scripted"
tools = ["workflow:ask"]

[agents.broken]
model = "down"

[agents.caller]
model = "m-openai"
handoffs = ["sloth"]

[workflows.ask]
output = { template = "agreed: {{ /nodes/ok/approved }}" }
[workflows.ask.nodes.ok]
kind = "approval"
message = "Is {{ /input }} fine?"

[workflows.read]
input_schema = { type = "object", properties = { n = { type = "integer" } }, required = ["n"] }
output = { twice = { from = "/input/n" }, before = { from = "/history" } }
[workflows.read.nodes.unused]
kind = "approval"
message = "never asked"
needs = ["never"]
[workflows.read.nodes.never]
kind = "branch"
cases = [{ when = { from = "/input/n", equals = -1 }, to = ["unused"] }]

[workflows.crew]
output = { from = "/nodes/team" }
[workflows.crew.nodes.team]
kind = "team"
coordinator = { name = "chief", model = "m-openai" }
planner = { name = "planner", model = "m-openai" }
publisher = { name = "publisher", model = "m-openai" }
members = [{ name = "member", model = "m-openai" }]
factory = { agent = { name = "maker", model = "m-openai" }, models = ["scripted"] }

[[keys]]
name = "narrow"
key = "${CHAT}"
models = ["m-openai"]
tools = ["time"]
"""
SLOW = {"role": "user", "content": "go"}


@asynccontextmanager
async def doors(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Harness, openai.AsyncOpenAI, anthropic.AsyncAnthropic]]:
    monkeypatch.setitem(ENVIRONMENT, "CHAT", "narrow-key")  # type: ignore[arg-type]
    scripted = alias("scripted", ("openai", "script"), retries=0)
    down = alias("down", ("openai", "fault-status-500"), retries=0)
    async with gateway(folder, scripted, down, TABLES, MORE) as g:
        use(g, spy("slow", slow(0.6)))
        oai = openai.AsyncOpenAI(api_key=KEY, base_url=f"{g.url}/v1")
        ant = anthropic.AsyncAnthropic(api_key=KEY, base_url=g.url)
        async with oai, ant:
            yield g, oai, ant


async def test_a_key_sees_and_runs_what_it_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, oai, _):
        everything = {one.id async for one in oai.models.list()}
        assert everything >= {"agent:helper", "agent:sloth", "agent:caller", "workflow:crew"}
        narrow = openai.AsyncOpenAI(api_key="narrow-key", base_url=f"{g.url}/v1")
        async with narrow:
            seen = {one.id async for one in narrow.models.list()}
            claude = anthropic.AsyncAnthropic(api_key="narrow-key", base_url=g.url)
            async with claude:
                assert {one.id async for one in claude.models.list()} == seen
            assert seen == {"m-openai", "workflow:greet", "workflow:ask", "workflow:read"}
            for model in everything - seen:
                with pytest.raises(openai.NotFoundError):
                    await narrow.models.retrieve(model)
            for model in ("agent:helper", "agent:sloth", "agent:caller", "workflow:crew"):
                with pytest.raises(openai.PermissionDeniedError):
                    await narrow.chat.completions.create(
                        model=model, messages=[{"role": "user", "content": "x"}]
                    )


async def test_a_stream_waits_for_a_person_and_who_wants_a_body_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body's caller is told at once, once, and by an error that the SDKs do not send again."""
    async with doors(tmp_path, monkeypatch) as (g, oai, ant):
        ask: Any = {"model": "workflow:ask", "messages": [{"role": "user", "content": "it"}]}
        with pytest.raises(openai.ConflictError) as told:
            await oai.chat.completions.create(**ask)
        assert told.value.code == "run_waiting"
        run_id = told.value.response.headers["x-gateway-run"]
        assert "node.ok" in told.value.message
        assert run_id in told.value.message
        with pytest.raises(openai.ConflictError):
            await oai.responses.create(model="workflow:ask", input="it")
        with pytest.raises(anthropic.ConflictError):
            await ant.messages.create(max_tokens=10, **ask)
        listed = (await g.get("/runs", key=KEY)).json()["data"]
        assert len(listed) == 3, "no SDK has begun a second run by itself"
        assert (await answered(g, run_id, "node.ok", action="approve")).status == 200
        await watch(g, run_id)
        assert (await read(g, run_id))["output"]["text"] == "agreed: true"

        steps = {"x-gateway-steps": "reasoning"}
        stream = await oai.responses.create(
            model="workflow:ask", input="it", stream=True, extra_headers=steps
        )
        run_id = stream.response.headers["x-gateway-run"]
        types = []
        async for event in stream:
            types.append(event.type)
            if event.type == "response.reasoning_summary_text.delta":
                assert "node.ok" in event.delta
                await answered(g, run_id, "node.ok", action="approve")
        assert types[-1] == "response.completed"


async def test_who_has_to_answer_may_be_asked_by_a_child_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, oai, _):
        g.simulator.script("script", [Call("workflow_ask", '{"input": "it"}'), Say("done")])
        ask: Any = {"model": "agent:asker", "messages": [SLOW]}
        with pytest.raises(openai.ConflictError) as told:
            await oai.chat.completions.create(**ask)
        run_id = told.value.response.headers["x-gateway-run"]
        (child,) = (await read(g, run_id))["children"]
        assert child in told.value.message
        assert (await answered(g, child, "node.ok", action="approve")).status == 200
        await watch(g, run_id)
        assert (await read(g, run_id))["output"]["text"] == "done"


async def test_an_open_stream_is_kept_open_by_pings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, _, _ant):
        object.__setattr__(g.state.snapshot.server, "ping_seconds", 0.1)
        body = {"model": "workflow:ask", "stream": True, "messages": [SLOW]}
        headers = {"authorization": f"Bearer {KEY}"}
        url = f"{g.url}/v1/chat/completions"
        async with g.http.post(url, json=body, headers=headers) as reply:
            run_id, seen = reply.headers["x-gateway-run"], b""
            while seen.count(b": ping") < 3:
                seen += await asyncio.wait_for(reply.content.readany(), 5)
            await answered(g, run_id, "node.ok", action="approve")
            seen += await reply.content.read()
        assert b"agreed: true" in seen
        assert seen.endswith(b"data: [DONE]\n\n")


async def test_a_failed_run_is_not_sent_again_by_the_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, oai, ant):
        ask: Any = {"model": "agent:broken", "messages": [SLOW]}
        with pytest.raises(openai.InternalServerError):
            await oai.chat.completions.create(**ask)
        with pytest.raises(openai.InternalServerError):
            await oai.responses.create(model="agent:broken", input="go")
        with pytest.raises(anthropic.InternalServerError):
            await ant.messages.create(max_tokens=9, **ask)
        assert len((await g.get("/runs", key=KEY)).json()["data"]) == 3


async def test_a_stream_that_the_gateway_s_end_cuts_says_so_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, oai, _):
        g.simulator.script("script", [Call("slow", "{}"), Say("done")])
        ask: Any = {"model": "agent:sloth", "messages": [SLOW], "stream": True}
        stream = await oai.chat.completions.create(**ask)
        run_id = stream.response.headers["x-gateway-run"]
        await watch(g, run_id, until="tool.intent")
        for exchange in list(g.state.live):
            exchange.stop(Fault("no_deployment", "The gateway ends.", code="shutting_down"))
        with pytest.raises(openai.APIError, match="The gateway ends"):
            _ = [chunk async for chunk in stream]
        events = await watch(g, run_id)
        assert events[-1]["type"] == "run.completed"


async def test_a_stream_whose_run_can_not_be_read_any_more_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, oai, _):
        g.simulator.script("script", [Call("slow", "{}"), Say("done")])
        ask: Any = {"model": "agent:sloth", "messages": [SLOW], "stream": True}
        stream = await oai.chat.completions.create(**ask)
        run_id = stream.response.headers["x-gateway-run"]
        await watch(g, run_id, until="tool.intent")

        async def run_events(*asked: Any, **more: Any) -> Any:
            raise Fault("store_unavailable", "The ledger can't be read.")

        with monkeypatch.context() as outage:
            outage.setattr(g.state.store, "run_events", run_events)
            g.state.runs.hub.wake_all()
            with pytest.raises(openai.APIError, match="can't be read"):
                _ = [chunk async for chunk in stream]
        assert (await watch(g, run_id))[-1]["type"] == "run.completed"


CLIENTS = ("chat", "responses", "messages")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("word", "status"), [(None, "completed"), ("cancel", "cancelled")])
async def test_what_becomes_of_a_run_whose_caller_leaves(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    stream: bool,
    word: str | None,
    status: str,
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, oai, ant):
        g.simulator.script("script", [Call("slow", "{}"), Say("done")])
        headers = {} if word is None else {"x-gateway-on-disconnect": word}
        more: Any = {"model": "agent:sloth", "stream": stream, "extra_headers": headers}
        calls: Any = {
            "chat": lambda: oai.chat.completions.create(messages=[SLOW], **more),
            "responses": lambda: oai.responses.create(input="go", **more),
            "messages": lambda: ant.messages.create(max_tokens=9, messages=[SLOW], **more),
        }
        call = asyncio.ensure_future(calls[client]())
        run_id = await _begun(g)
        await watch(g, run_id, until="tool.intent")
        if stream:
            await (await call).close()
        else:
            call.cancel()
        events = await watch(g, run_id)
        assert events[-1]["type"] == f"run.{status}"
        await asyncio.gather(call, return_exceptions=True)


async def _begun(g: Harness) -> str:
    """The one run, once it is there."""
    async with asyncio.timeout(10):
        while not (rows := (await g.get("/runs", key=KEY)).json()["data"]):
            await asyncio.sleep(0.02)
    return str(rows[0]["id"])


async def test_a_response_of_an_agent_is_kept_and_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, oai, _):
        asked = 'call calculator {"expression": "1+2"}'
        first = await oai.responses.create(
            model="agent:helper", input=asked, extra_headers={"x-gateway-steps": "reasoning"}
        )
        assert [item.type for item in first.output] == ["reasoning", "message"]
        assert (await oai.responses.retrieve(first.id)).output_text == first.output_text
        second = await oai.responses.create(
            model="agent:helper", input="and now?", previous_response_id=first.id
        )
        said = json.dumps(g.simulator.log.of("gpt-5.2")[-1].body["input"])
        assert asked.split(" {")[0] in said
        assert "and now?" in said
        assert "reasoning" not in said, "what this door has shown as reasoning no model has thought"
        stream = await oai.responses.create(
            model="agent:helper", input="third", previous_response_id=second.id, stream=True
        )
        done = [event async for event in stream][-1]
        assert done.type == "response.completed"
        kept = await oai.responses.retrieve(done.response.id)
        assert kept.previous_response_id == second.id
        conversation = await oai.conversations.create()
        for text in ("one", "two"):
            await oai.responses.create(
                model="agent:helper", input=text, conversation=conversation.id
            )
        items = await oai.conversations.items.list(conversation.id, order="asc")
        said = [item.content[0].text async for item in items]  # type: ignore[union-attr]
        assert said == ["one", "one", "two", "two"]
        with pytest.raises(openai.BadRequestError):
            await oai.responses.create(
                model="agent:helper", input="x", previous_response_id="resp_none"
            )
        with pytest.raises(openai.BadRequestError) as told:
            await oai.responses.create(model="agent:helper", input="x", background=True)
        assert told.value.param == "background"


async def test_a_workflow_reads_the_last_message_and_the_rest_is_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (_, oai, ant):
        said: Any = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": '{"n": 2}'},
        ]
        chat = await oai.chat.completions.create(model="workflow:read", messages=said)
        assert json.loads(chat.choices[0].message.content or "") == {
            "twice": 2,
            "before": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "hello"},
            ],
        }
        for wrong in ("no json", '{"n": "x"}', "{}"):
            with pytest.raises(openai.BadRequestError):
                await oai.responses.create(model="workflow:read", input=wrong)
        picture: Any = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
        with pytest.raises(openai.BadRequestError) as told:
            await oai.chat.completions.create(
                model="workflow:greet", messages=[{"role": "user", "content": picture}]
            )
        assert told.value.param == "messages[0]"
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "r"}
        use_ = {"type": "tool_use", "id": "t1", "name": "t", "input": {}}
        called: Any = [
            said[0],
            {"role": "assistant", "content": [use_]},
            {"role": "user", "content": [result]},
        ]
        for no_text in (said[:2], called):
            with pytest.raises(anthropic.BadRequestError):
                await ant.messages.create(model="workflow:greet", max_tokens=9, messages=no_text)


async def test_what_a_run_does_not_look_at_is_named_as_the_caller_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, oai, _):
        raw = await oai.chat.completions.with_raw_response.create(
            model="agent:helper",
            messages=[{"role": "user", "content": "x"}],
            logprobs=True,
            response_format={"type": "json_object"},
            max_completion_tokens=99,
            metadata={"team": "a"},
            user="ann",
        )
        named = raw.headers["x-gateway-dropped"].split(", ")
        assert sorted(named) == ["logprobs", "max_completion_tokens", "response_format"]
        run = await read(g, raw.headers["x-gateway-run"])
        assert run["metadata"] == {"team": "a"}
        with pytest.raises(openai.BadRequestError):
            await oai.chat.completions.create(
                model="agent:helper",
                messages=[{"role": "user", "content": "x"}],
                temperature=1,
                extra_headers={"x-gateway-strict": "true"},
            )


async def test_a_key_s_retry_finds_its_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(tmp_path, monkeypatch) as (g, oai, _):
        same = {"idempotency-key": "k1"}
        ids = set()
        for _ in range(2):
            raw = await oai.chat.completions.with_raw_response.create(
                model="workflow:greet",
                messages=[{"role": "user", "content": "Ann"}],
                extra_headers=same,
            )
            assert raw.parse().choices[0].message.content == "Hello Ann"
            ids.add(raw.headers["x-gateway-run"])
        assert len(ids) == 1
        events = await watch(g, ids.pop())
        assert len(data(events, "model.started")) == 1
