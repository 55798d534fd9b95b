"""Sealed reasoning: back to its maker, to nobody else, across failover too."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.flow.seals import Maker, Makers
from tests.harness import Harness, gateway

SECOND = """
[providers.openai-two]
dialect = "openai-responses"
base_url = "{url}/v1"
api_key = "${KEY_OPENAI}"

[providers.anthropic-two]
dialect = "anthropic-messages"
base_url = "{url}"
api_key = "${KEY_ANTHROPIC}"

[models.thinks]
targets = [{ provider = "openai", model = "reasoning+gpt-5.2" }]

[models.moves]
retries = 0
targets = [
  { provider = "openai", model = "fault-once-503" },
  { provider = "openai-two", model = "gpt-5.2" },
]

[models.elsewhere]
targets = [
  { provider = "openai-two", model = "gpt-5.2" },
]

[models.signs]
targets = [{ provider = "anthropic", model = "reasoning+claude-sonnet-4-5" }]

[models.signs-moves]
retries = 0
targets = [
  { provider = "anthropic", model = "claude-sonnet-4-5+fault-once-503" },
  { provider = "anthropic-two", model = "claude-sonnet-4-5" },
]

[models.other-family]
retries = 0
targets = [
  { provider = "anthropic", model = "claude-sonnet-4-5+fault-once-503" },
  { provider = "anthropic-two", model = "claude-sonnet-4-5", facts = { family = "kimi" } },
]
"""

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    async with gateway(tmp_path, SECOND) as running:
        yield running


async def thought(g: Harness) -> list[dict[str, Any]]:
    """A turn on the Responses API with sealed reasoning in it."""
    asked = {"model": "thinks", "input": "think", "store": False}
    output = (await g.post("/v1/responses", asked)).json()["output"]
    assert output[0]["encrypted_content"]
    turn: list[dict[str, Any]] = [{"role": "user", "content": "think"}, *output]
    return [*turn, {"role": "user", "content": "go on"}]


async def signed(g: Harness) -> list[dict[str, Any]]:
    """A turn on the Messages API with signed thinking in it."""
    first = {"role": "user", "content": "think"}
    asked = {"model": "signs", "max_tokens": 4000, "messages": [first]}
    content = (await g.post("/v1/messages", asked)).json()["content"]
    assert content[0]["signature"]
    return [first, {"role": "assistant", "content": content}, {"role": "user", "content": "on"}]


def sent(g: Harness, number: int) -> str:
    return json.dumps(list(g.simulator.log)[number].body)


async def test_sealed_goes_to_its_own_provider_only(g: Harness) -> None:
    turns = await thought(g)
    answer = await g.post("/v1/responses", {"model": "moves", "input": turns})
    assert answer.status == 200, answer.body
    assert "encrypted_content" in json.dumps(list(g.simulator.log)[1].body["input"])
    assert "encrypted_content" not in json.dumps(list(g.simulator.log)[2].body["input"])
    assert answer.headers["x-gateway-dropped"] == "input[1]"


async def test_another_alias_does_not_change_the_maker(g: Harness) -> None:
    turns = await thought(g)
    answer = await g.post("/v1/responses", {"model": "elsewhere", "input": turns})
    assert answer.headers["x-gateway-dropped"] == "input[1]"
    back = await g.post("/v1/responses", {"model": "thinks", "input": turns})
    assert "x-gateway-dropped" not in back.headers


async def test_strict_refuses_instead(g: Harness) -> None:
    turns = await thought(g)
    body = {"model": "elsewhere", "input": turns}
    answer = await g.post("/v1/responses", body, headers={"x-gateway-strict": "true"})
    assert (answer.status, answer.json()["error"]["param"]) == (400, "input[1]")


async def test_a_seal_that_nobody_saw_made_is_the_first_targets(g: Harness) -> None:
    turns = await thought(g)
    g.state.runtime.memory.makers._entries.clear()
    runtime = g.state.runtime
    gone = await runtime.store.sweep(runtime.clock.wall() + 91 * 86_400, {})
    assert gone["seals"] == 1
    answer = await g.post("/v1/responses", {"model": "moves", "input": turns})
    assert "encrypted_content" in json.dumps(list(g.simulator.log)[1].body["input"])
    assert answer.headers["x-gateway-dropped"] == "input[1]"


async def test_makers_are_known_after_a_restart(tmp_path: Path) -> None:
    async with gateway(tmp_path, SECOND) as before:
        sealed_turns, signed_turns = await thought(before), await signed(before)
    async with gateway(tmp_path, SECOND) as after:
        assert not len(after.state.runtime.memory.makers)
        away = await after.post("/v1/responses", {"model": "elsewhere", "input": sealed_turns})
        assert away.headers["x-gateway-dropped"] == "input[1]"
        assert "encrypted_content" not in sent(after, 0).replace("reasoning.encrypted_content", "")
        back = await after.post("/v1/responses", {"model": "thinks", "input": sealed_turns})
        assert "x-gateway-dropped" not in back.headers
        body = {"model": "other-family", "max_tokens": 4000, "messages": signed_turns}
        other = await after.post("/v1/messages", body)
        assert other.headers["x-gateway-dropped"] == "messages[1].content[0]"


async def test_signed_goes_to_its_family_wherever_that_runs(g: Harness) -> None:
    turns = await signed(g)
    body = {"model": "signs-moves", "max_tokens": 4000, "messages": turns}
    answer = await g.post("/v1/messages", body)
    assert answer.status == 200, answer.body
    assert "signature" in sent(g, 1)
    assert "signature" in sent(g, 2)
    assert "x-gateway-dropped" not in answer.headers


async def test_signed_goes_to_no_other_family(g: Harness) -> None:
    turns = await signed(g)
    body = {"model": "other-family", "max_tokens": 4000, "messages": turns}
    answer = await g.post("/v1/messages", body)
    assert answer.status == 200, answer.body
    assert "signature" in sent(g, 1)
    assert "signature" not in sent(g, 2)
    assert answer.headers["x-gateway-dropped"] == "messages[1].content[0]"


async def test_through_another_dialects_client_too(g: Harness) -> None:
    """A chat client carries nothing: what the gateway kept for it is bound just the same."""
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
    turns: list[dict[str, Any]] = [{"role": "user", "content": "weather in Rome"}]
    first = await g.post(
        "/v1/chat/completions", {"model": "thinks", "messages": turns, "tools": [tool]}
    )
    message = first.json()["choices"][0]["message"]
    call = {k: message["tool_calls"][0][k] for k in ("id", "type", "function")}
    turns += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "sunny"},
    ]
    for model, carried in (("thinks", True), ("elsewhere", False)):
        body = {"model": model, "messages": turns, "tools": [tool]}
        answer = await g.post("/v1/chat/completions", body)
        assert answer.status == 200, answer.body
        assert ("encrypted_content" in json.dumps(g.simulator.log[-1].body["input"])) == carried


def test_makers_are_bounded() -> None:
    makers = Makers(limit=2)
    for name in ("a", "b", "c"):
        makers.keep(name, Maker(name, "f"))
    assert (len(makers), makers.maker("a"), makers.maker("c")) == (2, None, Maker("c", "f"))
