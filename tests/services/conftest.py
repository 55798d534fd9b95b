"""A gateway with two projects, and OpenAI's SDK for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import openai
import pytest

from tests.harness import ENVIRONMENT, KEY, Harness, alias, gateway

OTHER = "test-other-project-key"

OTHER_KEY = """
[[keys]]
name = "other"
key = "${OTHER}"
project = "other"
"""

ALIASES = (
    alias("t-openai", ("openai", "reasoning+gpt-5.2")),
    alias("t-claude", ("anthropic", "reasoning+claude-sonnet-4-5")),
    alias("recite", ("openai", "recite")),
    alias("recite-claude", ("anthropic", "recite")),
    alias("length-cut", ("openai", "fault-length-cut")),
    alias("slow", ("openai", "paced-200-20")),
    alias("cut", ("openai", "fault-cut-after-2"), retries=0, max_attempts=1),
)


@pytest.fixture
async def g(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    """The running gateway."""
    monkeypatch.setitem(ENVIRONMENT, "OTHER", OTHER)
    async with gateway(tmp_path, *ALIASES, OTHER_KEY) as running:
        yield running


def _client(g: Harness, key: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=g.url + "/v1", api_key=key, max_retries=0, timeout=20)


@pytest.fixture
async def client(g: Harness) -> AsyncIterator[openai.AsyncOpenAI]:
    """The SDK with the first project's key."""
    async with _client(g, KEY) as made:
        yield made


@pytest.fixture
async def stranger(g: Harness) -> AsyncIterator[openai.AsyncOpenAI]:
    """The SDK with another project's key."""
    async with _client(g, OTHER) as made:
        yield made
