"""What an application developer does with the OpenAI SDK, over every upstream protocol."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest
from pydantic import BaseModel

from tests.harness import KEY, Harness

UPSTREAMS = ("m-openai", "m-claude", "m-chat")
MESSAGES = [{"role": "user", "content": "say: the weather is fine"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA"
    "60e6kgAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_an_answer_and_its_ledger_row(
    client: openai.AsyncOpenAI, g: Harness, model: str
) -> None:
    raw = await client.chat.completions.with_raw_response.create(model=model, messages=MESSAGES)
    answer = raw.parse()
    assert "the weather is fine" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    row = (await g.get(f"/admin/requests/{raw.headers['x-request-id']}")).json()
    assert row["status"] == "completed"
    assert [a["usage_source"] for a in row["attempts"]] == ["provider"]
    assert row["attempts"][0]["input_tokens"] == answer.usage.prompt_tokens
    assert row["attempts"][0]["output_tokens"] == answer.usage.completion_tokens
    assert len(g.simulator.log) == 1


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_a_stream_is_the_same_answer_in_pieces(
    client: openai.AsyncOpenAI, model: str
) -> None:
    stream = await client.chat.completions.create(
        model=model, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert "the weather is fine" in text
    reasons = [c.choices[0].finish_reason for c in chunks if c.choices]
    assert [r for r in reasons if r] == ["stop"]
    assert len({c.id for c in chunks}) == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens > 0


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_the_stream_helper(client: openai.AsyncOpenAI, model: str) -> None:
    async with client.chat.completions.stream(model=model, messages=MESSAGES) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_completion()
    assert "content.delta" in kinds
    assert "content.done" in kinds
    assert "the weather is fine" in final.choices[0].message.content


@pytest.mark.parametrize("model", UPSTREAMS)
def test_the_synchronous_client(model: str, g_sync: str) -> None:
    with openai.OpenAI(base_url=g_sync + "/v1", api_key=KEY, max_retries=0) as made:
        answer = made.chat.completions.create(model=model, messages=MESSAGES)
        assert "the weather is fine" in answer.choices[0].message.content
        chunks = list(made.chat.completions.create(model=model, messages=MESSAGES, stream=True))
    assert "fine" in "".join(c.choices[0].delta.content or "" for c in chunks)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", UPSTREAMS)
async def test_a_tool_loop(client: openai.AsyncOpenAI, model: str, stream: bool) -> None:
    messages: list = [{"role": "user", "content": 'What is the weather in "Oslo"?'}]
    if stream:
        async with client.chat.completions.stream(
            model=model, messages=messages, tools=[WEATHER]
        ) as events:
            first = await events.get_final_completion()
    else:
        first = await client.chat.completions.create(
            model=model, messages=messages, tools=[WEATHER]
        )
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls"
    call = choice.message.tool_calls[0]
    assert call.function.name == "get_weather"
    assert "Oslo" in json.loads(call.function.arguments)["city"]
    messages += [
        choice.message.model_dump(exclude_none=True, exclude={"parsed"}),
        {"role": "tool", "tool_call_id": call.id, "content": "12 degrees and rain"},
    ]
    for made in messages[1].get("tool_calls", ()):
        made["function"].pop("parsed_arguments", None)
    second = await client.chat.completions.create(model=model, messages=messages, tools=[WEATHER])
    assert "12 degrees and rain" in second.choices[0].message.content


class City(BaseModel):
    """A nested model, as developers write them."""

    name: str
    population: int


class Country(BaseModel):
    """The outer one."""

    name: str
    cities: list[City]


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_parse_with_nested_models(client: openai.AsyncOpenAI, model: str) -> None:
    answer = await client.chat.completions.parse(
        model=model, messages=MESSAGES, response_format=Country
    )
    assert isinstance(answer.choices[0].message.parsed, Country)


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_images_arrive(client: openai.AsyncOpenAI, model: str) -> None:
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
    ]
    answer = await client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": content}]
    )
    assert "image/png" in answer.choices[0].message.content


@pytest.mark.parametrize("model", ["t-openai", "t-claude", "t-sealed"])
@pytest.mark.parametrize("carries", [True, False], ids=["carried", "remembered"])
async def test_reasoning_survives_a_tool_turn(
    client: openai.AsyncOpenAI, g: Harness, model: str, carries: bool
) -> None:
    """The simulator signs its reasoning and refuses a turn in which it is missing or changed."""
    messages: list = [{"role": "user", "content": 'What is the weather in "Oslo"?'}]
    effort = {"reasoning_effort": "medium", "max_completion_tokens": 8000}
    first = await client.chat.completions.create(
        model=model, messages=messages, tools=[WEATHER], **effort
    )
    message = first.choices[0].message
    if model == "t-claude":  # OpenAI shows a summary only where one is asked for
        assert message.reasoning_content
    answered = message.model_dump(exclude_none=True)
    if not carries:
        answered = {"role": "assistant", "tool_calls": answered["tool_calls"]}
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "rain"} for call in message.tool_calls
    ]
    second = await client.chat.completions.create(
        model=model, messages=[*messages, answered, *results], tools=[WEATHER], **effort
    )
    assert "rain" in second.choices[0].message.content
    assert all(attempt.refused is None for attempt in g.simulator.log)


ERRORS = [
    ("f-400", openai.BadRequestError, 400),
    ("f-401", openai.InternalServerError, 502),
    ("f-404", openai.InternalServerError, 502),
    ("f-429", openai.RateLimitError, 429),
    ("f-500", openai.InternalServerError, 502),
    ("f-529", openai.InternalServerError, 503),
    ("no-such-model", openai.NotFoundError, 404),
]


@pytest.mark.parametrize(("model", "kind", "status"), ERRORS)
async def test_each_error_class(
    client: openai.AsyncOpenAI, model: str, kind: type[openai.APIStatusError], status: int
) -> None:
    with pytest.raises(kind) as caught:
        await client.chat.completions.create(model=model, messages=MESSAGES)
    assert caught.value.status_code == status
    assert caught.value.body["message"]
    if model == "f-429":
        assert caught.value.response.headers["retry-after"] == "2"


async def test_a_wrong_key(g: Harness) -> None:
    async with openai.AsyncOpenAI(base_url=g.url + "/v1", api_key="no", max_retries=0) as made:
        with pytest.raises(openai.AuthenticationError):
            await made.models.list()
        with pytest.raises(openai.AuthenticationError):
            await made.chat.completions.create(model="m-openai", messages=MESSAGES)


async def test_a_cut_stream_is_an_error_not_an_end(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model="f-cut", messages=MESSAGES, stream=True)
    seen = []
    with pytest.raises(openai.APIError):
        async for chunk in stream:
            seen.append(chunk)
    assert seen
    assert all(c.choices[0].finish_reason is None for c in seen)


async def test_models(client: openai.AsyncOpenAI) -> None:
    names = [model.id async for model in client.models.list()]
    assert set(UPSTREAMS) <= set(names)
    assert (await client.models.retrieve("m-openai")).id == "m-openai"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("no/such")


async def test_many_at_once(client: openai.AsyncOpenAI) -> None:
    async def one(number: int) -> str:
        answer = await client.chat.completions.create(
            model=UPSTREAMS[number % 3], messages=[{"role": "user", "content": f"number {number}"}]
        )
        return answer.choices[0].message.content or ""

    answers = await asyncio.gather(*(one(n) for n in range(30)))
    assert all(f"number {n}" in text for n, text in enumerate(answers))
