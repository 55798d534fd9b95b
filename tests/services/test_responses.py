"""Kept responses: continued, read again, streamed again, listed, deleted; each project's own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from aiohttp import test_utils, web

from tests.harness import KEY, Harness, alias, gateway

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
UPSTREAMS = ("m-openai", "m-claude", "m-chat")


# --------------------------------------------------------------------------- going on


@pytest.mark.parametrize("model", ["recite", "recite-claude"])
async def test_the_model_sees_what_came_before(client: openai.AsyncOpenAI, model: str) -> None:
    first = await client.responses.create(model=model, input="My name is Ada.")
    second = await client.responses.create(
        model=model, input="What is it?", previous_response_id=first.id
    )
    third = await client.responses.create(
        model=model, input="Once more.", previous_response_id=second.id
    )
    assert "My name is Ada." in second.output_text
    assert third.output_text.index("My name is Ada.") < third.output_text.index("What is it?")
    assert third.previous_response_id == second.id


async def test_instructions_are_not_carried_over(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(
        model="recite", input="hello", instructions="Speak like a pirate."
    )
    second = await client.responses.create(
        model="recite", input="and now", previous_response_id=first.id
    )
    assert "pirate" in first.output_text
    # The first answer recites them; only as that answer may they stand in the second.
    assert second.output_text.count("pirate") == first.output_text.count("pirate")


@pytest.mark.parametrize("model", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_result_continues_its_call(
    client: openai.AsyncOpenAI, model: str, stream: bool
) -> None:
    asked: dict[str, Any] = {"model": model, "input": "weather in Rome", "tools": [WEATHER]}
    first = await _answer(client, stream, **asked)
    (call,) = [item for item in first.output if item.type == "function_call"]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny 23"}
    second = await _answer(
        client, stream, model=model, input=[output], tools=[WEATHER], previous_response_id=first.id
    )
    assert "sunny 23" in second.output_text


async def _answer(client: openai.AsyncOpenAI, stream: bool, **asked: Any) -> Any:
    if not stream:
        return await client.responses.create(**asked)
    async with client.responses.stream(**asked) as events:
        return await events.get_final_response()


async def test_a_call_left_unanswered_is_named(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(
        model="m-openai", input="weather in Rome", tools=[WEATHER]
    )
    with pytest.raises(openai.BadRequestError, match="output is missing"):
        await client.responses.create(
            model="m-openai", input="never mind", previous_response_id=first.id
        )


async def test_the_response_is_there_before_its_end_is_told(g: Harness, client: Any) -> None:
    """Asked for the moment that the terminal arrives, many at a time."""

    async def one(number: int) -> None:
        stream = await client.responses.create(model="m-openai", input=f"n{number}", stream=True)
        async for event in stream:
            if event.type == "response.completed":
                kept = await client.responses.retrieve(event.response.id)
                assert kept.to_dict() == event.response.to_dict()

    await asyncio.gather(*(one(number) for number in range(10)))


@pytest.mark.parametrize("model", ["t-openai", "t-claude"])
async def test_reasoning_goes_back_to_its_maker(
    g: Harness, client: openai.AsyncOpenAI, model: str
) -> None:
    first = await client.responses.create(model=model, input="think", reasoning={"effort": "low"})
    await client.responses.create(
        model=model,
        input="go on",
        previous_response_id=first.id,
        reasoning={"effort": "low"},
    )
    sent = json.dumps(g.simulator.log[-1].body)
    assert "encrypted_content" in sent or "signature" in sent


async def test_a_cut_call_is_not_continued(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(
        model="length-cut", input="weather in Rome", tools=[WEATHER], tool_choice="required"
    )
    assert first.output[-1].to_dict()["status"] == "incomplete"
    second = await client.responses.create(
        model="m-openai", input="never mind", previous_response_id=first.id
    )
    assert second.status == "completed"


# --------------------------------------------------------------------------- store


async def test_what_is_not_stored_is_not_found(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m-openai", input="secret", store=False)
    assert first.model_extra is not None
    assert first.to_dict()["store"] is False
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.create(
            model="m-openai", input="go on", previous_response_id=first.id
        )
    assert caught.value.code == "previous_response_not_found"
    assert caught.value.param == "previous_response_id"


async def test_the_default_is_the_settings(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m-openai", input="hello")
    assert first.to_dict()["store"] is True
    assert (await client.responses.retrieve(first.id)).to_dict() == first.to_dict()


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_a_kept_response_is_the_one_that_was_told(
    client: openai.AsyncOpenAI, model: str
) -> None:
    told = await client.responses.create(
        model=model, input="hello", metadata={"a": "b"}, user="someone", temperature=0.5
    )
    kept = await client.responses.retrieve(told.id)
    assert kept.to_dict() == told.to_dict()


@pytest.mark.parametrize("nothing", [{"output": None}, {}])
async def test_an_answer_without_output_is_kept(tmp_path: Path, nothing: dict[str, Any]) -> None:
    """Some servers leave it out where there is none; the call was made and paid."""

    async def answer(_: web.Request) -> web.Response:
        body = {"id": "resp_1", "object": "response", "model": "m", "status": "completed"}
        return web.json_response({**body, **nothing})

    app = web.Application()
    app.router.add_post("/v1/responses", answer)
    async with test_utils.TestServer(app) as server:
        url = str(server.make_url("")).rstrip("/")
        provider = f'[providers.odd]\ndialect = "openai-responses"\nbase_url = "{url}/v1"\n'
        async with gateway(tmp_path, provider + alias("odd", ("odd", "m"))) as g:
            told = await g.post("/v1/responses", {"model": "odd", "input": "hi", "store": True})
            assert told.status == 200, told.body
            kept = await g.get(f"/v1/responses/{told.json()['id']}", key=KEY)
            assert (kept.status, kept.json()["output"]) == (200, [])


async def test_another_project_finds_nothing(
    client: openai.AsyncOpenAI, stranger: openai.AsyncOpenAI
) -> None:
    first = await client.responses.create(model="m-openai", input="mine")
    for attempt in (
        stranger.responses.retrieve(first.id),
        stranger.responses.delete(first.id),
        stranger.responses.input_items.list(first.id),
        stranger.responses.cancel(first.id),
    ):
        with pytest.raises(openai.NotFoundError):
            await attempt
    with pytest.raises(openai.BadRequestError):
        await stranger.responses.create(model="m-openai", input="x", previous_response_id=first.id)
    item = first.output[-1].id
    with pytest.raises(openai.NotFoundError):
        await stranger.responses.create(
            model="m-openai", input=[{"type": "item_reference", "id": item}]
        )
    assert (await client.responses.retrieve(first.id)).id == first.id


async def test_deleted_is_deleted(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m-openai", input="one")
    second = await client.responses.create(
        model="m-openai", input="two", previous_response_id=first.id
    )
    await client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.delete(first.id)
    with pytest.raises(openai.BadRequestError, match="deleted or is past its retention"):
        await client.responses.create(
            model="m-openai", input="three", previous_response_id=second.id
        )


async def test_a_failed_stream_is_kept_as_failed(g: Harness, client: openai.AsyncOpenAI) -> None:
    asked = {"model": "cut", "input": "one two three four", "stream": True}
    failed = (await g.post("/v1/responses", asked)).data()[-1]
    assert failed["type"] == "response.failed"
    kept = await client.responses.retrieve(failed["response"]["id"])
    assert kept.to_dict() == failed["response"]
    with pytest.raises(openai.BadRequestError, match="has failed"):
        await client.responses.create(model="m-openai", input="on", previous_response_id=kept.id)


async def test_what_is_not_in_the_background_can_not_be_cancelled(
    client: openai.AsyncOpenAI,
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.create(model="m-openai", input="x", background=True, store=False)
    assert caught.value.param == "background"
    kept = await client.responses.create(model="m-openai", input="x")
    with pytest.raises(openai.BadRequestError, match="background"):
        await client.responses.cancel(kept.id)


# --------------------------------------------------------------------------- references


async def test_items_may_be_named(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(
        model="m-openai", input="weather in Rome", tools=[WEATHER]
    )
    call = first.output[-1]
    second = await client.responses.create(
        model="m-openai",
        tools=[WEATHER],
        input=[
            {"role": "user", "content": "weather in Rome"},
            {"type": "item_reference", "id": call.id},
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny 23"},
        ],
    )
    assert "sunny 23" in second.output_text
    # Named although it is continued anyway: it is there once.
    third = await client.responses.create(
        model="m-openai",
        tools=[WEATHER],
        previous_response_id=first.id,
        input=[
            {"type": "item_reference", "id": call.id},
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny 23"},
        ],
    )
    assert "sunny 23" in third.output_text


async def test_an_unknown_item_is_told(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        await client.responses.create(
            model="m-openai", input=[{"type": "item_reference", "id": "msg_no"}]
        )
    assert caught.value.param == "input[0].id"


# --------------------------------------------------------------------------- listings


async def test_input_items_by_pages(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(
        model="m-openai", input=[{"role": "user", "content": f"n{n}"} for n in range(5)]
    )
    asked = {"order": "asc", "limit": 2}
    pages = client.responses.input_items.list(first.id, **asked)  # type: ignore[arg-type]
    texts = [item.content[0].text async for item in pages]  # type: ignore[union-attr]
    assert texts == ["n0", "n1", "n2", "n3", "n4"]
    newest = await client.responses.input_items.list(first.id, limit=1)
    assert newest.data[0].content[0].text == "n4"  # type: ignore[union-attr]
    assert newest.has_more
    with pytest.raises(openai.BadRequestError):
        await client.responses.input_items.list(first.id, after="msg_no")
    with pytest.raises(openai.BadRequestError):
        await client.responses.input_items.list(first.id, limit=0)


async def test_input_items_are_what_the_response_was_made_from(
    client: openai.AsyncOpenAI,
) -> None:
    first = await client.responses.create(
        model="m-openai", input="weather in Rome", tools=[WEATHER]
    )
    call = first.output[-1]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "23"}  # type: ignore[union-attr]
    second = await client.responses.create(
        model="m-openai", input=[output], previous_response_id=first.id
    )
    items = [i async for i in client.responses.input_items.list(second.id, order="asc")]
    assert [item.type for item in items] == ["message", "function_call", "function_call_output"]
    assert all(item.id and item.status == "completed" for item in items)  # type: ignore[union-attr]


# --------------------------------------------------------------------------- streamed again


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_a_kept_response_streams_like_a_fresh_one(
    g: Harness, client: openai.AsyncOpenAI, model: str
) -> None:
    first = await client.responses.create(
        model=model, input="talk about the weather in Rome", tools=[WEATHER]
    )
    stream = await client.responses.retrieve(first.id, stream=True)
    events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].response.to_dict() == first.to_dict()  # type: ignore[union-attr]
    later = await client.responses.retrieve(first.id, stream=True, starting_after=3)
    assert [e.to_dict() async for e in later] == [e.to_dict() for e in events[4:]]
    with pytest.raises(openai.BadRequestError):
        await client.responses.retrieve(first.id, stream=True, starting_after=len(events))
    assert len(g.simulator.log) == 1


# --------------------------------------------------------------------------- the end user


async def test_forgetting_an_end_user(g: Harness, client: openai.AsyncOpenAI) -> None:
    his = await client.responses.create(model="m-openai", input="mine", user="u1")
    on = await client.responses.create(model="m-openai", input="on", previous_response_id=his.id)
    other = await client.responses.create(model="m-openai", input="other", user="u2")
    await g.state.store.forget(end_user="u1")
    for gone in (his, on):
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(gone.id)
    assert (await client.responses.retrieve(other.id)).id == other.id
    await g.state.store.forget(project="default")
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(other.id)


async def test_retention_counts_from_the_last_use(g: Harness, client: openai.AsyncOpenAI) -> None:
    day = 86_400.0
    first = await client.responses.create(model="m-openai", input="one")
    await client.responses.create(model="m-openai", input="two", previous_response_id=first.id)
    now = g.state.runtime.clock.wall()
    await g.state.store.sweep(now + 29 * day, {"responses": 30})
    assert (await client.responses.retrieve(first.id)).id == first.id
    await g.state.store.sweep(now + 31 * day, {"responses": 30})
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(first.id)


async def test_a_callers_login_at_its_mcp_server_is_not_kept(g: Harness) -> None:
    tool = {
        "type": "mcp",
        "server_label": "s",
        "server_url": "https://mcp.example/x",
        "authorization": "its-secret",
        "headers": {"x-key": "its-secret"},
    }
    answer = await g.post("/v1/responses", {"model": "m-claude", "input": "x", "tools": [tool]})
    kept = await g.get(f"/v1/responses/{answer.json()['id']}")
    assert kept.status == 200
    assert b"its-secret" not in answer.body + kept.body
    assert kept.json()["tools"][0]["server_label"] == "s"


# --------------------------------------------------------------------------- beside the call


async def test_counting_what_a_response_would_read(g: Harness, client: openai.AsyncOpenAI) -> None:
    alone = await client.responses.input_tokens.count(model="m-openai", input="one two three")
    first = await client.responses.create(model="m-openai", input="four five six seven eight")
    after = await client.responses.input_tokens.count(
        model="m-openai", input="one two three", previous_response_id=first.id
    )
    assert after.input_tokens > alone.input_tokens > 0
    own = await g.post("/responses/input_tokens", {"model": "m-claude", "input": "x"})
    assert "x-gateway-estimated" not in own.headers
    guessed = await g.post("/responses/input_tokens", {"model": "m-openai", "input": "x"})
    assert guessed.headers["x-gateway-estimated"] == "true"


async def test_compaction_is_a_clear_refusal(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.compact(model="m-openai", input="x")
    assert caught.value.code == "compaction_unsupported"
