"""The cases of the OpenResponses compliance suite, on every upstream, whole and streamed."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Harness, alias, gateway
from tests.sdk.openresponses import check_response, check_stream

UPSTREAMS = ("m-openai", "m-claude", "m-chat")
THINKING = ("t-openai", "t-claude", "t-chat")

FORECAST = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather of a place",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string", "description": "A city"}},
        "required": ["place"],
    },
}


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    extra = [
        alias("t-openai", ("openai", "reasoning+gpt-5.2")),
        alias("t-claude", ("anthropic", "reasoning+claude-sonnet-4-5")),
        alias("t-chat", ("chat", "reasoning+some-model")),
        alias("samples-openai", ("openai", "gpt-4.1")),
        alias("cut-openai", ("openai", "fault-length-cut")),
        alias("cut-claude", ("anthropic", "fault-length-cut")),
        alias("no-openai", ("openai", "refusal")),
        alias("no-claude", ("anthropic", "refusal")),
        alias("no-chat", ("chat", "refusal")),
        alias("both-openai", ("openai", "talk-and-call")),
        alias("both-claude", ("anthropic", "talk-and-call")),
        alias("recite-openai", ("openai", "recite")),
        alias("recite-claude", ("anthropic", "recite")),
        alias("broken-claude", ("anthropic", "fault-error-midstream-2"), retries=0),
        alias("broken-openai", ("openai", "fault-error-midstream-2"), retries=0),
    ]
    async with gateway(tmp_path, *extra) as running:
        yield running


def said(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def picture() -> str:
    """A red square of 2 by 2 points, as a data URL."""
    rows = b"".join(b"\x00" + b"\xff\x00\x00" * 2 for _ in range(2))

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
    return "data:image/png;base64," + base64.b64encode(png + chunk(b"IEND", b"")).decode()


async def ask(g: Harness, stream: bool, model: str, **fields: Any) -> dict[str, Any]:
    """One answer, checked against the schema and the grammar."""
    answer = await g.post("/v1/responses", {"model": model, "stream": stream, **fields})
    assert answer.status == 200, answer.body
    response = check_stream(answer.data()) if stream else answer.json()
    check_response(response)
    return response


def text_of(response: dict[str, Any]) -> str:
    return "".join(
        part["text"]
        for item in response["output"]
        if item["type"] == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    )


both_ways = pytest.mark.parametrize("stream", [False, True])
everywhere = pytest.mark.parametrize("model", [*UPSTREAMS, *THINKING])


@both_ways
@everywhere
async def test_basic(g: Harness, model: str, stream: bool) -> None:
    response = await ask(g, stream, model, input=[said("user", "Good morning to you.")])
    assert (response["status"], text_of(response)) == ("completed", "Good morning to you.")


@both_ways
@pytest.mark.parametrize("model", ["recite-openai", "recite-claude"])
async def test_system_prompt(g: Harness, model: str, stream: bool) -> None:
    turns = [said("system", "You are a sailor."), said("user", "Greet me.")]
    response = await ask(g, stream, model, input=turns)
    assert "sailor" in text_of(response)


@both_ways
@everywhere
async def test_tool_calling(g: Harness, model: str, stream: bool) -> None:
    turns = [said("user", "What is the weather in 'Oslo'?")]
    response = await ask(g, stream, model, input=turns, tools=[FORECAST])
    (call,) = [item for item in response["output"] if item["type"] == "function_call"]
    assert (call["name"], call["arguments"]) == ("get_weather", '{"place":"Oslo"}')
    (told,) = response["tools"]
    assert told["strict"] in (None, True)


@both_ways
@pytest.mark.parametrize("model", UPSTREAMS)
async def test_image_input(g: Harness, model: str, stream: bool) -> None:
    content = [
        {"type": "input_text", "text": "Tell me what this shows."},
        {"type": "input_image", "image_url": picture()},
    ]
    response = await ask(g, stream, model, input=[said("user", content)])
    assert "image/png" in text_of(response)


@both_ways
@pytest.mark.parametrize("model", ["recite-openai", "recite-claude"])
async def test_multi_turn(g: Harness, model: str, stream: bool) -> None:
    turns = [
        said("user", "I am Bo."),
        said("assistant", "Good to know you, Bo."),
        said("user", "Who am I?"),
    ]
    assert "Good to know you, Bo." in text_of(await ask(g, stream, model, input=turns))


# --------------------------------------------------------------------------- the grammar


@both_ways
@pytest.mark.parametrize("model", ["cut-openai", "cut-claude"])
async def test_incomplete(g: Harness, model: str, stream: bool) -> None:
    response = await ask(g, stream, model, input="one two three four five six")
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}


@both_ways
@pytest.mark.parametrize("model", ["no-openai", "no-claude", "no-chat"])
async def test_refusals(g: Harness, model: str, stream: bool) -> None:
    response = await ask(g, stream, model, input="something wicked")
    assert response["status"] in ("completed", "incomplete")


@both_ways
@pytest.mark.parametrize("model", ["both-openai", "both-claude"])
async def test_words_and_calls(g: Harness, model: str, stream: bool) -> None:
    fields: dict[str, Any] = {"input": "weather in 'Oslo'", "tools": [FORECAST]}
    response = await ask(g, stream, model, **fields)
    assert [item["type"] for item in response["output"]][-2:] == ["message", "function_call"]


@pytest.mark.parametrize("model", ["broken-openai", "broken-claude"])
async def test_a_failure_in_the_stream(g: Harness, model: str) -> None:
    asked = {"model": model, "stream": True, "input": "one two three four five"}
    events = (await g.post("/v1/responses", asked)).data()
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events][-2:] == ["error", "response.failed"]
    check_response(events[-1]["response"])
    assert events[-1]["response"]["error"]["code"]


@both_ways
@pytest.mark.parametrize("model", ["samples-openai", "m-claude", "m-chat"])
async def test_what_was_asked_is_repeated(g: Harness, model: str, stream: bool) -> None:
    asked: dict[str, Any] = {
        "instructions": "Be brief.",
        "temperature": 0.5,
        "top_p": 0.5,
        "max_output_tokens": 64,
        "metadata": {"a": "b"},
        "parallel_tool_calls": False,
        "truncation": "disabled",
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "store": False,
        "tool_choice": "auto",
        "tools": [FORECAST],
    }
    response = await ask(g, stream, model, input="hello", **asked)
    del asked["tools"]
    assert {name: response[name] for name in asked} == asked
