"""The loop's lag, on a clock of our own."""

from __future__ import annotations

import asyncio
import time

import pytest

from adapters.canonical.clock import SystemClock
from gateway.observe.lag import sample_lag


async def test_a_blocked_loop_shows() -> None:
    seen: list[float] = []
    told = asyncio.Event()

    def report(lag: float) -> None:
        seen.append(lag)
        told.set()

    async with asyncio.timeout(5):
        task = asyncio.create_task(sample_lag(SystemClock(), report, interval=0.005))
        await told.wait()
        told.clear()
        seen.clear()
        time.sleep(0.05)  # noqa: ASYNC251 - what a blocking call does to everybody
        await told.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert max(seen) >= 0.04
    assert min(seen) >= 0.0
