"""The legacy completions, on every upstream."""

from __future__ import annotations

from collections.abc import AsyncIterator

import openai
import pytest

from tests.harness import KEY, Harness

UPSTREAMS = ("m-openai", "m-claude", "m-chat")


@pytest.fixture
async def client(g: Harness) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=g.url + "/v1", api_key=KEY, max_retries=0) as made:
        yield made


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_whole(client: openai.AsyncOpenAI, model: str) -> None:
    answer = await client.completions.create(model=model, prompt="hello there", n=2, echo=True)
    assert [choice.text for choice in answer.choices] == ["hello therehello there"] * 2
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert (answer.object, answer.choices[0].finish_reason) == ("text_completion", "stop")
    assert answer.usage is not None


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_streamed(client: openai.AsyncOpenAI, model: str) -> None:
    stream = await client.completions.create(
        model=model,
        prompt="one two three",
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(choice.text for c in chunks for choice in c.choices) == "one two three"
    assert chunks[-1].usage is not None


async def test_refusals(g: Harness) -> None:
    for fields, param in (
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": "a", "suffix": "b"}, "suffix"),
        ({"prompt": "a", "n": 9}, "n"),
        ({}, "prompt"),
    ):
        answer = await g.post("/completions", {"model": "m-chat", **fields})
        assert (answer.status, answer.json()["error"]["param"]) == (400, param)
