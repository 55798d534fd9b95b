"""What the tests of this dialect share: golden folders, events as plain JSON, requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.events import Event
from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.request import Message, Request
from adapters.dialects.openai_chat import DIALECT
from adapters.wire.json import loads
from adapters.wire.sse import SseParser


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
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


@pytest.fixture(scope="session")
def plain() -> Callable[[Any], Any]:
    return _plain


def _decode(chunks: Iterable[bytes], *, verbatim: bool = False) -> list[Event]:
    decoder = DIALECT.decoder(verbatim=verbatim)
    parser, events = SseParser(), []
    for chunk in chunks:
        for frame in parser.feed(chunk):
            events += decoder.feed(frame)
    return events + decoder.close()


@pytest.fixture(scope="session")
def decode() -> Callable[..., list[Event]]:
    """Decode a stream that arrives in the given chunks, and its end of file."""
    return _decode


@pytest.fixture(scope="session")
def golden() -> Path:
    return Path(__file__).parents[2] / "golden" / "openai_chat"


@pytest.fixture(scope="session")
def replay(golden: Path) -> Callable[..., list[Event]]:
    """The events of a golden case, stream or body."""

    def run(name: str, *, verbatim: bool = False) -> list[Event]:
        stream = golden / name / "wire.sse"
        if stream.exists():
            return _decode([stream.read_bytes()], verbatim=verbatim)
        return DIALECT.decoder(verbatim=verbatim).body((golden / name / "wire.json").read_bytes())

    return run


@pytest.fixture(scope="session")
def facts() -> Facts:
    """A model of which nothing is known but that it can do everything."""
    return Facts("golden-model", capabilities=CAPABILITIES)


@pytest.fixture(scope="session")
def ask() -> Callable[..., Request]:
    """A request of one user message, from a chat caller unless told otherwise."""

    def build(*messages: Message, **fields: Any) -> Request:
        fields.setdefault("origin", "openai-chat")
        return Request("alias", messages or (Message("user", (Text("hi"),)),), **fields)

    return build


class Sent:
    """What an encoding gave: the body as JSON, and the notes."""

    def __init__(self, request: Request, facts: Facts) -> None:
        self.encoded = DIALECT.encode(request, "golden-model", facts)
        self.body = loads(self.encoded.call.body)
        self.dropped = self.encoded.dropped
        self.injected = self.encoded.injected
        self.adjusted = self.encoded.adjusted


@pytest.fixture(scope="session")
def send(facts: Facts) -> Callable[..., Sent]:
    def send(request: Request, known: Facts = facts) -> Sent:
        return Sent(request, known)

    return send
