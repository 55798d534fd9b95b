"""Stop sequences where the provider has none: the answer ends there all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from adapters.canonical.events import (
    ArgumentsDelta,
    Finished,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReported,
)
from adapters.canonical.parts import Text, Thinking, ToolCall
from gateway.flow.stops import Stops
from tests.harness import KEY, Harness, alias, gateway


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    paced = alias("paced", ("openai", "slow-30+gpt-5.2"))
    async with gateway(tmp_path, paced) as running:
        yield running


TEXT = "one two three STOP four five six"


@pytest.mark.parametrize("model", ["m-openai", "m-chat", "m-claude"])
@pytest.mark.parametrize("stream", [True, False])
async def test_chat(g: Harness, model: str, stream: bool) -> None:
    async with openai.AsyncOpenAI(base_url=g.url + "/v1", api_key=KEY, max_retries=0) as client:
        asked: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": TEXT}],
            "stop": ["STOP", "never"],
        }
        if stream:
            chunks = [c async for c in await client.chat.completions.create(stream=True, **asked)]
            text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            reason = [c.choices[0].finish_reason for c in chunks if c.choices][-1]
        else:
            choice = (await client.chat.completions.create(**asked)).choices[0]
            text, reason = choice.message.content or "", choice.finish_reason
    assert (text, reason) == ("one two three ", "stop")
    assert g.simulator.log[0].refused is None


@pytest.mark.parametrize("model", ["m-openai", "m-chat", "m-claude"])
async def test_messages(g: Harness, model: str) -> None:
    async with (
        anthropic.AsyncAnthropic(base_url=g.url, api_key=KEY, max_retries=0) as client,
        client.messages.stream(
            model=model,
            max_tokens=100,
            messages=[{"role": "user", "content": TEXT}],
            stop_sequences=["STOP"],
        ) as stream,
    ):
        message = await stream.get_final_message()
    assert message.content[0].text == "one two three "
    if model != "m-chat":  # chat providers don't tell which sequence it was, if it was one
        assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "STOP")


async def test_blank_sequences_work_everywhere(g: Harness) -> None:
    for model in ("m-openai", "m-claude", "m-chat"):
        answer = await g.chat(model, "one\ntwo", stop="\n")
        assert answer.json()["choices"][0]["message"]["content"] == "one"
        assert "x-gateway-dropped" not in answer.headers


async def test_more_than_a_chat_provider_takes(g: Harness) -> None:
    body = {"max_tokens": 50, "messages": [{"role": "user", "content": "a b c d e f"}]}
    stops = [f"nothing{n}" for n in range(8)]
    asked = {**body, "model": "m-chat", "stop_sequences": [*stops, "e"]}
    answer = await g.post("/v1/messages", asked)
    assert answer.json()["content"][0]["text"] == "a b c d "


async def test_the_provider_is_let_go_and_the_row_says_estimated(g: Harness) -> None:
    long = "one STOP " + "more " * 200
    answer = await g.chat("paced", long, stop="STOP", stream=True)
    assert answer.data()[-1] == "[DONE]"
    (attempt,) = g.simulator.log
    await asyncio.wait_for(attempt.ended.wait(), 5)
    assert attempt.finished is None, "the provider was still talking"
    row = (await g.explain(answer))["attempts"][0]
    assert (row["status"], row["usage_source"]) == ("completed", "estimated")


# --------------------------------------------------------------------------- the stage


def run(stops: list[str], *pieces: str) -> tuple[str, list[Any]]:
    stage = Stops(stops)
    out = stage.feed([Started("a", "m"), PartStarted(0, Text(""))])
    for piece in pieces:
        out += stage.feed([TextDelta(0, piece)])
    out += stage.feed([PartEnded(0), UsageReported(Usage(1)), Finished("stop", "stop")])
    return "".join(e.text for e in out if isinstance(e, TextDelta)), out


@pytest.mark.parametrize(
    ("stops", "text", "kept", "hit"),
    [
        (["END"], "abcENDdef", "abc", "END"),
        (["END"], "abcEN", "abcEN", None),
        (["END"], "abcENENDx", "abcEN", "END"),
        (["b", "ab"], "xabx", "x", "ab"),
        (["abc", "ab"], "xabcx", "x", "ab"),
        (["北京"], "去北京玩", "去", "北京"),
        (["x"], "", "", None),
        (["", "c"], "abc", "ab", "c"),
    ],
)
def test_at_every_cut(stops: list[str], text: str, kept: str, hit: str | None) -> None:
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            said, out = run(stops, text[:first], text[first:second], text[second:])
            assert said == kept
            ends = [event for event in out if isinstance(event, Finished)]
            wanted = (
                Finished("stop", "stop") if hit is None else Finished("stop_sequence", stop=hit)
            )
            assert ends == [wanted]
            assert [event for event in out if isinstance(event, PartEnded)] == [PartEnded(0)]


def test_only_texts_are_looked_at() -> None:
    events = [
        Started("a", "m"),
        PartStarted(0, Thinking("")),
        ThinkingDelta(0, "STOP"),
        PartEnded(0),
        PartStarted(1, ToolCall("c", "f", "")),
        ArgumentsDelta(1, '{"a": "STOP"}'),
        PartEnded(1),
        Finished("tool_calls"),
    ]
    assert Stops(["STOP"]).feed(list(events)) == events


def test_nothing_follows_the_end() -> None:
    stage = Stops(["X"])
    stage.feed([Started("a", "m"), PartStarted(0, Text("")), TextDelta(0, "aXb")])
    later = [TextDelta(0, "c"), PartEnded(0), UsageReported(Usage(1)), Finished("stop")]
    assert stage.feed(later) == [UsageReported(Usage(1))]
