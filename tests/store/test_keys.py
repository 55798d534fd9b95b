"""Keys: stored as digests, revoked for good, and every change seen by every process."""

from __future__ import annotations

import asyncio

import pytest

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import Limits
from gateway.store.base import KeyRow
from tests.store.booking import Books

FULL = KeyRow(
    id="key_full",
    name="ci",
    digest=b"\x00\xff" * 16,
    role="admin",
    project="p1",
    created_at=5.5,
    models=("smart", "fast"),
    limits=Limits(rpm=0, nano_per_day=7),
    expires_at=9.5,
    settings={"redaction": "mask"},
)
BARE = KeyRow("key_bare", "dev", b"d" * 32, "caller", "default", 1.0)
SHUT = KeyRow("key_shut", "shut", b"e" * 32, "caller", "default", 2.0, models=())


async def test_a_key_comes_back_as_it_was_given(books: Books) -> None:
    for row in (FULL, BARE, SHUT):
        await books.store.add_key(row)
    assert await books.store.keys() == [BARE, SHUT, FULL], "by age; none and all models differ"


async def test_revoking_is_for_good_and_told_once(books: Books) -> None:
    await books.store.add_key(BARE)
    assert await books.store.revoke_key(BARE.id, 77.0) is True
    assert await books.store.revoke_key(BARE.id, 99.0) is False
    assert await books.store.revoke_key("key_unknown", 99.0) is False
    (row,) = await books.store.keys()
    assert row.revoked_at == 77.0


async def test_a_digest_belongs_to_one_key(books: Books) -> None:
    await books.store.add_key(BARE)
    twin = KeyRow("key_twin", "twin", BARE.digest, "caller", "default", 1.0)
    with pytest.raises(Fault) as fault:
        await books.store.add_key(twin)
    assert "dev" not in str(fault.value.detail), "no value of a row in a log"
    assert len(await books.store.keys()) == 1


async def test_another_process_sees_each_change(books: Books) -> None:
    async with Books(books.url, serving=False) as other:
        before = await books.store.keys_version()
        await other.store.add_key(BARE)
        added = await books.store.keys_version()
        await other.store.revoke_key(BARE.id, 5.0)
        revoked = await books.store.keys_version()
        await other.store.revoke_key(BARE.id, 6.0)
        assert before < added < revoked == await books.store.keys_version()
        assert (await books.store.keys())[0].revoked_at == 5.0


async def test_a_name_belongs_to_one_open_key_whoever_writes_first(books: Books) -> None:
    """Two processes that both saw the name free: one of them makes the key."""
    rows = [KeyRow(f"key_{n}", "ci", bytes([n]) * 32, "caller", "default", 1.0) for n in range(6)]
    async with Books(books.url, serving=False) as other:
        added = await asyncio.gather(
            *((books, other)[n % 2].store.add_key(row) for n, row in enumerate(rows[:5]))
        )
        assert sorted(added) == [False] * 4 + [True]
        (kept,) = await books.store.keys()
        await other.store.revoke_key(kept.id, 5.0)
        assert await books.store.add_key(rows[5]) is True, "a revoked key's name is free"
