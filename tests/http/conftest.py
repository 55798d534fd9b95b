"""A gateway over the simulator, small body limit, quick pings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness import KEYS, PROVIDERS, Harness, alias, aliases, gateway

CONFIG = (
    "[server]\nmax_body_mb = 1\nping_seconds = PING\ndrain_seconds = 0.3\n"
    'cors = ["https://page.example"]\n'
    '[store]\nurl = "sqlite:///gateway.db"\n'
    + PROVIDERS
    + aliases(
        [
            alias("slow", ("openai", "paced-200-20")),
            alias("silent", ("openai", "fault-no-response")),
            alias("late", ("openai", "fault-slow-first-token-1")),
            alias("held", ("openai", "paced-20-20"), commit="complete"),
            alias("team/gpt:4.1", ("openai", "gpt-4.1")),
        ]
    )
    + KEYS
)


@pytest.fixture
def ping_seconds() -> float:
    """Where a ping would be in the way, a module says another number."""
    return 0.2


@pytest.fixture
async def g(tmp_path: Path, ping_seconds: float) -> AsyncIterator[Harness]:
    """The running gateway."""
    async with gateway(tmp_path, config=CONFIG.replace("PING", str(ping_seconds))) as running:
        yield running
