"""Free-form tools on models that have functions only: asked for, called, answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.events import ArgumentsDelta, PartEnded, PartStarted, Started, TextDelta
from adapters.canonical.parts import Text, ToolCall
from gateway.flow.freeform import Freeform
from tests.harness import Harness, alias, gateway

PATCH: dict[str, Any] = {"type": "custom", "name": "patch", "description": "Changes a file."}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "***"'}
CALLS = (
    alias("c-openai", ("openai", "gpt-5.2+sim-tool")),
    alias("c-claude", ("anthropic", "claude-sonnet-4-6+sim-tool")),
    alias("c-chat", ("chat", "sim-tool")),
)
UPSTREAMS = ("c-openai", "c-claude", "c-chat")


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    async with gateway(tmp_path, *CALLS) as running:
        yield running


def sent(g: Harness) -> dict[str, Any]:
    body: dict[str, Any] = g.simulator.log[-1].body
    return body


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_a_responses_caller_calls_and_answers(g: Harness, model: str) -> None:
    asked: dict[str, Any] = {"model": model, "input": "patch it", "tools": [PATCH]}
    whole = (await g.post("/v1/responses", asked)).json()
    (call,) = [item for item in whole["output"] if item["type"] == "custom_tool_call"]
    assert call["name"] == "patch"
    assert call["input"]
    assert not call["input"].startswith("{")
    streamed = (await g.post("/v1/responses", {**asked, "stream": True})).data()
    kinds = [event["type"].removeprefix("response.") for event in streamed]
    assert "custom_tool_call_input.delta" in kinds
    assert "function_call_arguments.delta" not in kinds
    done = next(e for e in streamed if e["type"].endswith("custom_tool_call_input.done"))
    assert done["input"] == call["input"]
    answered = {
        "type": "custom_tool_call_output",
        "call_id": call["call_id"],
        "output": "patched",
    }
    going_on = {**asked, "previous_response_id": whole["id"], "input": [answered]}
    after = await g.post("/v1/responses", going_on)
    assert after.status == 200, after.body
    assert call["input"] in json.dumps(sent(g))


@pytest.mark.parametrize("model", UPSTREAMS)
@pytest.mark.parametrize("forced", [False, True])
async def test_a_chat_caller_gets_a_custom_call(g: Harness, model: str, forced: bool) -> None:
    tool = {"type": "custom", "custom": {"name": "patch"}}
    choice = {"tool_choice": tool} if forced else {}
    answer = await g.chat(model, "patch it", tools=[tool], **choice)
    assert answer.status == 200, answer.body
    (call,) = answer.json()["choices"][0]["message"]["tool_calls"]
    assert (call["type"], call["custom"]["name"]) == ("custom", "patch")
    assert not call["custom"]["input"].startswith("{")


async def test_a_grammar_is_told_in_words_and_named(g: Harness) -> None:
    tools = [{**PATCH, "format": GRAMMAR, "defer_loading": True}]
    answer = await g.post("/v1/responses", {"model": "c-claude", "input": "x", "tools": tools})
    assert answer.headers["x-gateway-adjusted"] == "tools[0].format=grammar->words"
    assert answer.headers["x-gateway-dropped"] == "tools[0].defer_loading"
    (tool,) = sent(g)["tools"]
    assert tool["input_schema"]["required"] == ["input"]
    assert GRAMMAR["definition"] in tool["input_schema"]["properties"]["input"]["description"]


def test_only_free_form_calls_are_changed() -> None:
    stage = Freeform(frozenset({"patch"}))
    plain = [Started("x", "m"), PartStarted(0, Text("")), TextDelta(0, "a"), PartEnded(0)]
    assert stage.feed(plain) is plain
    other = ToolCall("c1", "f", "")
    free = ToolCall("c2", "patch", "")
    events = [
        PartStarted(1, other),
        PartStarted(2, free),
        ArgumentsDelta(1, '{"input":"not '),
        ArgumentsDelta(2, '{"input":"two\\'),
        ArgumentsDelta(1, 'this"}'),
        ArgumentsDelta(2, 'nlines"}'),
        PartEnded(1),
        PartEnded(2),
    ]
    assert [shown for event in events for shown in stage.feed([event])] == [
        PartStarted(1, other),
        PartStarted(2, ToolCall("c2", "patch", "", "custom")),
        ArgumentsDelta(1, '{"input":"not '),
        ArgumentsDelta(1, 'this"}'),
        PartEnded(1),
        ArgumentsDelta(2, "two\nlines"),
        PartEnded(2),
    ]


@pytest.mark.parametrize("cut", ['{"input":"half', "no object", '{"text":"x"}', ""])
def test_what_is_no_such_object_is_shown_as_it_came(cut: str) -> None:
    stage = Freeform(frozenset({"patch"}))
    call = ToolCall("c", "patch", "")
    events = stage.feed([PartStarted(0, call), ArgumentsDelta(0, cut), PartEnded(0)])
    said = [event.text for event in events if isinstance(event, ArgumentsDelta)]
    assert "".join(said) == cut
