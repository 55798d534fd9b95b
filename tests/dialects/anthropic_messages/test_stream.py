"""Streams and bodies that the golden cases do not cover: reasons, oddities, broken protocol."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from anthropic.types.beta import BetaStopReason
from anthropic.types.stop_reason import StopReason

from adapters.canonical import grammar
from adapters.canonical.completion import fold
from adapters.canonical.events import Finished, OpaqueEvent
from adapters.dialects.anthropic_messages import DIALECT
from adapters.wire.anthropic_messages import STOP_REASONS

START = {
    "type": "message_start",
    "message": {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 3}},
}
STOP = {"type": "message_stop"}


def ending(reason, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def opening(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index, kind, **fields):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def closing(index):
    return {"type": "content_block_stop", "index": index}


def stream(*events):
    return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]


TEXT = (opening(0, type="text", text=""), delta(0, "text_delta", text="hi"), closing(0))
THINKING = opening(0, type="thinking", thinking="", signature="")
TOOL = opening(0, type="tool_use", id="toolu_1", name="f", input={})
SEARCH = opening(0, type="server_tool_use", id="srv_1", name="web_search", input={})


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("stop_sequence", "stop_sequence"),
        ("tool_use", "tool_calls"),
        ("pause_turn", "pause"),
        ("compaction", "pause"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context_window"),
        ("brand_new_reason", "unknown"),
    ],
)
def test_stop_reasons(decode, raw, reason):
    end = decode(stream(START, *TEXT, ending(raw), STOP))[-1]
    assert isinstance(end, Finished)
    assert (end.reason, end.raw_reason) == (reason, raw)
    body = {**START["message"], "stop_reason": raw}
    assert DIALECT.decoder().body(json.dumps(body).encode())[-1].reason == reason


def test_the_table_of_stop_reasons_is_the_vendors():
    assert set(STOP_REASONS) == set(get_args(StopReason)) | set(get_args(BetaStopReason))


def test_blocks_are_numbered_densely_and_may_interleave(decode):
    events = decode(
        stream(
            START,
            opening(4, type="text", text="a"),
            opening(9, type="tool_use", id="t", name="f", input={"whole": 1}),
            delta(4, "text_delta", text="b"),
            closing(9),
            closing(4),
            ending("tool_use"),
            STOP,
        )
    )
    grammar.check(events)
    text, call = fold(events).parts
    assert (text.text, json.loads(call.arguments)) == ("ab", {"whole": 1})


def test_blocks_left_open_are_closed_at_the_end(decode):
    events = decode(stream(START, *TEXT[:2], ending("end_turn"), STOP))
    grammar.check(events)
    assert isinstance(events[-1], Finished)


def test_a_tool_call_cut_at_the_limit_keeps_what_came(decode):
    events = decode(
        stream(
            START,
            opening(0, type="tool_use", id="t", name="f", input={}),
            delta(0, "input_json_delta", partial_json='{"a": "b'),
            closing(0),
            ending("max_tokens"),
            STOP,
        )
    )
    completion = fold(events)
    assert completion.parts[0].arguments == '{"a": "b'
    assert completion.terminal.reason == "length"


def test_a_server_tools_input_cut_short_stays_raw(decode):
    events = decode(
        stream(
            START,
            opening(0, type="server_tool_use", id="s", name="web_search", input={}),
            delta(0, "input_json_delta", partial_json='{"query'),
            closing(0),
            ending("pause_turn"),
            STOP,
        )
    )
    assert fold(events).parts[0].data["input"] == '{"query'


def test_an_unknown_delta_of_a_known_block_is_shown_as_opaque(decode):
    events = decode(
        stream(START, *TEXT[:2], delta(0, "new_delta", x=1), closing(0), ending("end_turn"), STOP)
    )
    grammar.check(events)
    assert [e.data["delta"]["x"] for e in events if isinstance(e, OpaqueEvent)] == [1]


def test_usage_overwrites_count_by_count(decode):
    usage = {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}
    start = {"type": "message_start", "message": {**START["message"], "usage": usage}}
    events = decode(stream(start, ending("end_turn", output_tokens=9, input_tokens=None), STOP))
    counted = fold(events).usage
    assert (counted.input, counted.cache_read, counted.output) == (5, 7, 9)
    assert counted.prompt == 12


@pytest.mark.parametrize("wrong", [-1, 1.5, "12", 9007199254740993, True])
def test_absurd_counts_are_refused_one_by_one(decode, wrong):
    counted = fold(
        decode(stream(START, *TEXT, ending("end_turn", output_tokens=wrong, input_tokens=4), STOP))
    ).usage
    assert (counted.input, counted.output, counted.invalid) == (4, None, True)


def test_a_count_of_the_beginning_is_none_of_the_output(decode):
    """The start counts a token or none; where nothing else does, the rest would be free."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}
    start = {"type": "message_start", "message": {**START["message"], "usage": usage}}
    silent = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    for end in (silent, ending("end_turn"), ending("end_turn", output_tokens=None)):
        counted = fold(decode(stream(start, *TEXT, end, STOP))).usage
        assert (counted.input, counted.cache_read, counted.output) == (5, 7, None)
    counted = fold(decode(stream(start, *TEXT, ending("end_turn", output_tokens=1), STOP))).usage
    assert counted.output == 1


def test_usage_that_never_came_is_unknown_not_zero():
    body = {"id": "m", "model": "m", "content": [], "stop_reason": "end_turn"}
    assert fold(DIALECT.decoder().body(json.dumps(body).encode())).usage is None


def test_what_follows_the_terminal_is_not_read(decode):
    chunks = stream(START, *TEXT, ending("end_turn"), STOP, START)
    assert isinstance(decode([*chunks, b"data: not json\n\n"])[-1], Finished)


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: {oops\n\n"],
        [b"data: [1]\n\n"],
        [b'data: {"type": "message_start", "message": "\xff"}\n\n'],
        stream(*TEXT),
        stream(ending("end_turn")),
        stream(STOP),
        stream({"type": "message_start"}),
        stream(START, delta(0, "text_delta", text="x")),
        stream(START, closing(0)),
        stream(START, TEXT[0], TEXT[0]),
        stream(START, opening(0, type="text")),
        stream(START, opening(0, type="tool_use", id=1, name="f", input={})),
        stream(START, {"type": "content_block_start", "index": 0}),
        stream(START, TEXT[0], delta(0, "text_delta")),
        stream(START, TEXT[0], delta(0, "text_delta", text=["x"])),
        stream(START, TEXT[0], delta(0, "text_delta", text=[])),
        stream(START, THINKING, delta(0, "thinking_delta", thinking={"a": 1})),
        stream(START, THINKING, delta(0, "signature_delta", signature=5)),
        stream(START, TOOL, delta(0, "input_json_delta", partial_json=[None])),
        stream(START, SEARCH, delta(0, "input_json_delta", partial_json=7)),
        stream(START, TEXT[0], delta(0, "citations_delta", citation=[])),
        stream(START, TEXT[0], delta(0, "citations_delta", citation="x")),
        stream(START, opening(0, type="text", text="", citations="x")),
        stream(START, TEXT[0], {"type": "content_block_delta", "index": [], "delta": {}}),
        stream(START, {"type": "message_delta", "delta": None}),
    ],
)
def test_a_broken_protocol_is_a_fault_never_a_crash(decode, fault_of, chunks):
    events = decode(chunks)
    grammar.check(events)
    assert fault_of(events).kind == "protocol_error"


@pytest.mark.parametrize("odd", [[], {"a": 1}, 5])
def test_a_name_that_is_no_text_is_none(decode, odd):
    """The books name the model that answered: what is no name would leave a row unsettled."""
    message = {**START["message"], "id": odd, "model": odd}
    told = decode(stream({**START, "message": message}, *TEXT, ending("end_turn"), STOP))
    whole = DIALECT.decoder().body(json.dumps({**message, "stop_reason": "end_turn"}).encode())
    for events in (told, whole):
        assert (events[0].id, events[0].model) == (None, None)
        assert isinstance(events[-1], Finished)


@pytest.mark.parametrize("odd", [[], {"a": 1}, 5])
def test_a_stop_sequence_that_is_no_text_is_none(decode, odd):
    """Redacted values are put back into it, too."""
    end = ending("end_turn")
    told = decode(stream(START, {**end, "delta": {**end["delta"], "stop_sequence": odd}}, STOP))
    body = {**START["message"], "stop_reason": "end_turn", "stop_sequence": odd}
    whole = DIALECT.decoder().body(json.dumps(body).encode())
    assert (told[-1].stop, whole[-1].stop) == (None, None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b"[]",
        b"{",
        b'{"content": [{"type": "text"}], "stop_reason": "end_turn"}',
        b'{"content": [7], "stop_reason": "end_turn"}',
        b'{"content": null, "stop_reason": "end_turn"}',
        b'{"content": [{"type": "text", "text": "", "citations": "x"}], "stop_reason": "x"}',
        b'{"content": [{"type": "text", "text": "", "citations": [7]}], "stop_reason": "x"}',
        b'{"content": [], "stop_reason": 5}',
        b'{"id": "\xff", "content": [], "stop_reason": "end_turn"}',
    ],
)
def test_a_broken_body_is_a_fault_never_a_crash(fault_of, data):
    assert fault_of(DIALECT.decoder().body(data)).kind == "protocol_error"


def test_a_body_without_a_stop_reason_proves_no_end(fault_of):
    events = DIALECT.decoder().body(b'{"id": "m", "content": [], "stop_reason": null}')
    assert fault_of(events).kind == "stream_truncated"
