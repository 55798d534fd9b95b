"""The official OpenAI SDK, retries off, against a running gateway over the simulator."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import openai
import pytest

from tests.harness import KEY, Harness, alias, gateway

UPSTREAMS = ("m-openai", "m-claude", "m-chat")

FAULTS = {
    "f-400": "fault-status-400",
    "f-401": "fault-status-401",
    "f-404": "fault-status-404",
    "f-429": "fault-status-429-retry-after-2",
    "f-500": "fault-status-500",
    "f-529": "fault-status-529",
    "f-cut": "fault-cut-after-2",
}


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    """A gateway with one alias a fault, each without retries."""
    broken = [
        alias(name, ("anthropic", model), retries=0, max_attempts=1)
        for name, model in FAULTS.items()
    ]
    thinking = [
        alias("t-openai", ("openai", "reasoning+gpt-5.2")),
        alias("t-claude", ("anthropic", "reasoning+claude-sonnet-4-5")),
        alias("t-sealed", ("anthropic", "sealed-reasoning+claude-sonnet-4-5")),
    ]
    async with gateway(tmp_path, *broken, *thinking) as running:
        yield running


@pytest.fixture
async def client(g: Harness) -> AsyncIterator[openai.AsyncOpenAI]:
    """The asynchronous client."""
    async with openai.AsyncOpenAI(
        base_url=g.url + "/v1", api_key=KEY, max_retries=0, timeout=20
    ) as made:
        yield made


@pytest.fixture
def g_sync(tmp_path: Path) -> Iterator[str]:
    """A gateway in a thread with its own event loop, for clients that block; its URL."""
    started: queue.Queue[str] = queue.Queue()
    stop = threading.Event()

    async def serve() -> None:
        async with gateway(tmp_path) as running:
            started.put(running.url)
            while not stop.is_set():
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield started.get(timeout=20)
    finally:
        stop.set()
        thread.join(timeout=20)
