"""What the tests of this dialect share: requests as bytes, answers as parsed frames."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from adapters.canonical.events import Event, Finished, Started, Terminal
from adapters.wire.sse import SseParser
from gateway.northbound.base import Asked, Envelope, Style
from gateway.northbound.openai_responses import RESPONSES, OpenAIResponses

STOP = Finished("stop")
ENVELOPE = Envelope("resp_0123456789abcdef01234567", 1_800_000_000, "smart")


def _parse(**body: Any) -> Asked:
    body.setdefault("model", "smart")
    body.setdefault("input", "hi")
    return OpenAIResponses().parse(json.dumps(body).encode(), {})


@pytest.fixture(scope="session")
def parse() -> Callable[..., Asked]:
    """Parse a body of a model, an input, and the given fields."""
    return _parse


@pytest.fixture(scope="session")
def envelope() -> Envelope:
    return ENVELOPE


@pytest.fixture(scope="session")
def frames() -> Callable[[bytes], list[Any]]:
    """The data of SSE bytes; each frame's name is its type."""

    def read(data: bytes) -> list[Any]:
        found = SseParser().feed(data)
        events = [json.loads(frame.data) for frame in found]
        assert [frame.name for frame in found] == [event["type"] for event in events]
        return events

    return read


@pytest.fixture(scope="session")
def write(frames: Any) -> Callable[..., list[Any]]:
    """Stream events, ``Started`` and the terminal added where they are missing."""

    def run(
        events: Iterable[Event],
        terminal: Terminal = STOP,
        envelope: Envelope = ENVELOPE,
    ) -> list[Any]:
        encoder = RESPONSES.encoder(envelope)
        told = list(events)
        if not told or not isinstance(told[0], Started):
            told.insert(0, Started("up_1", "claude-x", 7, dialect="anthropic-messages"))
        data = b"".join(encoder.feed([event]) for event in told)
        return frames(data + encoder.finish(terminal))

    return run


@pytest.fixture(scope="session")
def styled() -> Callable[..., Envelope]:
    """An envelope whose caller gave these fields."""

    def build(**echo: Any) -> Envelope:
        return replace(ENVELOPE, style=Style(echo=echo))

    return build
