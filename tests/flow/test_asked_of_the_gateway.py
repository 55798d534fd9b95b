"""What callers and aliases ask for that a provider's protocol may have no word for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Harness, alias, gateway

NARROW = """
[models.narrow-{name}]
context = "{context}"
targets = [{{ provider = "{provider}", model = "recite", facts = {{ window = 400 }} }}]
"""
PROVIDERS = ("openai", "anthropic", "chat")
TABLES = (
    *(NARROW.format(name=p, context="refuse", provider=p) for p in PROVIDERS),
    NARROW.format(name="trims", context="trim_history", provider="chat"),
    alias("shows", ("openai", "gpt-5.2+reasoning"), reasoning_summary="auto"),
    alias("silent", ("openai", "gpt-5.2+reasoning")),
    alias("shows-claude", ("anthropic", "claude-sonnet-4-6"), reasoning_summary="detailed"),
    alias("shows-chat", ("chat", "reasoning"), reasoning_summary="concise"),
)


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    async with gateway(tmp_path, *TABLES) as running:
        yield running


def long_talk() -> list[dict[str, Any]]:
    turns = [
        {"role": role, "content": f"{role} {n} " + "word " * 60}
        for n in range(8)
        for role in ("user", "assistant")
    ]
    return [*turns, {"role": "user", "content": "and the last question"}]


def asked(g: Harness) -> dict[str, Any]:
    body: dict[str, Any] = g.simulator.log[-1].body
    return body


# --------------------------------------------------------------------------- truncation


@pytest.mark.parametrize("provider", ["anthropic", "chat"])
async def test_the_gateway_leaves_out_the_oldest_turns(g: Harness, provider: str) -> None:
    body = {"model": f"narrow-{provider}", "input": long_talk(), "max_output_tokens": 20}
    refused = await g.post("/v1/responses", body)
    assert (refused.status, refused.json()["error"]["code"]) == (400, "context_length_exceeded")
    answer = await g.post("/v1/responses", {**body, "truncation": "auto"})
    assert answer.status == 200, answer.body
    assert "turns" in answer.headers["x-gateway-trimmed"]
    assert "x-gateway-dropped" not in answer.headers
    assert "user 0" not in str(asked(g))
    assert "and the last question" in str(asked(g))


async def test_a_provider_that_can_is_left_to_it(g: Harness) -> None:
    body = {"model": "narrow-openai", "input": long_talk(), "truncation": "auto"}
    answer = await g.post("/v1/responses", body)
    assert answer.status == 200, answer.body
    assert asked(g)["truncation"] == "auto"
    assert "user 0" in str(asked(g))
    assert "x-gateway-trimmed" not in answer.headers


async def test_a_caller_may_refuse_what_the_alias_would_trim(g: Harness) -> None:
    body = {"model": "narrow-trims", "input": long_talk(), "max_output_tokens": 20}
    assert (await g.post("/v1/responses", body)).status == 200
    strict = await g.post("/v1/responses", {**body, "truncation": "disabled"})
    assert strict.json()["error"]["code"] == "context_length_exceeded"


# --------------------------------------------------------------------------- capabilities


async def test_what_nobody_has_is_named_as_the_caller_wrote_it(g: Harness) -> None:
    chat = await g.chat("shows-chat", logprobs=True)
    assert (chat.status, chat.json()["error"]["param"]) == (400, "logprobs")
    include = ["message.output_text.logprobs"]
    asked = {"model": "shows-chat", "input": "hi", "include": include}
    responses = await g.post("/v1/responses", asked)
    assert (responses.status, responses.json()["error"]["param"]) == (400, "include")


@pytest.mark.parametrize(
    ("path", "limit", "said"),
    [
        ("/v1/chat/completions", "max_tokens", {"messages": [{"role": "user", "content": "x"}]}),
        (
            "/v1/chat/completions",
            "max_completion_tokens",
            {"messages": [{"role": "user", "content": "x"}]},
        ),
        ("/v1/responses", "max_output_tokens", {"input": "x"}),
        ("/v1/messages", "max_tokens", {"messages": [{"role": "user", "content": "x"}]}),
    ],
)
async def test_what_facts_change_is_named_as_the_caller_wrote_it(
    g: Harness, path: str, limit: str, said: dict[str, Any]
) -> None:
    answer = await g.post(path, {"model": "m-openai", limit: 2, "temperature": 0.5, **said})
    assert answer.headers["x-gateway-adjusted"] == f"{limit}=2->16"
    assert answer.headers["x-gateway-dropped"] == "temperature"


# --------------------------------------------------------------------------- summaries


async def test_an_alias_asks_for_summaries_that_chat_callers_have_no_field_for(g: Harness) -> None:
    silent = await g.chat("silent")
    assert "reasoning_content" not in silent.json()["choices"][0]["message"]
    answer = await g.chat("shows")
    assert asked(g)["reasoning"] == {"summary": "auto"}
    assert answer.json()["choices"][0]["message"]["reasoning_content"]
    assert "x-gateway-dropped" not in answer.headers
    told = await g.explain(answer)
    assert "reasoning.summary=auto" in told["attempts"][0]["injected"]


async def test_what_the_caller_says_goes_first(g: Harness) -> None:
    for said, sent in (
        ({"summary": "concise"}, {"summary": "concise"}),
        ({"effort": "low"}, {"effort": "low", "summary": "auto"}),
        ({"effort": "none"}, {"effort": "none"}),
    ):
        await g.post("/v1/responses", {"model": "shows", "input": "hi", "reasoning": said})
        assert asked(g)["reasoning"] == sent


async def test_who_has_no_word_for_it_is_asked_for_nothing(g: Harness) -> None:
    answer = await g.chat("shows-chat")
    assert "x-gateway-dropped" not in answer.headers
    assert not [name for name in asked(g) if "reasoning" in name]


async def test_it_makes_no_model_think(g: Harness) -> None:
    await g.chat("shows-claude")
    assert "thinking" not in asked(g)
    await g.chat("shows-claude", reasoning_effort="low")
    assert asked(g)["thinking"] == {"type": "adaptive", "display": "summarized"}
