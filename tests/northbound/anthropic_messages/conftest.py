"""Short ways to ask and to answer in the Messages API, with the vendor's SDK as the judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import anthropic
import httpx2
import pytest

from adapters.canonical.events import Event, Failed, Finished
from adapters.canonical.faults import Fault
from gateway.northbound.anthropic_messages import MESSAGES
from gateway.northbound.base import DEFAULT_LIMITS, Asked, Envelope, Limits

Sent = list[dict[str, Any]]


@pytest.fixture
def ask() -> Callable[..., Asked]:
    """Parse a body made of keyword arguments; one user message if none is given."""

    def ask(
        headers: dict[str, str] | None = None, limits: Limits = DEFAULT_LIMITS, **fields: Any
    ) -> Asked:
        least = {
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "hi"}],
        }
        body = {k: v for k, v in {**least, **fields}.items() if v is not ...}
        return MESSAGES.parse(json.dumps(body).encode(), headers or {}, limits)

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
    def envelope(report_model: Any = "upstream") -> Envelope:
        return Envelope("msg_ours", 1700000000, "alias", report_model=report_model)

    return envelope


@pytest.fixture
def written(envelope: Callable[..., Envelope]) -> Callable[..., bytes]:
    """The bytes that a stream of events makes, in one feed or one feed an event."""

    def written(events: Iterable[Event], *, singly: bool = False, **options: Any) -> bytes:
        *body, terminal = list(events)
        assert isinstance(terminal, Finished | Failed)
        encoder = MESSAGES.encoder(envelope(**options))
        groups = [[event] for event in body] if singly else [body]
        return b"".join(map(encoder.feed, groups)) + encoder.finish(terminal)

    return written


@pytest.fixture
def sent(written: Callable[..., bytes]) -> Callable[..., Sent]:
    """The protocol's events in such a stream; each frame's name is checked here."""

    def sent(events: Iterable[Event], **options: Any) -> Sent:
        told = []
        for frame in written(events, **options).split(b"\n\n"):
            if frame:
                name, data = frame.split(b"\n")
                told.append(json.loads(data.removeprefix(b"data: ")))
                assert name == b"event: " + told[-1]["type"].encode()
        return told

    return sent


@pytest.fixture
def judge() -> Callable[[bytes], Any]:
    """What the vendor's SDK makes of the bytes of a stream."""

    def judge(data: bytes) -> Any:
        def answer(request: Any) -> Any:
            head = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=head, content=data)

        with (
            httpx2.Client(transport=httpx2.MockTransport(answer)) as http,
            anthropic.Anthropic(api_key="k", max_retries=0, http_client=http) as client,
            client.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
            ) as stream,
        ):
            return stream.get_final_message()

    return judge
