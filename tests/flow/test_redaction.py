"""Personal data through the whole gateway: what the provider saw, what the caller got."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call as Calls
from adapters.simulator import Say, Think
from gateway.policy.redaction.scan import Scanner
from tests.harness import ADMIN, Answer, Harness, alias, gateway

MAIL, CARD = "bob@acme.com", "4111 1111 1111 1111"
UPSTREAMS = {"openai": "gpt-5.2", "anthropic": "claude-sonnet-4-6", "chat": "some-model"}

EXTRA = """
[redaction]
mode = "off"
[[redaction.patterns]]
kind = "TICKET"
pattern = 'TCK-\\d{6}'

[[keys]]
name = "careful"
key = "careful-key"
redaction = "block"
"""


@pytest.fixture
async def g(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    more = [
        alias(f"{mode}-{name}", (name, model), redaction=mode)
        for mode in ("mask", "reversible", "block")
        for name, model in UPSTREAMS.items()
    ]
    extra = EXTRA.replace('"careful-key"', '"${KEY_CHAT}"')
    async with gateway(tmp_path, *more, extra) as running:
        yield running


def text_of(answer: Answer, stream: bool) -> str:
    if not stream:
        return answer.json()["choices"][0]["message"]["content"]
    return "".join(
        choice["delta"].get("content") or ""
        for chunk in answer.data()[:-1]
        for choice in chunk["choices"]
    )


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_reversible(g: Harness, upstream: str, stream: bool) -> None:
    said = f"Mail {MAIL}, then {MAIL} again about {CARD} and TCK-123456."
    answer = await g.chat(f"reversible-{upstream}", said, stream=stream)
    assert answer.status == 200, answer.body
    assert text_of(answer, stream) == said
    raw = g.simulator.log[-1].raw.decode()
    for value in (MAIL, CARD, "4111", "TCK-123456"):
        assert value not in raw
    assert raw.count("<EMAIL_1>") == 2
    row = (await g.explain(answer))["attempts"][0]
    counts = row["counts"]
    assert counts == {"redacted_email": 2, "redacted_card": 1, "redacted_ticket": 1}


async def test_mask_leaves_the_placeholder_in_the_answer(g: Harness) -> None:
    answer = await g.chat("mask-openai", f"Mail {MAIL}")
    assert text_of(answer, False) == "Mail <EMAIL_1>"


async def test_block_names_the_kinds_and_never_the_values(g: Harness) -> None:
    before = len(g.simulator.log)
    answer = await g.chat("block-openai", f"Mail {MAIL} about {CARD}")
    assert answer.status == 400
    error = answer.json()["error"]
    assert (error["code"], error["kinds"]) == ("redaction_blocked", ["CARD", "EMAIL"])
    assert MAIL not in answer.body.decode()
    assert "4111" not in answer.body.decode()
    assert len(g.simulator.log) == before
    assert (await g.chat("block-openai", "nothing to see")).status == 200


async def test_a_key_s_mode_is_over_the_alias_s(g: Harness) -> None:
    body = {"model": "mask-openai", "messages": [{"role": "user", "content": MAIL}]}
    answer = await g.post("/v1/chat/completions", body, key="sk-provider-chat")
    assert answer.json()["error"]["code"] == "redaction_blocked"


async def test_off_sends_and_keeps_everything(g: Harness) -> None:
    answer = await g.chat("m-openai", f"Mail {MAIL}")
    assert text_of(answer, False) == f"Mail {MAIL}"
    assert MAIL in g.simulator.log[-1].raw.decode()
    assert (await g.explain(answer))["attempts"][0]["counts"] in (None, {})


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "send",
            "description": f"Sends mail as {MAIL}",
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
        },
    }
]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_tool_calls_and_their_results(g: Harness, upstream: str, stream: bool) -> None:
    """What the tool is called with is the original; what it gave back is masked on its way."""
    arguments = '{"to": "<EMAIL_1>", "again": "\\u003cEMAIL_1\\u003e"}'
    g.simulator.script(UPSTREAMS[upstream], [Calls("send", arguments, id="call_1"), Say("ok")])
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"send to {MAIL}"}]
    body = {"model": f"reversible-{upstream}", "tools": TOOLS, "stream": stream}
    answer = await g.post("/v1/chat/completions", {**body, "messages": messages})
    got = _arguments(answer, stream)
    assert json.loads(got) == {"to": MAIL, "again": MAIL}
    assert MAIL not in g.simulator.log[-1].raw.decode()

    call = {"id": "call_1", "type": "function", "function": {"name": "send", "arguments": got}}
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": '{"sent": "amy\\u0040b.org"}'},
    ]
    again = await g.post("/v1/chat/completions", {**body, "messages": messages})
    assert again.status == 200, again.body
    raw = g.simulator.log[-1].raw.decode()
    assert "acme" not in raw
    assert "amy" not in raw


def _arguments(answer: Answer, stream: bool) -> str:
    if not stream:
        call = answer.json()["choices"][0]["message"]["tool_calls"][0]
        return call["function"]["arguments"]
    return "".join(
        call["function"].get("arguments") or ""
        for chunk in answer.data()[:-1]
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls") or ()
    )


async def test_a_re_ask_sends_the_masked_text(g: Harness) -> None:
    """The answer is checked as the caller will see it, and goes back masked (design, section 3)."""
    schema = {"type": "object", "properties": {"to": {"const": "x"}}, "required": ["to"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "o", "schema": schema}}
    g.simulator.script("gpt-5.2", [Say('{"to": "<EMAIL_1>"}'), Say('{"to": "x"}')])
    answer = await g.chat("reversible-openai", f"mail {MAIL}", response_format=wanted)
    assert text_of(answer, False) == '{"to": "x"}'
    first, second = list(g.simulator.log)[-2:]
    assert "<EMAIL_1>" in first.raw.decode()
    assert "can't be used" in second.raw.decode(), "the second try is a re-ask"
    assert "acme" not in second.raw.decode()


async def test_a_schema_is_checked_with_the_values_in_it(g: Harness) -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string", "pattern": "^[a-z]+@"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "o", "schema": schema}}
    g.simulator.script("gpt-5.2", [Say('{"to": "<EMAIL_1>"}')])
    answer = await g.chat("reversible-openai", f"mail {MAIL}", response_format=wanted)
    assert json.loads(text_of(answer, False)) == {"to": MAIL}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_reasoning_and_instructions(g: Harness, stream: bool) -> None:
    g.simulator.script("gpt-5.2", [Say("<EMAIL_1>")])
    body = {
        "model": "reversible-openai",
        "instructions": f"You are {MAIL}",
        "input": [{"role": "user", "content": "hi"}],
        "user": MAIL,
        "metadata": {"who": MAIL},
        "stream": stream,
    }
    answer = await g.post("/v1/responses", body)
    assert answer.status == 200, answer.body
    assert MAIL in answer.body.decode()
    assert "acme" not in g.simulator.log[-1].raw.decode()
    assert (await g.explain(answer))["end_user"] == MAIL, "the books can find a person's rows"


async def test_messages_in_their_own_protocol(g: Harness) -> None:
    body = {
        "model": "reversible-anthropic",
        "max_tokens": 100,
        "system": f"You write as {MAIL}",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": f"I am amy@b.org, not {MAIL}"}]}
        ],
    }
    answer = await g.post("/v1/messages", body, headers={"anthropic-version": "2023-06-01"})
    assert answer.json()["content"][0]["text"] == f"I am amy@b.org, not {MAIL}"
    assert "acme" not in g.simulator.log[-1].raw.decode()


async def test_it_fails_closed(g: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Scanner, text: str) -> Any:
        raise RuntimeError(text)

    monkeypatch.setattr(Scanner, "find", broken)
    before = len(g.simulator.log)
    answer = await g.chat("mask-openai", f"Mail {MAIL}")
    assert answer.status == 500
    assert answer.json()["error"]["code"] == "redaction_failed"
    assert MAIL not in answer.body.decode()
    assert len(g.simulator.log) == before


async def test_a_bad_configuration_is_refused_on_reload(g: Harness, tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(path.read_text().replace(r"TCK-\d{6}", r"(TCK)-\d+\1"))
    answer = await g.post("/admin/reload", b"", key=ADMIN)
    assert answer.status == 409
    assert "redaction.patterns[0].pattern" in answer.body.decode()


async def test_counting_tokens_sends_nothing_either(g: Harness) -> None:
    body = {
        "model": "reversible-anthropic",
        "messages": [{"role": "user", "content": f"I am {MAIL}"}],
    }
    headers = {"anthropic-version": "2023-06-01"}
    answer = await g.post("/v1/messages/count_tokens", body, headers=headers)
    assert answer.status == 200, answer.body
    assert g.simulator.log[-1].path.endswith("/count_tokens")
    assert "acme" not in g.simulator.log[-1].raw.decode()


async def test_a_key_made_at_run_time_has_its_mode(g: Harness) -> None:
    made = await g.post("/admin/keys", {"name": "new", "redaction": "block"}, key=ADMIN)
    key = made.json()["key"]
    body = {"model": "m-openai", "messages": [{"role": "user", "content": MAIL}]}
    answer = await g.post("/v1/chat/completions", body, key=key)
    assert answer.json()["error"]["code"] == "redaction_blocked"


async def test_signed_reasoning_returns_as_it_was_made(g: Harness) -> None:
    """The provider proves its own reasoning: what the caller saw with the values in it must go
    back with the placeholders at the same places, to the byte."""
    thought = "They are <EMAIL_1>; <EMAIL_2> is someone else."
    call = Calls("send", '{"to": "<EMAIL_2>"}', id="toolu_1")
    g.simulator.script("claude-sonnet-4-6", [[Think(thought), call], Say("done")])
    tools = [{"name": "send", "input_schema": {"type": "object"}}]
    body: dict[str, Any] = {
        "model": "reversible-anthropic",
        "max_tokens": 3000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tools": tools,
        "messages": [{"role": "user", "content": f"I am {MAIL}, send to amy@b.org"}],
    }
    headers = {"anthropic-version": "2023-06-01"}
    first = await g.post("/v1/messages", body, headers=headers)
    assert first.status == 200, first.body
    content = first.json()["content"]
    assert content[0]["thinking"] == f"They are {MAIL}; amy@b.org is someone else."
    assert content[-1]["input"] == {"to": "amy@b.org"}
    result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "ok, amy@b.org"}
    body["messages"] += [
        {"role": "assistant", "content": content},
        {"role": "user", "content": [result]},
    ]
    second = await g.post("/v1/messages", body, headers=headers)
    assert second.status == 200, second.body
    assert thought in json.dumps(g.simulator.log[-1].body)
    assert "amy" not in g.simulator.log[-1].raw.decode()


async def test_signed_reasoning_that_can_t_return_masked_is_left_out(g: Harness) -> None:
    """An address that the model made up would go back as a placeholder, under a signature for
    other words: the provider refuses that, in this turn and in all that follow."""
    call = Calls("send", "{}", id="toolu_1")
    g.simulator.script("claude-sonnet-4-6", [[Think("Try info@example.com."), call], Say("done")])
    body: dict[str, Any] = {
        "model": "reversible-anthropic",
        "max_tokens": 3000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tools": [{"name": "send", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": f"I am {MAIL}"}],
    }
    headers = {"anthropic-version": "2023-06-01"}
    content = (await g.post("/v1/messages", body, headers=headers)).json()["content"]
    result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "ok"}
    body["messages"] += [
        {"role": "assistant", "content": content},
        {"role": "user", "content": [result]},
    ]
    second = await g.post("/v1/messages", body, headers=headers)
    assert second.status == 200, second.body
    assert "info@example.com" not in g.simulator.log[-1].raw.decode()
    assert "messages[1].content[0]" in second.headers["x-gateway-dropped"]


async def test_reasoning_that_a_chat_client_can_t_carry_returns_masked(g: Harness) -> None:
    thought = "It is <PHONE_1>, and they are <EMAIL_1>."
    call = Calls("send", '{"to": "<EMAIL_1>"}', id="toolu_1")
    g.simulator.script("claude-sonnet-4-6", [[Think(thought), call], Say("done")])
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"I am {MAIL}, call 5551234567"}]
    body = {"model": "reversible-anthropic", "tools": TOOLS, "reasoning_effort": "low"}
    first = await g.post("/v1/chat/completions", {**body, "messages": messages})
    assert first.status == 200, first.body
    made = first.json()["choices"][0]["message"]["tool_calls"]
    messages += [
        {"role": "assistant", "content": None, "tool_calls": made},
        {"role": "tool", "tool_call_id": made[0]["id"], "content": "ok"},
    ]
    second = await g.post("/v1/chat/completions", {**body, "messages": messages})
    assert second.status == 200, second.body
    assert thought in json.dumps(g.simulator.log[-1].body)
    assert "acme" not in g.simulator.log[-1].raw.decode()
