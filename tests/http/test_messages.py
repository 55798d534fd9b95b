"""Counting tokens and listing models in the Messages API's shape."""

from __future__ import annotations

import anthropic
import pytest

from tests.harness import KEY, Harness


@pytest.fixture
async def client(g: Harness):
    async with anthropic.AsyncAnthropic(base_url=g.url, api_key=KEY, max_retries=0) as made:
        yield made


@pytest.mark.parametrize(("model", "estimated"), [("m-claude", None), ("m-openai", "true")])
async def test_count_tokens(client: anthropic.AsyncAnthropic, model: str, estimated) -> None:
    raw = await client.messages.with_raw_response.count_tokens(
        model=model, messages=[{"role": "user", "content": "one two three four"}]
    )
    assert raw.headers.get("x-gateway-estimated") == estimated
    assert (await raw.parse()).input_tokens > 0


async def test_a_bad_count_is_told_in_its_dialect(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError):
        await client.messages.count_tokens(model="no", messages=[{"role": "user", "content": "x"}])


async def test_models(client: anthropic.AsyncAnthropic) -> None:
    names = [model.id async for model in client.models.list()]
    assert "m-claude" in names
    assert (await client.models.retrieve("team/gpt:4.1")).type == "model"
