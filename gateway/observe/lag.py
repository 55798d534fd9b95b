"""How late the event loop is: what every stream and every health check waits besides.

A task sleeps for a short while and measures how much longer it took. Must not know what keeps
the loop busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adapters.canonical.clock import Clock

INTERVAL = 0.25
"""Seconds between samples: rare enough to cost nothing, often enough to catch a freeze."""


async def sample_lag(
    clock: Clock, report: Callable[[float], None], interval: float = INTERVAL
) -> None:
    """Report the loop's lag in seconds, never negative, until the owning task group cancels."""
    while True:
        asleep = clock.monotonic()
        await asyncio.sleep(interval)
        report(max(0.0, clock.monotonic() - asleep - interval))
