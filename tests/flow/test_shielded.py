"""Work that is finished although whoever wanted it was cancelled."""

from __future__ import annotations

import asyncio
import gc

import pytest

from adapters.canonical.faults import Fault
from gateway.flow.shielded import shielded


async def test_what_comes_of_it_comes_through() -> None:
    async def seven() -> int:
        return 7

    async def fails() -> None:
        raise Fault("store_unavailable", "away")

    assert await shielded(seven()) == 7
    with pytest.raises(Fault):
        await shielded(fails())
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    done.set_result(8)
    assert await shielded(done) == 8


async def cancelled(work: asyncio.Future[None], grace: float = 5.0) -> asyncio.Task[None]:
    """Someone who waits for ``work``, cancelled."""
    waiting = asyncio.create_task(shielded(work, grace))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0.01)
    return waiting


async def test_a_cancellation_waits_for_the_work() -> None:
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = await cancelled(work)
    assert not waiting.done()
    work.set_result(None)
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_not_for_ever() -> None:
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = await cancelled(work, 0.0)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert work.cancelled()


@pytest.mark.parametrize("turns", [0, 1])
async def test_its_failure_just_before_a_cancellation_is_no_news(turns: int) -> None:
    told: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context["message"]))
    work: asyncio.Future[None] = loop.create_future()
    waiting = asyncio.create_task(shielded(work))
    await asyncio.sleep(0)
    work.set_exception(Fault("store_unavailable", "away"))
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    del work, waiting
    gc.collect()
    await asyncio.sleep(0)
    assert told == []


async def test_its_failure_after_a_cancellation_is_no_news() -> None:
    told: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context["message"]))
    work: asyncio.Future[None] = loop.create_future()
    waiting = await cancelled(work)
    work.set_exception(Fault("store_unavailable", "away"))
    with pytest.raises(asyncio.CancelledError):
        await waiting
    del work, waiting
    gc.collect()
    await asyncio.sleep(0)
    assert told == []
