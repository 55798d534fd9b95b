"""Golden cases of this project's own: wire bytes and the events that they mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical import grammar
from adapters.canonical.completion import fold
from adapters.canonical.events import Failed, Finished, Verbatim
from adapters.dialects.openai_chat import DIALECT
from gateway.northbound.openai_chat import CHAT

GOLDEN = Path(__file__).parents[2] / "golden" / "openai_chat"
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
    for cut in range(1, len(data), 5):
        assert plain(decode([data[:cut], data[cut:]])) == whole, cut
    assert plain(decode([data[n : n + 1] for n in range(len(data))])) == whole


@pytest.mark.parametrize("name", STREAMS)
def test_an_end_of_file_before_the_reason_is_never_success(
    name: str, golden: Path, decode: Any
) -> None:
    data = (golden / name / "wire.sse").read_bytes().replace(b"\r\n", b"\n")
    frames = data.split(b"\n\n")
    for end in range(len(frames)):
        if b'"finish_reason":"' in frames[end]:
            break
        last = decode([b"\n\n".join(frames[:end]) + b"\n\n"])[-1]
        assert isinstance(last, Failed), end


@pytest.mark.parametrize("name", CASES)
def test_verbatim_carries_the_bytes_and_changes_no_event(
    name: str, replay: Any, plain: Any
) -> None:
    told = replay(name, verbatim=True)
    frames = [event for event in told if isinstance(event, Verbatim)]
    assert all(json.loads(frame.data) == frame.json for frame in frames)
    # An empty name would mean a whole body.
    assert all((frame.name == "") == (name not in STREAMS) for frame in frames)
    assert plain([event for event in told if event not in frames]) == plain(replay(name))


@pytest.mark.parametrize("name", CASES)
def test_what_a_chat_caller_sends_reaches_a_chat_server_unchanged(
    name: str, golden: Path, send: Any
) -> None:
    asked = json.loads((golden / name / "request.json").read_text())
    sent = send(CHAT.parse(json.dumps(asked).encode(), {}).request)
    if asked.get("stream"):
        asked["stream_options"] = {"include_usage": True}
        assert sent.injected == ("stream_options.include_usage=true",)
    assert sent.body == asked
    assert (sent.dropped, sent.adjusted) == ((), ())


def test_after_the_end_nothing_comes(decode: Any, golden: Path, plain: Any) -> None:
    data = (golden / "text" / "wire.sse").read_bytes()
    assert plain(decode([data + data])) == plain(decode([data]))


def test_calls_without_an_id_get_one_that_no_other_answer_has(golden: Path, decode: Any) -> None:
    data = (golden / "function-call" / "wire.sse").read_bytes()
    other = data.replace(b"chatcmpl-golden", b"chatcmpl-other")
    first, again, second = (fold(decode([wire])).parts[0] for wire in (data, data, other))
    assert first.call_id == again.call_id != second.call_id


def test_the_end_mark_is_not_waited_for_at_the_end_of_file(golden: Path, decode: Any) -> None:
    data = (golden / "text" / "wire.sse").read_bytes().removesuffix(b"data: [DONE]\n\n")
    assert isinstance(decode([data])[-1], Finished)


def test_whole_calls_without_ids_or_indices_stay_apart() -> None:
    calls = [{"function": {"name": name, "arguments": {"a": 1}}} for name in "fgf"]
    body = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    parts = fold(DIALECT.decoder().body(json.dumps(body).encode())).parts
    assert [(part.name, part.arguments) for part in parts] == [(n, '{"a":1}') for n in "fgf"]
    assert len({part.call_id for part in parts}) == 3


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"null", b'{"choices": 3}', b"\xff"])
def test_a_body_that_is_no_answer_is_a_protocol_error(body: bytes) -> None:
    (failed,) = DIALECT.decoder().body(body)
    assert failed.fault.kind == "protocol_error"


@pytest.mark.parametrize(
    "delta",
    [
        '{"content":5}',
        '{"content":[{"type":"text"},3]}',
        '{"refusal":{}}',
        '{"tool_calls":"x"}',
        '{"tool_calls":[7,{"function":"x"},{"index":[],"function":{"name":"f"}}]}',
        '{"function_call":"x"}',
        '{"reasoning_details":[3,{"text":5}]}',
        '{"annotations":[3]}',
        '{"audio":"x"}',
        '{"audio":{"data":5}}',
        '{"x":{"y":[]}}',
        '{"reasoning_content":[1]}',
    ],
)
def test_nonsense_in_a_delta_never_raises(delta: str, decode: Any) -> None:
    chunk = '{"id":"c","choices":[{"index":0,"delta":%s,"logprobs":[1]}],"usage":[]}'
    end = '{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
    events = decode([f"data: {chunk % delta}\n\ndata: {end}\n\n".encode()])
    grammar.check(events)
