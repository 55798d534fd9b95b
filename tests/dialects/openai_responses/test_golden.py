"""Golden cases of this project's own: wire bytes and the events that they mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical import grammar
from adapters.canonical.completion import fold
from adapters.canonical.events import Failed, Verbatim
from adapters.canonical.parts import Thinking, ToolCall
from adapters.dialects.openai_responses import DIALECT

GOLDEN = Path(__file__).parents[2] / "golden" / "openai_responses"
CASES = sorted(path.name for path in GOLDEN.iterdir())
STREAMS = [name for name in CASES if (GOLDEN / name / "wire.sse").exists()]


@pytest.mark.parametrize("name", CASES)
def test_the_wire_means_the_events(name: str, golden: Path, replay: Any, plain: Any) -> None:
    events = replay(name)
    grammar.check(events)
    assert plain(events) == json.loads((golden / name / "events.json").read_text())


@pytest.mark.parametrize("name", STREAMS)
def test_every_cut_of_the_bytes_gives_the_same_events(
    name: str, golden: Path, decode: Any, plain: Any
) -> None:
    data = (golden / name / "wire.sse").read_bytes()
    whole = plain(decode([data]))
    for cut in range(1, len(data), 3):
        assert plain(decode([data[:cut], data[cut:]])) == whole, cut
    assert plain(decode([data[n : n + 1] for n in range(len(data))])) == whole


@pytest.mark.parametrize("name", STREAMS)
def test_an_end_of_file_before_the_terminal_is_never_success(
    name: str, golden: Path, decode: Any
) -> None:
    frames = (golden / name / "wire.sse").read_bytes().split(b"\n\n")
    for end in range(len(frames) - 2):
        last = decode([b"\n\n".join(frames[:end]) + b"\n\n"])[-1]
        assert isinstance(last, Failed), end


@pytest.mark.parametrize("kind", [[], {}, ["message"]])
def test_an_item_without_a_proper_type_is_shown_as_it_came(decode: Any, kind: Any) -> None:
    response = {"id": "resp_1", "model": "m", "status": "in_progress", "output": []}
    item = {"id": "x_1", "type": kind}
    events = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
    ]
    told = decode([f"data: {json.dumps(event)}\n\n".encode() for event in events])
    grammar.check(told)
    assert told[-1].fault.kind in ("stream_truncated", "protocol_error")


@pytest.mark.parametrize("name", CASES)
def test_verbatim_carries_the_bytes_and_changes_no_event(
    name: str, replay: Any, plain: Any
) -> None:
    told = replay(name, verbatim=True)
    frames = [event for event in told if isinstance(event, Verbatim)]
    assert all(json.loads(frame.data) == frame.json for frame in frames)
    assert plain([event for event in told if event not in frames]) == plain(replay(name))


def test_the_terminal_is_the_last_word(decode: Any, golden: Path, plain: Any) -> None:
    data = (golden / "text" / "wire.sse").read_bytes()
    assert plain(decode([data + data])) == plain(decode([data]))


def test_a_chat_end_mark_ends_nothing(decode: Any) -> None:
    assert decode([b"data: [DONE]\n\n"])[-1].fault.kind == "stream_truncated"


def test_invalid_utf8_is_a_protocol_error(decode: Any) -> None:
    broken = b'data: {"type":"response.output_text.delta","output_index":0,"delta":"\xff"}\n\n'
    assert decode([broken])[-1].fault.kind == "protocol_error"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"null", b'{"output": 3}'])
def test_a_body_that_is_no_response_is_a_protocol_error(body: bytes) -> None:
    events = DIALECT.decoder().body(body)
    assert isinstance(events[-1], Failed)
    assert events[-1].fault.kind == "protocol_error"


def test_late_words_for_an_ended_part_break_nothing(decode: Any) -> None:
    """A provider that goes on after ``done``, or announces twice, is not followed."""
    part = {"type": "output_text", "text": "Hi", "annotations": []}
    frames = [
        {"type": "response.content_part.done", "output_index": 0, "part": part},
        {"type": "response.output_text.delta", "output_index": 0, "delta": " again"},
        {
            "type": "response.output_text.annotation.added",
            "output_index": 0,
            "annotation": {"type": "url_citation"},
        },
        {"type": "response.content_part.added", "output_index": 0, "part": part},
        {"type": "response.content_part.done", "output_index": 0, "part": part},
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    events = decode([b"".join(b"data: %s\n\n" % json.dumps(f).encode() for f in frames)])
    grammar.check(events)
    assert fold(events).text == "Hi"


def test_items_that_only_the_end_tells_of(decode: Any) -> None:
    """A server that does not really stream: everything comes with the terminal."""
    item = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
    response = {"status": "completed", "output": [item]}
    frames = [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.completed", "response": response},
    ]
    events = decode([b"".join(b"data: %s\n\n" % json.dumps(f).encode() for f in frames)])
    grammar.check(events)
    assert fold(events).text == "Hi"


@pytest.mark.parametrize("output", [-1, "x", [7], [[]]])
def test_an_end_whose_output_is_none_is_a_protocol_error(decode: Any, output: Any) -> None:
    """Whoever keeps the answer reads it from there, though its items were told before."""
    item = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
    frames = [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": output}},
    ]
    events = decode([b"".join(b"data: %s\n\n" % json.dumps(f).encode() for f in frames)])
    grammar.check(events)
    assert events[-1].fault.kind == "protocol_error"


def test_an_error_that_only_its_line_calls_one(decode: Any) -> None:
    error = {"type": "server_error", "code": "rate_limit_exceeded", "message": "slow down"}
    events = decode([b"event: error\ndata: %s\n\n" % json.dumps(error).encode()], verbatim=True)
    assert events[-1].fault.kind == "upstream_rate_limited"
    assert not any(isinstance(event, Verbatim) for event in events), "nobody passes it on"


def test_items_that_only_the_end_finishes(decode: Any) -> None:
    """Announced, then no ``done``: what is missing of them stands in the response."""
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"}
    thought = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "ENC"}
    nameless = {"type": "function_call", "id": "fc", "arguments": ""}
    said = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
    added = "response.output_item.added"
    frames = [
        {"type": added, "output_index": 0, "item": {**thought, "encrypted_content": "not yet"}},
        {"type": added, "output_index": 1, "item": nameless},
        {"type": "response.output_item.done", "output_index": 2, "item": said},
        {
            "type": "response.completed",
            "response": {"status": "completed", "output": [thought, call, said]},
        },
    ]
    events = decode([b"".join(b"data: %s\n\n" % json.dumps(f).encode() for f in frames)])
    grammar.check(events)
    answer = fold(events)
    assert answer.text == "Hi"
    assert events[-1].reason == "tool_calls"
    assert [(part.name, part.arguments) for part in answer.parts if isinstance(part, ToolCall)] == [
        ("f", "{}")
    ]
    assert [part.sealed for part in answer.parts if isinstance(part, Thinking)] == ["ENC"]
