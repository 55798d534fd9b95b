"""Every recorded answer, whatever its protocol, told again to a Responses caller: OpenAI's own SDK
must read out of it what the decoder read in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adapters.canonical.completion import fold
from adapters.canonical.events import Event, Failed, Finished, Verbatim
from adapters.canonical.parts import Refusal, Text, Thinking, ToolCall
from adapters.wire.sse import SseParser
from gateway.northbound.base import Envelope
from gateway.northbound.openai_responses import RESPONSES

OURS = (
    "id",
    "background",
    "conversation",
    "instructions",
    "previous_response_id",
    "prompt",
    "store",
)
"""What the gateway writes over."""
ENVELOPE = Envelope("resp_0123456789abcdef01234567", 1_800_000_000, "smart")


@pytest.fixture
def decoded(recording: Any, dialect_of: Any) -> Callable[..., list[Event]]:
    """The events of the recording."""

    def run(*, verbatim: bool = False) -> list[Event]:
        decoder = dialect_of(recording).decoder(verbatim=verbatim)
        if not recording.stream:
            return decoder.body(recording.data)
        events: list[Event] = []
        for frame in SseParser().feed(recording.data):
            events += decoder.feed(frame)
        return events + decoder.close()

    return run


def told_again(events: list[Event]) -> bytes:
    encoder = RESPONSES.encoder(ENVELOPE)
    terminal = events[-1]
    assert isinstance(terminal, Finished | Failed)
    return encoder.feed(events[:-1]) + encoder.finish(terminal)


def frames(data: bytes) -> list[Any]:
    return [json.loads(frame.data) for frame in SseParser().feed(data)]


REASONS = {
    "stop_sequence": "stop",
    "context_window": "length",
    "refusal": "content_filter",
}


def expected(events: list[Event], told: Any) -> Any:
    """What of an answer the Responses protocol can say."""
    completion = fold(events)
    parts = [p for p, c in zip(completion.parts, completion.choices, strict=True) if c == 0]
    terminal, used = completion.terminal, completion.usage
    if not isinstance(terminal, Finished):
        return told()
    reason = REASONS.get(terminal.reason, terminal.reason)
    if terminal.reason == "refusal" and any(isinstance(p, Refusal) for p in parts):
        reason = "stop"  # the words themselves say it
    return (
        "".join(p.text for p in parts if isinstance(p, Text)),
        "".join(p.text for p in parts if isinstance(p, Thinking)),
        [(p.call_id, p.name) for p in parts if isinstance(p, ToolCall)],
        reason,
        used and (used.prompt, used.output),
    )


@pytest.mark.parametrize("relayed", [False, True])
def test_the_sdk_reads_what_the_decoder_read(
    relayed: bool, recording: Any, decoded: Any, judge: Any, told: Any
) -> None:
    if recording.status >= 400:
        return
    events = decoded(verbatim=relayed)
    again = told_again(events)
    seen = judge(replace(recording, api="responses", stream=True, data=again))
    wanted = expected(events, told)
    if isinstance(wanted, tuple):
        calls = [(call[1], call[2]) for call in seen.calls]
        usage = seen.usage and (seen.usage[0], seen.usage[2])
        assert (seen.text[0], seen.thinking, calls, seen.reason, usage) == wanted
    else:
        assert seen == told()


def test_the_grammar_of_the_stream(recording: Any, decoded: Any) -> None:
    """Dense sequence numbers, steady ids, items that open before they grow and end once."""
    if recording.status >= 400:
        return
    for verbatim in (False, True):
        if verbatim and "starting-after" in recording.name:
            continue  # a resumed stream has no beginning
        events = frames(told_again(decoded(verbatim=verbatim and recording.stream)))
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        ids: dict[int, str] = {}
        for event in events:
            if event["type"] == "response.output_item.added":
                assert event["output_index"] == len(ids)
                ids[event["output_index"]] = event["item"].get("id")
            elif "item_id" in event:
                assert event["item_id"] == ids[event["output_index"]], event
        response = events[-1]["response"]
        assert {e["response"]["id"] for e in events if "response" in e} == {ENVELOPE.id}
        for number, item in enumerate(response["output"]):
            if number in ids:
                assert item.get("id") == ids[number]


def test_the_whole_body_is_the_streams_last_word(recording: Any, decoded: Any) -> None:
    if recording.status >= 400:
        return
    events = decoded()
    if not isinstance(events[-1], Finished):
        return
    last = frames(told_again(events))[-1]["response"]
    whole = json.loads(RESPONSES.whole(fold(events), ENVELOPE))
    if "id-rotation" in recording.name:  # a stream keeps the first id, a body has the last
        for item in (*last["output"], *whole["output"]):
            item.pop("id")
    assert whole == last


def test_the_same_dialect_is_relayed_untouched(recording: Any, decoded: Any) -> None:
    """Byte-equal but for what the gateway owns."""
    if recording.api != "responses" or recording.status >= 400 or not recording.stream:
        return
    events = decoded(verbatim=True)
    if not isinstance(events[-1], Finished):
        return
    sent = [event.json for event in events if isinstance(event, Verbatim)]
    again = frames(told_again(events))
    assert len(again) == len(sent)
    for before, after in zip(sent, again, strict=True):
        for event in (before, after):
            for name in ("sequence_number", "item_id"):
                event.pop(name, None)
            (event.get("item") or {}).pop("id", None)
            response = event.get("response") or {}
            for name in OURS:
                response.pop(name, None)
            for item in response.get("output", ()):
                item.pop("id", None)
        assert after == before
