"""What multi-turn tool use needs survives a client that only keeps the assistant message."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.canonical.completion import Completion, unfold
from adapters.canonical.events import Finished
from adapters.canonical.parts import Text, Thinking, ToolCall
from adapters.wire import openai_reasoning
from gateway.northbound.base import Envelope
from gateway.northbound.openai_chat import CHAT

sealed = st.none() | st.text(max_size=6)
sections = st.lists(st.text(max_size=4), max_size=3).map(tuple)
anthropic = st.builds(
    Thinking, st.text(max_size=8), sealed, sealed, st.just("anthropic-messages"), sealed
)
responses = sections.flatmap(
    lambda split: st.builds(
        Thinking,
        st.just("".join(split)),
        sealed=sealed,
        dialect=st.just("openai-responses"),
        id=sealed,
        summary=st.just(split),
        extras=st.just({}) | st.just({"status": "completed"}),
    )
)
own = st.one_of(anthropic, responses)


def sent_back(message: dict) -> tuple:
    """The parts of an assistant message that a client returns in its next request."""
    body = {"model": "m", "messages": [message]}
    return CHAT.parse(json.dumps(body).encode(), {}).request.messages[0].parts


def answered(*parts) -> dict:
    completion = Completion(parts=parts, choices=(0,) * len(parts), terminal=Finished("tool_calls"))
    body = CHAT.whole(completion, Envelope("chatcmpl-1", 1, "m"))
    return json.loads(body)["choices"][0]["message"]


@settings(max_examples=100, deadline=None)
@given(st.lists(own, max_size=4))
def test_every_part_comes_back_byte_for_byte(thoughts):
    call = ToolCall("c1", "f", "{}")
    assert sent_back(answered(*thoughts, call)) == (*thoughts, call)


@settings(max_examples=50, deadline=None)
@given(st.lists(own, max_size=3))
def test_details_that_a_client_collects_from_a_stream_are_the_same(thoughts):
    completion = Completion(
        parts=tuple(thoughts), choices=(0,) * len(thoughts), terminal=Finished("stop")
    )
    *events, terminal = unfold(completion)
    encoder = CHAT.encoder(Envelope("chatcmpl-1", 1, "m"))
    written = encoder.feed(events) + encoder.finish(terminal)
    collected = []
    for frame in written.split(b"\n\n")[:-2]:
        delta = json.loads(frame[6:])["choices"][0]["delta"]
        collected.extend(delta.get("reasoning_details", ()))
    assert collected == answered(*thoughts).get("reasoning_details", [])


def test_sealed_reasoning_has_no_text_streamed_or_not():
    thinking = Thinking("", sealed="c2Vh", dialect="anthropic-messages")
    assert "reasoning_content" not in answered(thinking)
    completion = Completion(parts=(thinking,), choices=(0,), terminal=Finished("stop"))
    *events, terminal = unfold(completion)
    encoder = CHAT.encoder(Envelope("chatcmpl-1", 1, "m"))
    assert b"reasoning_content" not in encoder.feed(events) + encoder.finish(terminal)


def test_a_chat_providers_own_details_come_back_whole():
    theirs = [
        {"type": "reasoning.text", "text": "a", "index": 0, "format": None, "x": 1},
        {"type": "reasoning.encrypted", "data": "ZW5j", "index": 0, "format": "other-v1"},
    ]
    (thinking,) = openai_reasoning.thoughts({"reasoning_details": theirs})
    assert thinking.text == "a"
    assert openai_reasoning.details([thinking]) == theirs
    assert sent_back(answered(thinking, Text("x"))) == (thinking, Text("x"))


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_plain_reasoning_needs_no_details(field):
    parts = sent_back({"role": "assistant", "content": "x", field: "why"})
    assert parts[0].text == "why"
    assert "reasoning_details" not in answered(*parts)
    assert answered(*parts)["reasoning_content"] == "why"


def test_fragments_of_one_detail_are_joined_and_others_kept_apart():
    found: list = []
    for fragment in (
        {"type": "reasoning.text", "text": "a", "index": 0, "signature": None},
        {"type": "reasoning.text", "text": "b", "index": 0},
        {"type": "reasoning.text", "text": "", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "x", "index": 0},
        "no object",
    ):
        openai_reasoning.merged(found, [fragment])
    assert found == [
        {"type": "reasoning.text", "text": "ab", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "x", "index": 0},
    ]


def test_forbidden_names_are_taken_out_of_details(ask):
    detail = {"type": "reasoning.text", "text": "a", "format": "x", "api_base": "http://evil.test"}
    asked = ask(messages=[{"role": "assistant", "content": "", "reasoning_details": [detail]}])
    assert asked.dropped == ("messages[0].reasoning_details[0].api_base",)
    assert "evil.test" not in repr(asked.request)
