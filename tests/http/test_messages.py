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


async def test_clients_find_the_requests_id(client: anthropic.AsyncAnthropic) -> None:
    asked = {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    message = await client.messages.create(model="m-openai", **asked)
    assert message._request_id.startswith("req_")
    with pytest.raises(anthropic.NotFoundError) as told:
        await client.messages.create(model="no", **asked)
    assert told.value.request_id == told.value.body["request_id"]
    assert told.value.request_id == told.value.response.headers["x-request-id"]


async def test_models(client: anthropic.AsyncAnthropic) -> None:
    names = [model.id async for model in client.models.list()]
    assert "m-claude" in names
    assert (await client.models.retrieve("team/gpt:4.1")).type == "model"


async def test_an_unknown_model_is_told_in_its_dialect(client: anthropic.AsyncAnthropic) -> None:
    """The path is OpenAI's too: the client's version says who asks."""
    with pytest.raises(anthropic.NotFoundError) as told:
        await client.models.retrieve("no")
    assert told.value.body["type"] == "error"
    assert told.value.body["error"]["type"] == "not_found_error"
    stranger = client.with_options(api_key="no-such-key")
    with pytest.raises(anthropic.AuthenticationError) as refused:
        await stranger.models.list()
    assert refused.value.body["error"]["type"] == "authentication_error"
