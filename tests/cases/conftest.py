"""A gateway with known prices, whose providers are scripted by each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from adapters.simulator import Frame, Reply
from tests.harness import KEYS, PROVIDERS, Harness, gateway

PRICES = """
[facts."openai/gpt-test"]
price = { input = 2.0, output = 8.0, cache_read = 0.5 }
[facts."anthropic/claude-sonnet-4-5"]
price = { input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }
[models.m-openai]
targets = [{ provider = "openai", model = "gpt-test" }]
retries = 0
[models.m-claude]
targets = [{ provider = "anthropic", model = "claude-sonnet-4-5" }]
retries = 0
[models.m-chat]
targets = [{ provider = "chat", model = "chat-test" }]
retries = 0
[models.m-two]
retries = 3
targets = [
  { provider = "anthropic", model = "claude-a" },
  { provider = "anthropic", model = "claude-b" },
]
[models.m-over]
targets = [
  { provider = "openai", model = "gpt-down" },
  { provider = "anthropic", model = "claude-sonnet-4-5" },
]
retries = 0
"""


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    """The running gateway."""
    config = '[store]\nurl = "sqlite:///gateway.db"\n' + PROVIDERS + PRICES + KEYS
    async with gateway(tmp_path, config=config) as running:
        yield running


def sse(*events: dict[str, Any] | bytes) -> Reply:
    """An event stream of these JSON events (or raw bytes), named by their ``type``."""
    frames = []
    for event in events:
        if isinstance(event, bytes):
            frames.append(Frame("delta", event))
            continue
        name = f"event: {event['type']}\n" if "type" in event else ""
        frames.append(Frame("delta", name.encode() + b"data: " + orjson.dumps(event) + b"\n\n"))
    return Reply(200, {"content-type": "text/event-stream"}, tuple(frames), stream=True)


def body(value: Any, status: int = 200, kind: str = "application/json") -> Reply:
    """A whole body: JSON of ``value``, or its bytes as they are."""
    data = value if isinstance(value, bytes) else orjson.dumps(value)
    headers = {"content-type": kind} if kind else {}
    return Reply(status, headers, (Frame("body", data),))


@pytest.fixture
def laid(g: Harness) -> Callable[..., None]:
    """``laid(model, reply, …)``: what the provider's model answers, call by call."""

    def lay(model: str, *replies: Any) -> None:
        g.simulator.script(model, replies)

    return lay
