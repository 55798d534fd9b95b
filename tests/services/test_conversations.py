"""Conversations: made, listed, changed; responses that join them."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from tests.harness import Harness

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}

WORKING = ("queued", "in_progress")


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


async def texts(client: openai.AsyncOpenAI, conversation: str) -> list[str]:
    found = client.conversations.items.list(conversation, order="asc", limit=2)
    return [item.content[0].text async for item in found]  # type: ignore[union-attr]


async def test_its_whole_life(client: openai.AsyncOpenAI) -> None:
    made = await client.conversations.create(items=[said("one")], metadata={"topic": "a"})  # type: ignore[list-item]
    assert (made.object, made.metadata) == ("conversation", {"topic": "a"})
    assert (await client.conversations.retrieve(made.id)).to_dict() == made.to_dict()
    changed = await client.conversations.update(made.id, metadata={"topic": "b"})
    assert changed.metadata == {"topic": "b"}
    added = await client.conversations.items.create(
        made.id,
        items=[{"role": "assistant", "content": "two"}, said("three")],  # type: ignore[list-item]
    )
    assert [item.type for item in added.data] == ["message", "message"]
    assert await texts(client, made.id) == ["one", "two", "three"]
    item = await client.conversations.items.retrieve(added.data[0].id, conversation_id=made.id)  # type: ignore[arg-type]
    assert item == added.data[0]
    kept = await client.conversations.items.delete(item.id, conversation_id=made.id)  # type: ignore[arg-type]
    assert kept.id == made.id
    assert await texts(client, made.id) == ["one", "three"]
    gone = await client.conversations.delete(made.id)
    assert (gone.deleted, gone.object) == (True, "conversation.deleted")
    with pytest.raises(openai.NotFoundError):
        await client.conversations.retrieve(made.id)


async def test_an_empty_one_and_bad_ones(g: Harness, client: openai.AsyncOpenAI) -> None:
    assert (await client.conversations.create()).metadata == {}
    assert (await g.post("/v1/conversations", b"")).status == 200
    for body in (
        {"items": [{"type": "item_reference", "id": "msg_1"}]},
        {"items": [said("x")] * 21},
        {"items": [{"type": "message", "role": "nobody", "content": "x"}]},
        {"metadata": {"k": 1}},
        {"metadata": {"k": "v" * 513}},
        {"unknown": 1},
    ):
        answer = await g.post("/v1/conversations", body)
        assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_another_project_finds_nothing(
    client: openai.AsyncOpenAI, stranger: openai.AsyncOpenAI
) -> None:
    made = await client.conversations.create(items=[said("mine")])  # type: ignore[list-item]
    (item,) = [i async for i in client.conversations.items.list(made.id)]
    theirs = stranger.conversations
    for attempt in (
        theirs.retrieve(made.id),
        theirs.update(made.id, metadata={}),
        theirs.delete(made.id),
        theirs.items.list(made.id),
        theirs.items.create(made.id, items=[said("x")]),  # type: ignore[list-item]
        theirs.items.retrieve(item.id, conversation_id=made.id),  # type: ignore[arg-type]
        theirs.items.delete(item.id, conversation_id=made.id),  # type: ignore[arg-type]
        stranger.responses.create(model="m-openai", input="x", conversation=made.id),
    ):
        with pytest.raises(openai.NotFoundError):
            await attempt
    assert await texts(client, made.id) == ["mine"]


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["recite", "recite-claude"])
async def test_responses_join(
    client: openai.AsyncOpenAI, model: str, stream: bool, store: bool
) -> None:
    made = await client.conversations.create(items=[said("My name is Ada.")])  # type: ignore[list-item]
    asked: dict[str, Any] = {"model": model, "conversation": made.id, "store": store}
    if stream:
        async with client.responses.stream(input="What is it?", **asked) as events:
            first = await events.get_final_response()
    else:
        first = await client.responses.create(input="What is it?", **asked)
    assert "Ada" in first.output_text
    assert first.conversation is not None
    assert first.conversation.id == made.id
    assert (await texts(client, made.id))[:2] == ["My name is Ada.", "What is it?"]
    second = await client.responses.create(input="Once more.", **asked)
    assert "What is it?" in second.output_text


async def test_tools_in_a_conversation(client: openai.AsyncOpenAI) -> None:
    made = await client.conversations.create()
    asked: dict[str, Any] = {"model": "m-claude", "conversation": {"id": made.id}}
    first = await client.responses.create(input="weather in Rome", tools=[WEATHER], **asked)
    call = first.output[-1]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny 23"}  # type: ignore[union-attr]
    second = await client.responses.create(input=[output], tools=[WEATHER], **asked)
    assert "sunny 23" in second.output_text


async def test_a_failed_response_adds_nothing(g: Harness, client: openai.AsyncOpenAI) -> None:
    made = await client.conversations.create(items=[said("one")])  # type: ignore[list-item]
    asked = {"model": "cut", "input": "two three four five", "conversation": made.id}
    for stream in (True, False):
        await g.post("/v1/responses", {**asked, "stream": stream})
    assert await texts(client, made.id) == ["one"]
    # and it was let go
    await client.responses.create(model="m-openai", input="two", conversation=made.id)


async def test_one_response_at_a_time(g: Harness, client: openai.AsyncOpenAI) -> None:
    made = await client.conversations.create()
    stream = await client.responses.create(
        model="slow", input="x", conversation=made.id, stream=True
    )
    with pytest.raises(openai.ConflictError) as caught:
        await client.responses.create(model="m-openai", input="y", conversation=made.id)
    assert caught.value.code == "conversation_locked"
    assert caught.value.response.headers["retry-after"] == "1"
    await stream.close()
    for _ in range(100):
        if not g.state.live:
            break
        await asyncio.sleep(0.02)
    after = await client.responses.create(model="m-openai", input="y", conversation=made.id)
    assert after.status == "completed"
    assert (await texts(client, made.id))[0] == "y"


async def test_a_response_of_a_conversation_is_not_continued_by_itself(
    client: openai.AsyncOpenAI,
) -> None:
    made = await client.conversations.create()
    first = await client.responses.create(model="m-openai", input="x", conversation=made.id)
    with pytest.raises(openai.BadRequestError, match="send `conversation`"):
        await client.responses.create(model="m-openai", input="y", previous_response_id=first.id)
    with pytest.raises(openai.BadRequestError, match="send one of them"):
        await client.responses.create(
            model="m-openai", input="y", previous_response_id=first.id, conversation=made.id
        )


async def test_a_conversation_alone_may_be_answered(client: openai.AsyncOpenAI) -> None:
    full = await client.conversations.create(items=[said("hello there")])  # type: ignore[list-item]
    answer = await client.responses.create(model="m-openai", conversation=full.id)
    assert "hello there" in answer.output_text
    empty = await client.conversations.create()
    with pytest.raises(openai.BadRequestError, match="nothing to answer"):
        await client.responses.create(model="m-openai", conversation=empty.id)


async def test_an_id_that_comes_again_does_not_turn_the_pages_back(
    g: Harness, client: openai.AsyncOpenAI
) -> None:
    """Clients send items on with the ids that they were told; the pages went round for ever."""
    twice = [{**said(text), "id": "msg_1"} for text in ("one", "two")]
    made = await client.conversations.create(items=twice)  # type: ignore[arg-type]
    await client.conversations.items.create(
        made.id,
        items=[{**said("three"), "id": "msg_1"}],  # type: ignore[list-item]
    )
    async with asyncio.timeout(20):
        assert await texts(client, made.id) == ["one", "two", "three"], "nothing is lost"
        pages = client.conversations.items.list(made.id, order="asc", limit=1)
        ids = [item.id async for item in pages]
        assert len(ids) == len(set(ids)) == 3


async def test_an_item_that_is_sent_again_is_listed_once(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m-chat", input=[said("hi")])  # type: ignore[list-item]
    again = first.output[0].to_dict()
    second = await client.responses.create(
        model="m-chat",
        previous_response_id=first.id,
        input=[again, said("go on")],  # type: ignore[list-item]
    )
    async with asyncio.timeout(20):
        for order in ("asc", "desc"):
            pages = client.responses.input_items.list(second.id, order=order, limit=1)  # type: ignore[arg-type]
            ids = [item.id async for item in pages]
            assert len(ids) == len(set(ids)) == 3


@pytest.mark.parametrize("end", ["completed", "cancelled", "failed"])
async def test_a_response_in_the_background_has_the_conversation_until_it_ends(
    g: Harness, client: openai.AsyncOpenAI, end: str
) -> None:
    made = await client.conversations.create()
    model = "cut" if end == "failed" else "slow"
    begun = await client.responses.create(
        model=model, input="first", conversation=made.id, background=True
    )
    if end != "failed":
        with pytest.raises(openai.ConflictError) as locked:
            await client.responses.create(model="m-chat", input="second", conversation=made.id)
        assert locked.value.code == "conversation_locked"
    if end == "cancelled":
        await client.responses.cancel(begun.id)
    async with asyncio.timeout(20):
        while (found := await client.responses.retrieve(begun.id)).status in WORKING:
            await asyncio.sleep(0.05)
        assert found.status == end
        while True:  # it is kept, and the conversation let go, right after its end
            try:
                await client.responses.create(model="m-chat", input="third", conversation=made.id)
                break
            except openai.ConflictError:
                await asyncio.sleep(0.05)
    said_first = end != "failed"
    assert ("first" in await texts(client, made.id)) is said_first
