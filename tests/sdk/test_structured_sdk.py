"""Structured output as the vendors' SDKs see it: parsed, streamed, held or verified."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from adapters.simulator import Say
from tests.harness import KEY, Harness, alias, gateway

UPSTREAMS = ("m-openai", "m-claude", "m-chat")
SCRIPTED = {"m-openai": "gpt-5.2", "m-claude": "claude-sonnet-4-6", "m-chat": "some-model"}
MESSAGES: Any = [{"role": "user", "content": "Where is 'Oslo'?"}]
HOW = [{}, {"x-gateway-structured": "hold"}, {"x-gateway-structured": "verify"}]


class City(BaseModel):
    """A nested model, as developers write them."""

    name: str
    population: int


class Country(BaseModel):
    """The outer one, with something optional and a recursion."""

    name: str
    cities: list[City]
    capital: City | None = None
    neighbours: list[Country] = []


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "score": {"type": "integer"}},
    "required": ["name", "score"],
    "additionalProperties": False,
}
FORMAT: Any = {
    "type": "json_schema",
    "json_schema": {"name": "city", "schema": SCHEMA, "strict": True},
}
GOOD, WRONG = '{"name":"Oslo","score":7}', '{"name":"Oslo","score":"much"}'
ERROR = {"pointer": "/score", "found": '"much"', "wanted": "type integer"}


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    """The plain aliases, and one that verifies by itself."""
    verifying = alias("v-chat", ("chat", "some-model"), structured="verify")
    async with gateway(tmp_path, verifying) as running:
        yield running


@pytest.mark.parametrize("headers", HOW, ids=["default", "hold", "verify"])
@pytest.mark.parametrize("model", UPSTREAMS)
async def test_parse_streamed_with_nested_models(
    client: openai.AsyncOpenAI, model: str, headers: dict[str, str]
) -> None:
    async with client.chat.completions.stream(
        model=model, messages=MESSAGES, response_format=Country, extra_headers=headers
    ) as stream:
        kinds = {event.type async for event in stream}
        final = await stream.get_final_completion()
    assert {"content.delta", "content.done"} <= kinds
    assert isinstance(final.choices[0].message.parsed, Country)
    whole = await client.chat.completions.parse(
        model=model, messages=MESSAGES, response_format=Country, extra_headers=headers
    )
    assert isinstance(whole.choices[0].message.parsed, Country)


@pytest.mark.parametrize("headers", HOW, ids=["default", "hold", "verify"])
@pytest.mark.parametrize("model", UPSTREAMS)
async def test_parse_through_responses(
    client: openai.AsyncOpenAI, model: str, headers: dict[str, str]
) -> None:
    whole = await client.responses.parse(
        model=model, input="Where is 'Oslo'?", text_format=Country, extra_headers=headers
    )
    assert isinstance(whole.output_parsed, Country)
    async with client.responses.stream(
        model=model, input="Where is 'Oslo'?", text_format=Country, extra_headers=headers
    ) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[-1] == "response.completed"
    assert isinstance(final.output_parsed, Country)


@pytest.mark.parametrize(("text", "valid"), [(GOOD, True), (WRONG, False)])
@pytest.mark.parametrize("model", UPSTREAMS)
async def test_a_verdict_ends_a_verified_chat_stream(
    client: openai.AsyncOpenAI, g: Harness, model: str, text: str, valid: bool
) -> None:
    g.simulator.script(SCRIPTED[model], [Say(text, tuple(text))])
    stream = await client.chat.completions.create(
        model=model,
        messages=MESSAGES,
        response_format=FORMAT,
        stream=True,
        extra_headers={"x-gateway-structured": "verify"},
    )
    chunks = [chunk async for chunk in stream]
    pieces = [c.choices[0].delta.content for c in chunks if c.choices]
    assert "".join(piece or "" for piece in pieces) == text
    assert len([piece for piece in pieces if piece]) > 5
    [verdict] = [c.gateway["structured"] for c in chunks if not c.choices]  # type: ignore[attr-defined]
    errors = [] if valid else [ERROR]
    code = None if valid else "output_invalid"
    assert verdict == {"valid": valid, "code": code, "errors": errors}
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert len({chunk.id for chunk in chunks}) == 1
    assert len(g.simulator.log) == 1


async def test_the_alias_may_verify_and_the_caller_may_hold(
    client: openai.AsyncOpenAI, g: Harness
) -> None:
    async def verdicts(**headers: str) -> list[Any]:
        stream = await client.chat.completions.create(
            model="v-chat",
            messages=MESSAGES,
            response_format=FORMAT,
            stream=True,
            extra_headers=headers,
        )
        return [chunk async for chunk in stream if not chunk.choices]

    assert len(await verdicts()) == 1
    assert await verdicts(**{"x-gateway-structured": "hold"}) == []
    whole = await client.chat.completions.create(
        model="v-chat", messages=MESSAGES, response_format=FORMAT
    )
    json.loads(whole.choices[0].message.content or "")


async def test_what_would_have_to_be_mended_is_not_valid_as_it_came(
    client: openai.AsyncOpenAI, g: Harness
) -> None:
    g.simulator.script("some-model", [Say(f"```json\n{GOOD}\n```")])
    stream = await client.chat.completions.create(
        model="v-chat", messages=MESSAGES, response_format=FORMAT, stream=True
    )
    [last] = [chunk async for chunk in stream if not chunk.choices]
    verdict = last.gateway["structured"]  # type: ignore[attr-defined]
    assert (verdict["valid"], verdict["code"]) == (False, "output_unparsable")
    assert [error["wanted"] for error in verdict["errors"]] == ["fence", "fence"]


async def test_nothing_to_judge_is_neither_valid_nor_not(
    client: openai.AsyncOpenAI, g: Harness
) -> None:
    stream = await client.chat.completions.create(
        model="v-chat",
        messages=[{"role": "user", "content": "call f"}],
        response_format=FORMAT,
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        tool_choice="required",
        stream=True,
    )
    [last] = [chunk async for chunk in stream if not chunk.choices]
    assert last.gateway["structured"]["valid"] is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(("text", "valid"), [(GOOD, True), (WRONG, False)])
@pytest.mark.parametrize("model", UPSTREAMS)
async def test_a_verdict_in_a_responses_stream(
    client: openai.AsyncOpenAI, g: Harness, model: str, text: str, valid: bool
) -> None:
    g.simulator.script(SCRIPTED[model], [Say(text)])
    form: Any = {"type": "json_schema", "name": "city", "schema": SCHEMA, "strict": True}
    stream = await client.responses.create(
        model=model,
        input="hi",
        text={"format": form},
        stream=True,
        extra_headers={"x-gateway-structured": "verify"},
    )
    events: list[Any] = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    [verdict] = [event for event in events if event.type == "gateway.structured"]
    assert (verdict.valid, verdict.errors) == (valid, [] if valid else [ERROR])
    assert events[-1].type == "response.completed"
    assert events[-1].response.output[-1].content[0].text == text


@pytest.mark.parametrize(("text", "valid"), [(GOOD, True), (WRONG, False)])
@pytest.mark.parametrize("model", UPSTREAMS)
async def test_a_verdict_in_a_messages_stream(
    g: Harness, model: str, text: str, valid: bool
) -> None:
    g.simulator.script(SCRIPTED[model], [Say(text)] * 2)
    asked: dict[str, Any] = {
        "model": model,
        "max_tokens": 100,
        "messages": MESSAGES,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "extra_headers": {"x-gateway-structured": "verify"},
    }
    async with anthropic.AsyncAnthropic(base_url=g.url, api_key=KEY, max_retries=0) as made:
        async with made.messages.stream(**asked) as stream:
            final = await stream.get_final_message()
        raw = await made.messages.with_raw_response.create(**asked, stream=True)
        data = [line async for line in raw.http_response.aiter_lines() if "gateway_str" in line]
    assert final.content[0].text == text  # type: ignore[union-attr]
    assert data[0] == "event: gateway_structured"
    told = json.loads(data[1].removeprefix("data: "))
    assert (told["valid"], told["errors"]) == (valid, [] if valid else [ERROR])


async def test_a_word_that_is_not_known_is_refused(client: openai.AsyncOpenAI, g: Harness) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(
            model="m-chat",
            messages=MESSAGES,
            response_format=FORMAT,
            extra_headers={"x-gateway-structured": "maybe"},
        )
    assert caught.value.param == "x-gateway-structured"
    assert len(g.simulator.log) == 0


async def test_the_sdk_s_own_error_has_what_a_person_needs(
    client: openai.AsyncOpenAI, g: Harness
) -> None:
    g.simulator.script("claude-sonnet-4-6", [Say(WRONG)] * 3)
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        await client.chat.completions.create(
            model="m-claude", messages=MESSAGES, response_format=FORMAT
        )
    error = caught.value
    assert (error.code, error.type) == ("output_invalid", "output_error")
    assert error.body["provider"] == "anthropic"  # type: ignore[index]
    assert error.body["raw"] == WRONG  # type: ignore[index]
    assert error.body["errors"] == [ERROR]  # type: ignore[index]
