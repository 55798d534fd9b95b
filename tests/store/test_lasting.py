"""Waiting for what must be written lasts until it is, also for who is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.store.jobs import Lasting

AWAY = Fault("store_unavailable", "away")


@pytest.fixture
async def work() -> Lasting:
    return Lasting(loop=asyncio.get_running_loop())


@pytest.fixture
async def told() -> list[str]:
    """What the event loop complained of."""
    complaints: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
    return complaints


async def wait_for(work: Lasting) -> Any:
    return await work


async def cancelled(work: Lasting, times: int = 1) -> asyncio.Task[Any]:
    """Someone who waits for ``work``, cancelled."""
    waiting = asyncio.create_task(wait_for(work))
    await asyncio.sleep(0)
    for _ in range(times):
        waiting.cancel()
        await asyncio.sleep(0.005)
    return waiting


async def test_what_comes_of_it_comes_through(work: Lasting) -> None:
    asyncio.get_running_loop().call_soon(work.set_result, 7)
    assert await work == 7
    failing = Lasting(loop=asyncio.get_running_loop())
    failing.set_exception(AWAY)
    with pytest.raises(Fault):
        await failing


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("well", [True, False])
async def test_a_cancellation_waits_for_the_work(
    work: Lasting, told: list[str], times: int, well: bool
) -> None:
    waiting = await cancelled(work, times)
    assert not waiting.done()
    if well:
        work.set_result(None)
    else:
        work.set_exception(AWAY)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    del work, waiting
    gc.collect()
    await asyncio.sleep(0)
    assert told == [], "its failure is no news to who has left"


async def test_not_for_ever(work: Lasting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.jobs.PATIENCE", 0.01)
    waiting = await cancelled(work)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 2)
    assert work.cancelled()


@pytest.mark.parametrize("turns", [0, 1])
async def test_its_failure_just_before_a_cancellation_is_no_news(
    work: Lasting, told: list[str], turns: int
) -> None:
    waiting = asyncio.create_task(wait_for(work))
    await asyncio.sleep(0)
    work.set_exception(AWAY)
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises((asyncio.CancelledError, Fault)):
        await waiting
    del work, waiting
    gc.collect()
    await asyncio.sleep(0)
    assert told == []
