"""Short ways to ask and to answer in chat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from adapters.canonical.events import Event, Failed, Finished, Terminal
from adapters.canonical.faults import Fault
from gateway.northbound.base import DEFAULT_LIMITS, Asked, Envelope, Limits, Style
from gateway.northbound.openai_chat import CHAT

Chunks = list[dict[str, Any]]


@pytest.fixture
def ask() -> Callable[..., Asked]:
    """Parse a body made of keyword arguments; one user message if none is given."""

    def ask(limits: Limits = DEFAULT_LIMITS, **fields: Any) -> Asked:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
        return CHAT.parse(json.dumps(body).encode(), {}, limits)

    return ask


@pytest.fixture
def refuse(ask: Callable[..., Asked]) -> Callable[..., Fault]:
    """The fault that such a body gets."""

    def refuse(**fields: Any) -> Fault:
        with pytest.raises(Fault) as caught:
            ask(**fields)
        return caught.value

    return refuse


@pytest.fixture
def envelope() -> Callable[..., Envelope]:
    def envelope(report_model: Any = "upstream", **style: Any) -> Envelope:
        return Envelope("chatcmpl-ours", 1700000000, "alias", Style(**style), report_model)

    return envelope


@pytest.fixture
def chunks(envelope: Callable[..., Envelope]) -> Callable[..., Chunks]:
    """The stream that events make, without its end mark, whose place is checked here."""

    def chunks(events: Iterable[Event], **options: Any) -> Chunks:
        *body, terminal = list(events)
        assert isinstance(terminal, Finished | Failed)
        written = stream(CHAT.encoder(envelope(**options)), body, terminal)
        frames = [frame for frame in written.split(b"\n\n") if frame]
        assert all(frame.startswith(b"data: ") and b"\n" not in frame for frame in frames)
        if isinstance(terminal, Finished):
            assert frames.pop() == b"data: [DONE]"
        assert b"data: [DONE]" not in frames
        return [json.loads(frame.removeprefix(b"data: ")) for frame in frames]

    def stream(encoder: Any, body: list[Event], terminal: Terminal) -> bytes:
        # One event at a time: how events are grouped must not matter but for Verbatim.
        return encoder.feed(body) + encoder.finish(terminal)

    return chunks
