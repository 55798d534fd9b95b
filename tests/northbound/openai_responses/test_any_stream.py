"""Any order of parts, interleaved, cut into any pieces: the grammar holds, the whole is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.canonical.completion import fold
from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Finished,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from adapters.canonical.events import Usage as Counted
from adapters.canonical.parts import Dialect, Refusal, Text, Thinking, ToolCall
from gateway.northbound.base import Envelope
from gateway.northbound.openai_responses import RESPONSES
from tests.sdk.openresponses import check_stream

WORDS = st.text("aé\n{}\"'\\", min_size=1, max_size=4)
FOREIGN: tuple[Dialect, ...] = ("openai-chat", "anthropic-messages")
CITED = (
    {"type": "url_citation", "url_citation": {"url": "https://a.example"}},
    {"type": "web_search_result_location", "url": "https://a.example", "title": "t"},
)
REASONS = ("stop", "tool_calls", "length", "refusal", "content_filter", "pause", "unknown")

HEADS = st.sampled_from(["text", "refusal", "thinking", "sections", "call"])


def head_of(kind: str, number: int, dialect: Dialect) -> Any:
    heads: dict[str, Any] = {
        "text": Text(""),
        "refusal": Refusal(""),
        "thinking": Thinking("", dialect=dialect),
        "sections": Thinking("", dialect=dialect, summary=()),
        "call": ToolCall(f"call_{number}", "f", ""),
    }
    return heads[kind]


def said_of(index: int, head: Any, texts: list[str]) -> Iterator[Event]:
    """What a part says from its start to its end."""
    yield PartStarted(index, head)
    for number, text in enumerate(texts):
        if isinstance(head, Thinking):
            yield ThinkingDelta(index, text, 0 if head.summary is None else number // 2)
        elif isinstance(head, ToolCall):
            yield ArgumentsDelta(index, text)
        else:
            yield TextDelta(index, text)
    if isinstance(head, Text) and texts:
        yield PartAnnotated(index, "citation", CITED[len(texts) % 2])
    if isinstance(head, Thinking):
        yield PartAnnotated(index, "signature", "c2lnbmVk")
    yield PartEnded(index)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Events of several parts, each in its own order, the parts among each other in any."""
    dialect = draw(st.sampled_from(FOREIGN))
    events: list[Event] = [Started("up", "m", 5, dialect=dialect)]
    waiting = [
        (kind, draw(st.lists(WORDS, max_size=4))) for kind in draw(st.lists(HEADS, max_size=5))
    ]
    under_way: list[Iterator[Event]] = []
    opened = 0
    while waiting or under_way:
        if waiting and (not under_way or draw(st.booleans())):
            kind, texts = waiting.pop(0)
            under_way.append(said_of(opened, head_of(kind, opened, dialect), texts))
            events.append(next(under_way[-1]))
            opened += 1
            continue
        one = draw(st.sampled_from(under_way))
        event = next(one, None)
        if event is None:
            under_way.remove(one)
        else:
            events.append(event)
    return [*events, UsageReported(Counted(input=3, output=4))]


@settings(max_examples=150, deadline=None)
@given(events=streams(), reason=st.sampled_from(REASONS), size=st.integers(1, 5))
def test_any_stream(frames: Any, events: list[Event], reason: Any, size: int) -> None:
    envelope = Envelope("resp_0123456789abcdef01234567", 1_800_000_000, "smart", wall=lambda: 2.0e9)
    terminal = Finished(reason, "as the provider said")
    encoder = RESPONSES.encoder(envelope)
    data = b"".join(encoder.feed(events[n : n + size]) for n in range(0, len(events), size))
    final = check_stream(frames(data + encoder.finish(terminal)))
    assert json.loads(RESPONSES.whole(fold([*events, terminal]), envelope)) == final
    assert encoder.told == final
