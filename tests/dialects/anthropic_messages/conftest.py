"""What the tests of this dialect share: facts, requests, and events written as plain JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.events import Event, Failed
from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.request import Message, Request
from adapters.dialects.anthropic_messages import DIALECT
from adapters.wire.json import loads
from adapters.wire.sse import SseParser

GOLDEN = Path(__file__).parents[2] / "golden" / "anthropic_messages"


def _plain(value: Any) -> Any:
    """A dataclass as ``{"is": its name}`` and its fields that differ from their defaults."""
    if isinstance(value, Fault):
        return {"is": "Fault", "kind": value.kind, "upstream_code": value.upstream_code}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        told: dict[str, Any] = {"is": type(value).__name__}
        for field in dataclasses.fields(value):
            content = getattr(value, field.name)
            if content != field.default:
                told[field.name] = _plain(content)
        return told
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


@pytest.fixture(scope="session")
def plain() -> Callable[[Any], Any]:
    return _plain


@pytest.fixture(scope="session")
def golden() -> Path:
    return GOLDEN


@pytest.fixture(scope="session")
def decode() -> Callable[..., list[Event]]:
    """Decode a stream that arrives in the given chunks, and its end of file."""

    def run(chunks: Iterable[bytes], *, verbatim: bool = False) -> list[Event]:
        decoder = DIALECT.decoder(verbatim=verbatim)
        parser = SseParser()
        events: list[Event] = []
        for chunk in chunks:
            for frame in parser.feed(chunk):
                events += decoder.feed(frame)
        return events + decoder.close()

    return run


@pytest.fixture(scope="session")
def fault_of() -> Callable[[list[Event]], Fault]:
    """The fault that ends a stream."""

    def last(events: list[Event]) -> Fault:
        assert isinstance(events[-1], Failed), events[-1]
        return events[-1].fault

    return last


MODERN = Facts(
    "claude-new",
    capabilities=CAPABILITIES - {"audio", "n", "logprobs", "prefill"},
    max_output=64_000,
    thinking="adaptive",
    efforts=("low", "medium", "high", "max"),
)
OLDER = Facts(
    "claude-old",
    capabilities=CAPABILITIES
    - {"audio", "n", "logprobs", "mid_system", "adaptive_thinking", "json_schema"},
    max_output=64_000,
    thinking="manual",
)


@pytest.fixture(scope="session")
def modern() -> Facts:
    """A model that thinks adaptively and takes system messages amid the turns."""
    return MODERN


@pytest.fixture(scope="session")
def older() -> Facts:
    """A model with a thinking budget, prefill, and none of the newer abilities."""
    return OLDER


@pytest.fixture(scope="session")
def ask() -> Callable[..., Request]:
    """A request of one user message, from a chat caller unless told otherwise."""

    def build(*messages: Message, **fields: Any) -> Request:
        fields.setdefault("origin", "openai-chat")
        hello = Message("user", (Text("hi"),))
        return Request("alias", messages or (hello,), **fields)

    return build


class Sent:
    """What an encoding gave: the body as JSON, and the notes."""

    def __init__(self, request: Request, facts: Facts) -> None:
        self.encoded = DIALECT.encode(request, "claude-sent", facts)
        self.body = loads(self.encoded.call.body)
        self.messages = self.body["messages"]
        self.dropped = self.encoded.dropped
        self.injected = self.encoded.injected
        self.adjusted = self.encoded.adjusted


@pytest.fixture(scope="session")
def send() -> Callable[[Request, Facts], Sent]:
    return Sent
