"""Makers of seals in the books: found by digest, kept for their days."""

from __future__ import annotations

from gateway.store.seals import Seal
from tests.store.booking import NOON, Books

DAY = 86_400.0
ONE = Seal(b"\x00" * 16, "openai", "gpt")
TWO = Seal(b"\xff" * 16, "anthropic", "claude")


async def test_who_made_them(books: Books) -> None:
    await books.store.keep_seals([ONE, TWO], NOON)
    assert set(await books.store.seals([ONE.digest, TWO.digest, b"unknown"])) == {ONE, TWO}
    assert list(await books.store.seals([])) == []


async def test_another_process_knows_them(books: Books) -> None:
    await books.store.keep_seals([ONE], NOON)
    async with Books(books.url, serving=False) as other:
        assert list(await other.store.seals([ONE.digest])) == [ONE]


async def test_one_that_is_made_again_stays_longer(books: Books) -> None:
    await books.store.keep_seals([ONE, TWO], NOON)
    await books.store.keep_seals([ONE], NOON + 50 * DAY)
    gone = await books.store.sweep(NOON + 100 * DAY, {})
    assert gone["seals"] == 1
    assert list(await books.store.seals([ONE.digest, TWO.digest])) == [ONE]
