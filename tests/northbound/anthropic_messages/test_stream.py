"""Streams of the Messages API, judged by the vendor's SDK and by their grammar."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.canonical.completion import Completion, fold, unfold
from adapters.canonical.events import (
    ArgumentsDelta,
    Failed,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReported,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Opaque, Refusal, Text, Thinking, ToolCall
from adapters.dialects.anthropic_messages import DIALECT
from adapters.wire.sse import SseParser
from gateway.northbound.anthropic_messages import MESSAGES
from gateway.northbound.anthropic_messages.stream import StreamEncoder

OWN = "anthropic-messages"
START = Started("resp_1", "gpt", None, {}, "openai-responses")
DONE = Finished("stop", "completed")
USAGE = UsageReported(Usage(input=11, cache_read=2, output=5, reasoning=3))


def text(index, *pieces, head=None):
    return [
        PartStarted(index, head or Text("")),
        *(TextDelta(index, piece) for piece in pieces),
        PartEnded(index),
    ]


def call(index, *pieces, **head):
    return [
        PartStarted(index, ToolCall(f"c{index}", "f", "", **head)),
        *(ArgumentsDelta(index, piece) for piece in pieces),
        PartEnded(index),
    ]


def types(told):
    return [event["type"].removeprefix("content_block_") for event in told]


def test_a_text(sent, judge, written):
    events = [START, *text(0, "he", "", "llo"), USAGE, DONE]
    told = sent(events)
    assert types(told) == [
        "message_start",
        "start",
        "delta",
        "delta",
        "stop",
        "message_delta",
        "message_stop",
    ]
    assert told[0]["message"] == {
        "id": "msg_ours",
        "type": "message",
        "role": "assistant",
        "model": "gpt",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    message = judge(written(events))
    assert message.content[0].text == "hello"
    assert (message.stop_reason, message.usage.input_tokens) == ("end_turn", 11)
    assert (message.usage.cache_read_input_tokens, message.usage.output_tokens) == (2, 5)
    assert message.usage.output_tokens_details.thinking_tokens == 3


def test_counts_that_come_with_the_start_are_told_with_it(sent):
    told = sent([Started("m", "m", None, {}, OWN), USAGE, *text(0, "x"), DONE])
    assert told[0]["message"]["usage"]["input_tokens"] == 11


def test_the_start_is_not_held_back_for_counts(envelope):
    encoder = MESSAGES.encoder(envelope())
    assert b"message_start" in encoder.feed([START])
    assert encoder.feed([USAGE]) == b""


def test_ids_and_models(sent):
    own = Started("msg_theirs", "claude", None, {}, OWN)
    assert sent([own, DONE])[0]["message"]["id"] == "msg_theirs"
    assert sent([Started("", None, None, {}, OWN), DONE])[0]["message"]["id"] == "msg_ours"
    assert sent([own, DONE], report_model="alias")[0]["message"]["model"] == "alias"
    assert sent([Started(None, None), DONE])[0]["message"]["model"] == "alias"


def test_arguments_that_are_no_object_come_as_in_a_whole_answer(judge, written):
    """The vendor's SDK reads each delta as a part of an object, and ends at anything else."""
    events = [
        START,
        *call(0, "wea", 'ther in "北"\n'),
        *call(1, "[1", "]"),
        *call(2, " \n", "null"),
        *call(3, " ", '{"a":', "1}"),
        *call(4),
        DONE,
    ]
    inputs = [block.input for block in judge(written(events)).content]
    assert inputs == [
        {"unparsed_arguments": 'weather in "北"\n'},
        {"unparsed_arguments": "[1]"},
        {"unparsed_arguments": " \nnull"},
        {"a": 1},
        {},
    ]


@pytest.mark.parametrize(
    ("finished", "dialect", "shown"),
    [
        (Finished("stop", "completed"), "openai-responses", "end_turn"),
        (Finished("tool_calls", "tool_calls"), "openai-chat", "tool_use"),
        (Finished("length", "max_output_tokens"), "openai-responses", "max_tokens"),
        (Finished("content_filter", "content_filter"), "openai-chat", "refusal"),
        (Finished("refusal", "stop"), "openai-chat", "refusal"),
        (Finished("context_window", "x"), "openai-chat", "model_context_window_exceeded"),
        (Finished("unknown", "brand_new"), "openai-chat", "brand_new"),
        (Finished("unknown", None), "openai-chat", "unknown"),
        (Finished("unknown", "brand_new_reason"), OWN, "brand_new_reason"),
        (Finished("pause", "compaction"), OWN, "compaction"),
        (Finished("stop", "end_turn"), OWN, "end_turn"),
    ],
)
def test_reasons(sent, finished, dialect, shown):
    told = sent([Started("i", "m", None, {}, dialect), finished])
    assert told[-2]["delta"] == {"stop_reason": shown, "stop_sequence": None}


def test_the_sequence_that_stopped_it(sent):
    told = sent([START, Finished("stop_sequence", "stop", stop="END")])
    assert told[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_tool_calls(sent, judge, written):
    events = [
        START,
        *call(0, '{"a":', "1}"),
        *call(1),
        *call(2, 'say "hi"\n', "北", kind="custom"),
        *call(3, kind="custom"),
        Finished("tool_calls"),
    ]
    message = judge(written(events))
    assert [block.input for block in message.content] == [
        {"a": 1},
        {},
        {"input": 'say "hi"\n北'},
        {"input": ""},
    ]
    assert [block.id for block in message.content] == ["c0", "c1", "c2", "c3"]
    assert message.stop_reason == "tool_use"
    pieces = [
        e["delta"]["partial_json"] for e in sent(events) if e.get("index") == 1 and "delta" in e
    ]
    assert pieces == [""]  # as the provider does it where there are no arguments


def test_parts_that_interleave_are_told_one_after_another(sent, judge, written):
    events = [
        START,
        PartStarted(0, ToolCall("a", "f", "")),
        PartStarted(1, ToolCall("b", "f", "")),
        PartStarted(2, Opaque("openai-chat", "audio", {})),
        ArgumentsDelta(1, '{"b":'),
        ArgumentsDelta(0, '{"a":'),
        ArgumentsDelta(1, "2}"),
        PartEnded(1),
        ArgumentsDelta(0, "1}"),
        PartEnded(2),
        PartEnded(0),
        *text(3, "after"),
        DONE,
    ]
    told = sent(events)
    assert [e["index"] for e in told if "index" in e] == [0] * 4 + [1] * 4 + [2] * 3
    message = judge(written(events))
    assert [b.input for b in message.content[:2]] == [{"a": 1}, {"b": 2}]
    assert message.content[2].text == "after"


def test_what_the_protocol_has_no_place_for_takes_no_number(sent):
    events = [
        START,
        PartStarted(0, Opaque("openai-responses", "web_search_call", {})),
        PartAnnotated(0, "data", {"x": 1}),
        PartEnded(0),
        OpaqueEvent("openai-responses", "response.new", {"type": "response.new"}),
        *text(1, "x"),
        DONE,
    ]
    told = sent(events)
    assert types(told)[1:-2] == ["start", "delta", "stop"]
    assert told[1]["index"] == 0


def test_refusals_are_text_and_say_so_at_the_end(judge, written):
    events = [START, *text(0, "I can't.", head=Refusal("")), Finished("refusal", "stop")]
    message = judge(written(events))
    assert (message.content[0].text, message.stop_reason) == ("I can't.", "refusal")


def test_own_thinking_keeps_its_signature(judge, written):
    own = Started("m", "m", None, {}, OWN)
    events = [
        own,
        PartStarted(0, Thinking("", dialect=OWN)),
        ThinkingDelta(0, "hm"),
        PartAnnotated(0, "signature", "sig"),
        PartEnded(0),
        PartStarted(1, Thinking("", sealed="data", dialect=OWN)),
        PartEnded(1),
        DONE,
    ]
    thought, sealed = judge(written(events)).content
    assert (thought.thinking, thought.signature) == ("hm", "sig")
    assert (sealed.type, sealed.data) == ("redacted_thinking", "data")


FOREIGN = [
    Thinking("a", dialect="openai-chat"),
    Thinking("", sealed="enc", dialect="openai-responses", id="rs_1", summary=()),
    Thinking("ab", sealed="e", dialect="openai-responses", id="rs_2", summary=("a", "b")),
    Thinking("x", dialect="openai-chat", extras={"reasoning_details": [{"t": 1}]}),
    Thinking("no maker"),
]


@pytest.mark.parametrize("thinking", FOREIGN)
def test_foreign_reasoning_survives_the_round_trip(ask, judge, written, envelope, thinking):
    answered = Completion("i", "m", None, (thinking,), (0,), terminal=DONE)
    streamed = judge(written(unfold(answered))).content[0].to_dict()
    whole = json.loads(MESSAGES.whole(answered, envelope()))["content"][0]
    assert streamed == whole
    if thinking.summary == ("a", "b"):
        assert whole["thinking"] == "a\n\nb"
    messages = [{"role": "assistant", "content": [whole]}]
    assert ask(messages=messages).request.messages[0].parts == (thinking,)


@pytest.mark.parametrize(
    "signature",
    [
        "gateway.1.!!",
        "gateway.1.AAAA",
        "gateway.1.W10=",
        "gateway.1.eyJkaWFsZWN0IjoieCJ9",
        "gateway.1.eyJpZCI6MX0=",
    ],
)
def test_a_forged_seal_goes_to_nobody(ask, signature):
    block = {"type": "thinking", "thinking": "t", "signature": signature}
    messages = [{"role": "assistant", "content": [block]}]
    assert ask(messages=messages).request.messages[0].parts == (Thinking("t", dialect=OWN),)


def test_citations_of_web_pages(ask, judge, written):
    page = {"url": "https://x", "title": "T", "start_index": 0, "end_index": 2}
    events = [
        START,
        PartStarted(0, Text("")),
        TextDelta(0, "it rained"),
        PartAnnotated(0, "citation", {"type": "url_citation", **page}),
        PartAnnotated(0, "citation", {"type": "url_citation", "url_citation": page}),
        PartAnnotated(0, "citation", {"type": "file_citation", "file_id": "f"}),
        PartEnded(0),
        DONE,
    ]
    block = judge(written(events)).content[0]
    assert [(c.url, c.cited_text) for c in block.citations] == [("https://x", "it")] * 2
    messages = [{"role": "assistant", "content": [block.to_dict()]}]
    assert ask(messages=messages).request.messages[0].parts == (Text("it rained"),)


def test_a_fault_in_the_middle_is_an_error_and_nothing_like_an_end(sent):
    fault = Fault("upstream_overloaded", "The provider is overloaded.")
    told = sent([START, *text(0, "par")[:-1], Failed(fault)])
    assert types(told) == ["message_start", "start", "delta", "error"]
    assert told[-1]["error"]["type"] == "overloaded_error"


def test_pings_are_the_protocols_own():
    frames = SseParser().feed(StreamEncoder.PING)
    assert [(frame.name, json.loads(frame.data)) for frame in frames] == [
        ("ping", {"type": "ping"})
    ]


# --------------------------------------------------------------------------- round trips

texts = st.text(st.characters(codec="utf-8"), max_size=5)
parts = st.lists(
    st.one_of(
        texts.map(Text),
        st.builds(Thinking, texts, st.sampled_from(["s", "sig"]), dialect=st.just(OWN)),
        texts.map(lambda data: Thinking("", sealed=data, dialect=OWN)),
        st.sampled_from(["{}", '{"a":1}']).map(
            lambda given: ToolCall("c", "f", given, extras={"caller": {"type": "direct"}})
        ),
        st.just(Opaque(OWN, "server_tool_use", {"type": "server_tool_use", "input": {"q": 1}})),
        texts.map(lambda note: Opaque(OWN, "new", {"type": "new", "note": note})),
    ),
    max_size=4,
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=parts, singly=st.booleans())
def test_what_is_written_decodes_to_what_was_meant(written, envelope, parts, singly):
    """The southbound decoder reads what the northbound encoder writes: streamed and whole."""
    usage = Usage(1, 2, 3, 4, 0, 1, {"input_tokens": 1, "output_tokens": 4})
    answered = Completion(
        "msg_1",
        "m",
        None,
        tuple(parts),
        (0,) * len(parts),
        usage=usage,
        terminal=Finished("stop", "end_turn", extras={"container": {"id": "c"}}),
        extras={"diagnostics": {"d": 1}},
        dialect=OWN,
    )
    decoder = DIALECT.decoder()
    streamed = [
        event
        for frame in SseParser().feed(written(unfold(answered), singly=singly))
        for event in decoder.feed(frame)
    ]
    whole = DIALECT.decoder().body(MESSAGES.whole(answered, envelope()))
    for events in (streamed, whole):
        told = fold(events)
        assert told.parts == answered.parts
        assert told.terminal == answered.terminal
        assert (told.id, told.model, told.extras) == ("msg_1", "m", answered.extras)
        assert told.usage.raw == usage.raw
