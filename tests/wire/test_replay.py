"""Every recorded answer through our decoder: whole and cut anywhere, judged by the SDK."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from adapters.canonical.completion import Completion, fold
from adapters.canonical.events import Event, Failed, Finished, OpaqueEvent, Verbatim
from adapters.canonical.grammar import check
from adapters.canonical.parts import Refusal, Text, Thinking, ToolCall
from adapters.dialects.base import Decoder
from adapters.wire.sse import SseParser


@pytest.fixture
def replay(recording: Any, dialect_of: Any) -> Any:
    """Decode the recording, arriving in the given chunks."""

    def run(chunks: list[bytes], *, verbatim: bool = False) -> list[Event]:
        return decode(recording, dialect_of(recording).decoder(verbatim=verbatim), chunks)

    return run


def decode(recording: Any, decoder: Decoder, chunks: list[bytes]) -> list[Event]:
    if not recording.stream:
        return decoder.body(b"".join(chunks))
    parser, events = SseParser(), []
    for chunk in chunks:
        for frame in parser.feed(chunk):
            events += decoder.feed(frame)
    return events + decoder.close()


def cuts(data: bytes, seed: int) -> list[bytes]:
    """``data`` in pieces of random size, from single bytes to kilobytes."""
    dice, pieces, start = random.Random(seed), [], 0
    while start < len(data):
        size = dice.choice((1, 2, 3, 7, 60, 900))
        pieces.append(data[start : start + size])
        start += size
    return pieces


def arguments(call: ToolCall) -> Any:
    try:
        return json.loads(call.arguments) if call.arguments else {}
    except ValueError:
        return call.arguments


def what(completion: Completion, told: Any) -> Any:
    """A completion in the judges' words."""
    terminal, used = completion.terminal, completion.usage
    if not isinstance(terminal, Finished):
        return told()
    pairs = list(zip(completion.parts, completion.choices, strict=True))
    choices = range(max((choice for _, choice in pairs), default=0) + 1)
    return told(
        tuple("".join(p.text for p, c in pairs if isinstance(p, Text) and c == n) for n in choices),
        "".join(p.text for p, _ in pairs if isinstance(p, Refusal)),
        "".join(p.text for p, _ in pairs if isinstance(p, Thinking)),
        tuple((c, p.call_id, p.name, arguments(p)) for p, c in pairs if isinstance(p, ToolCall)),
        terminal.reason,
        used and (used.prompt, used.cache_read or 0, used.output, used.reasoning or 0),
    )


def plain(events: list[Event]) -> list[Any]:
    """Events that compare by value: faults are exceptions, which don't."""
    return [repr(event) if isinstance(event, Failed) else event for event in events]


def test_the_sdk_reads_the_same(
    recording: Any, replay: Any, dialect_of: Any, judge: Any, told: Any
) -> None:
    if recording.status >= 400:
        fault = dialect_of(recording).error(recording.status, recording.headers, recording.data)
        assert fault.upstream_status == recording.status
        assert judge(recording) == told()
        return
    events = replay([recording.data])
    check(events)
    ours, theirs = what(fold(events), told), judge(recording)
    if "legacy_functions" in recording.features:  # calls of that form have no id
        ours = replace(ours, calls=tuple((c[0], "", *c[2:]) for c in ours.calls))
    assert ours == theirs


def test_any_cut_gives_the_same_events(recording: Any, replay: Any) -> None:
    if not recording.stream:
        return
    whole = plain(replay([recording.data]))
    for seed in range(3):
        assert plain(replay(cuts(recording.data, seed))) == whole


def test_a_cut_stream_is_never_a_success(recording: Any, replay: Any) -> None:
    if not recording.stream:
        return
    dice = random.Random(7)
    for _ in range(5):
        end = dice.randrange(len(recording.data) // 2)
        events = replay([recording.data[:end]])
        check(events)
        assert isinstance(events[-1], Failed)


def test_verbatim_frames_are_the_bytes(recording: Any, replay: Any, dialect_of: Any) -> None:
    if recording.status >= 400:
        return
    events = replay([recording.data], verbatim=True)
    bare = replay([recording.data])
    assert plain([e for e in events if not isinstance(e, Verbatim)]) == plain(bare)
    for event in events:
        if isinstance(event, Verbatim):
            assert event.data in recording.data
            assert json.loads(event.data) == event.json
        elif isinstance(event, OpaqueEvent):
            assert event.dialect == dialect_of(recording).name
