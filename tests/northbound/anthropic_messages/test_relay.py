"""Same dialect in and out: byte-equal but for what the gateway owns."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adapters.canonical.completion import fold
from adapters.canonical.events import Failed, Finished
from adapters.dialects.anthropic_messages import DIALECT
from adapters.wire.sse import SseParser
from gateway.northbound.anthropic_messages import MESSAGES

GOLDEN = Path(__file__).parents[2] / "golden" / "anthropic_messages"
STREAMS = sorted(path.parent.name for path in GOLDEN.glob("*/wire.sse"))
BODIES = sorted(path.parent.name for path in GOLDEN.glob("*/wire.json"))


def relayed(data: bytes, envelope):
    """What a caller gets, the terminal apart as the pump has it, and the terminal."""
    decoder, encoder = DIALECT.decoder(verbatim=True), MESSAGES.encoder(envelope)
    out, terminal = b"", None
    for frame in SseParser().feed(data):
        events = decoder.feed(frame)
        if events and isinstance(events[-1], Finished | Failed):
            terminal = events.pop()
        out += encoder.feed(events)
    if terminal is None:
        terminal = decoder.close()[-1]
    return out, out + encoder.finish(terminal), terminal


def frames(data: bytes):
    return [(f.name, f.data) for f in SseParser().feed(data) if f.name != "ping"]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_relayed_byte_for_byte(name, envelope):
    data = (GOLDEN / name / "wire.sse").read_bytes()
    before, whole, terminal = relayed(data, envelope())
    if isinstance(terminal, Finished):
        assert frames(whole) == frames(data)
        # The reason waits until the answer is settled.
        assert b'stop_reason":"' not in before
        assert b"message_stop" not in before
    else:
        assert frames(whole)[-1][0] == "error"
        assert "message_stop" not in [name for name, _ in frames(whole)]
        assert not any(b'"stop_reason":"' in data for _, data in frames(whole))


def test_the_alias_and_a_missing_id_are_put_right(envelope):
    data = (GOLDEN / "text" / "wire.sse").read_bytes().replace(b'"msg_golden"', b'""')
    _, whole, _ = relayed(data, envelope(report_model="alias"))
    first, *rest = frames(whole)
    message = json.loads(first[1])["message"]
    assert (message["id"], message["model"]) == ("msg_ours", "alias")
    assert rest == frames(data)[1:]


def test_a_relayed_end_is_an_end_even_if_its_last_frame_is_missing(envelope):
    data = (GOLDEN / "text" / "wire.sse").read_bytes()
    decoder, encoder = DIALECT.decoder(verbatim=True), MESSAGES.encoder(envelope())
    out = b""
    for frame in SseParser().feed(data)[:-1]:
        out += encoder.feed(decoder.feed(frame))
    out += encoder.finish(Finished("stop", "end_turn"))
    assert [name for name, _ in frames(out)][-2:] == ["message_delta", "message_stop"]


def bare(data: bytes) -> bytes:
    """The stream as of a server that says what an event is in its ``event:`` line alone."""
    return re.sub(rb'^data: \{"type":\s?"[a-z_]+",?\s?', b"data: {", data, flags=re.MULTILINE)


def test_an_event_whose_type_stands_in_its_line_alone_is_told_with_it(envelope):
    data = (GOLDEN / "text" / "wire.sse").read_bytes()
    before, whole, _ = relayed(bare(data), envelope())
    assert [name for name, _ in frames(whole)] == [name for name, _ in frames(data)]
    assert all(json.loads(data)["type"] == name for name, data in frames(whole))
    assert b"stop_reason" not in before.partition(b"content_block_start")[2]


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"type": "overloaded_error", "message": "the provider's own words"}},
        {"type": "overloaded_error", "message": "the provider's own words"},
    ],
)
def test_an_error_named_in_its_line_alone_is_never_passed_on(error, envelope):
    data = (GOLDEN / "text" / "wire.sse").read_bytes()
    begun = data.partition(b"event: content_block_stop")[0]
    failed = b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n"
    _, whole, terminal = relayed(begun + failed, envelope())
    assert terminal.fault.kind == "upstream_overloaded"
    assert b"own words" not in whole
    assert [name for name, _ in frames(whole)].count("error") == 1


def test_a_frame_that_breaks_the_protocol_is_not_passed_on(envelope):
    data = (GOLDEN / "text" / "wire.sse").read_bytes()
    begun = data.partition(b"event: content_block_stop")[0]
    broken = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}\n\n'
    _, whole, terminal = relayed(begun + broken, envelope())
    assert terminal.fault.kind == "protocol_error"
    assert [f.data for f in SseParser().feed(begun) if f.name != "ping"] == [
        data for name, data in frames(whole) if name != "error"
    ]


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_relayed_byte_for_byte(name, envelope):
    data = (GOLDEN / name / "wire.json").read_bytes()
    completion = fold(DIALECT.decoder(verbatim=True).body(data))
    assert MESSAGES.whole(completion, envelope()) == data
    renamed = json.loads(MESSAGES.whole(completion, envelope(report_model="alias")))
    assert renamed == {**json.loads(data), "model": "alias"}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_without_its_bytes_says_the_same(name, envelope):
    data = (GOLDEN / name / "wire.json").read_bytes()
    completion = fold(DIALECT.decoder().body(data))
    told = json.loads(MESSAGES.whole(completion, envelope()))
    given = {k: v for k, v in json.loads(data).items() if v is not None or k == "stop_sequence"}
    assert told == given


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_without_its_frames_says_the_same(name, envelope):
    data = (GOLDEN / name / "wire.sse").read_bytes()
    events = decoded(data)
    encoder = MESSAGES.encoder(envelope())
    out = encoder.feed(events[:-1]) + encoder.finish(events[-1])
    if isinstance(events[-1], Finished):
        assert fold(decoded(out)) == fold(events)
    else:
        assert isinstance(decoded(out)[-1], Failed)


def decoded(data: bytes):
    decoder = DIALECT.decoder()
    events = [event for frame in SseParser().feed(data) for event in decoder.feed(frame)]
    return events + decoder.close()


@pytest.mark.parametrize("name", BODIES)
def test_a_provider_that_answers_a_stream_with_a_whole_body(name, envelope):
    events = DIALECT.decoder(verbatim=True).body((GOLDEN / name / "wire.json").read_bytes())
    *said, terminal = events
    encoder = MESSAGES.encoder(envelope())
    told = frames(encoder.feed(said) + encoder.finish(terminal))
    assert [name for name, _ in told if name == "message"] == []
    assert (told[0][0], told[-1][0]) == ("message_start", "message_stop")
