"""Places for connections: so many at once, and the next one goes to whoever came first."""

from __future__ import annotations

import asyncio

from adapters.transport.pool import Pool


async def test_places_are_given_in_the_order_of_asking() -> None:
    pool: Pool[str] = Pool(2)
    assert pool.enter("a") is None
    assert pool.enter("b") is None
    turns = {name: pool.enter(name) for name in "cde"}
    pool.leave("b")
    assert [turn is not None and turn.done() for turn in turns.values()] == [True, False, False]
    assert pool.holders == {"a", "c"}
    pool.leave("a")
    assert pool.holders == {"c", "d"}


async def test_who_left_the_queue_is_passed_over() -> None:
    pool: Pool[str] = Pool(1)
    pool.enter("a")
    second, third, fourth = (pool.enter(name) for name in "bcd")
    assert second is not None
    assert third is not None
    assert fourth is not None
    second.cancel()  # as the task's cancellation does it
    pool.leave("c")  # gone for good before its turn
    pool.leave("a")
    assert pool.holders == {"d"}
    assert fourth.done()
    assert not third.done()


async def test_a_place_that_was_given_to_somebody_who_leaves_at_once_goes_on() -> None:
    """Cancelled between its turn and its waking: the place is its own, and it gives it back."""
    pool: Pool[str] = Pool(1)
    pool.enter("a")
    turn, last = pool.enter("b"), pool.enter("c")
    assert turn is not None
    assert last is not None
    waiting = asyncio.ensure_future(_wait(pool, "b", turn))
    await asyncio.sleep(0)
    pool.leave("a")
    waiting.cancel()
    await asyncio.wait([waiting])
    assert pool.holders == {"c"}
    assert last.done()


async def _wait(pool: Pool[str], name: str, turn: asyncio.Future[None]) -> None:
    try:
        await turn
    finally:
        pool.leave(name)


def test_leaving_twice_gives_one_place_back() -> None:
    pool: Pool[str] = Pool(1)
    pool.enter("a")
    pool.leave("a")
    assert pool.enter("b") is None
    pool.leave("a")
    assert pool.holders == {"b"}
