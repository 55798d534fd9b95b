"""PostgreSQL goes away and comes back; replicas share limits and inherit what the dead left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import Limits
from gateway.store.base import StoreError, UsageQuery
from gateway.store.postgres import writer
from gateway.store.postgres.database import Database
from gateway.store.postgres.driver import connect
from tests.store.booking import Books
from tests.store.postgres_server import Server


@pytest.fixture
def mortal(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The tests' server, which the test may kill; it is up again afterwards."""
    monkeypatch.setattr(writer, "LONGEST_PAUSE", 0.3)
    yield postgres
    postgres.kill()
    postgres.start()


async def until_ready(books: Books) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                return await books.store.ready()
            except Fault:
                await asyncio.sleep(0.1)


async def test_a_server_that_dies_loses_nothing_that_was_acknowledged(
    mortal: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE", 0.2)
    async with Books(mortal.database()) as books:
        before = [await books.open() for _ in range(5)]
        await books.settle(before[0], cost_nano=111)
        mortal.kill()
        settling = asyncio.gather(*(books.settle(t) for t in before[1:]), return_exceptions=True)
        with pytest.raises(Fault) as fault:
            await books.open()
        assert fault.value.kind == "store_unavailable"
        with pytest.raises(Fault):
            await books.store.ready()
        with pytest.raises(Fault):
            await books.store.usage(UsageQuery())
        assert {type(answer) for answer in await settling} == {Fault}, "told after their patience"
        mortal.start()
        await until_ready(books)
        for ticket in before:
            assert (await books.shown(ticket))["status"] == "completed"
        account = await books.account()
        assert (account["in_flight"], account["reserved_nano"]) == (0, 0)
        assert account["total_nano"] == 111 + 4 * 600


async def test_a_server_that_dies_under_load(mortal: Server) -> None:
    async with Books(mortal.database()) as books:
        settled = 0

        async def calls() -> None:
            nonlocal settled
            for _ in range(400):
                try:
                    ticket = await books.open()
                except Fault:
                    await asyncio.sleep(0.05)
                    continue
                await books.settle(ticket)
                settled += 1

        work = asyncio.gather(*(calls() for _ in range(8)))
        await asyncio.sleep(0.3)
        mortal.kill()
        mortal.start()
        await work
        await until_ready(books)
        (done,) = await books.sql("SELECT count(*) AS n FROM attempts WHERE status = 'completed'")
        assert done["n"] == settled, "each once, although some were written twice"
        account = await books.account()
        assert (account["in_flight"], account["reserved_nano"]) == (0, 0), (
            "lost openings are undone"
        )
        assert account["total_nano"] == settled * 600


class LosesCommits:
    """The connection goes right after the server committed, before it could say so."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._conn, name)

    def transaction(self) -> Any:
        return LostTransaction(self._conn.transaction())


class LostTransaction:
    def __init__(self, transaction: Any) -> None:
        self.start, self.rollback = transaction.start, transaction.rollback
        self._commit = transaction.commit

    async def commit(self) -> None:
        await self._commit()
        raise ConnectionResetError


async def test_an_opening_whose_commit_is_unknown_is_undone(postgres_url: str) -> None:
    async with Books(postgres_url) as books:
        inner = books.store._server._writer
        inner._conn = LosesCommits(inner._conn)
        with pytest.raises(Fault):
            await books.open()
        assert (await books.sql("SELECT status FROM attempts"))[0]["status"] == "open"
        async with asyncio.timeout(10):
            while (await books.account())["reserved_nano"]:
                await asyncio.sleep(0.05)
        (row,) = await books.sql("SELECT status, charged_nano FROM attempts")
        assert row == {"status": "cancelled", "charged_nano": 0}
        assert (await books.account())["in_flight"] == 0


async def test_a_settlement_whose_commit_is_unknown_is_written_once(postgres_url: str) -> None:
    async with Books(postgres_url) as books:
        ticket = await books.open()
        inner = books.store._server._writer
        inner._conn = LosesCommits(inner._conn)
        await books.settle(ticket, cost_nano=600)
        assert (await books.account())["total_nano"] == 600
        (line,) = await books.store.usage(UsageQuery(by=()))
        assert (line["attempts"], line["requests"]) == (1, 1)


async def test_replicas_share_every_limit(postgres_url: str) -> None:
    """Each asks many times, one call at a time, so that their transactions cross."""
    limits = Limits(rpm=40, nano_total=30_000)
    granted = 0

    async def ask(books: Books) -> None:
        nonlocal granted
        for _ in range(25):
            try:
                await books.open(limits)
            except Fault:
                continue
            granted += 1

    async with Books(postgres_url) as a, Books(postgres_url) as b, Books(postgres_url) as c:
        await asyncio.gather(ask(a), ask(b), ask(c))
        assert granted == 30
        account = await a.account()
        assert (account["reserved_nano"], account["in_flight"]) == (30_000, 30)


async def test_a_dead_replicas_calls_are_settled_by_another(postgres_url: str) -> None:
    async with Books(postgres_url) as living, Books(postgres_url) as dying:
        ticket = await dying.open(Limits(concurrent=1))
        await dying.store.close()
        assert await living.store.expire(living.clock.at + 59) == 0
        both = [living.store.expire(living.clock.at + 61) for _ in range(2)]
        assert sorted(await asyncio.gather(*both)) == [0, 1]
        assert (await living.shown(ticket))["status"] == "interrupted"
        await living.open(Limits(concurrent=1))


async def test_after_an_outage_the_living_renew_before_anybody_inherits(
    postgres_url: str,
) -> None:
    async with Books(postgres_url) as books:
        await books.open()
        books.store.settled_after = 15.0
        assert await books.store.expire(books.clock.at + 1000) == 0
        books.store.settled_after = 0.0
        assert await books.store.expire(books.clock.at + 1000) == 1


async def test_a_replica_that_stopped_in_its_probe_keeps_nobody_waiting(postgres_url: str) -> None:
    """It holds the row until the server cuts it off, half a minute later."""
    async with Books(postgres_url) as books:
        stopped = await connect(postgres_url)
        await stopped.transaction().start()
        await stopped.execute("UPDATE counters SET value = 0 WHERE name = 'probe'")
        async with asyncio.timeout(2):
            await books.store.ready()
            await books.open()
        await stopped.execute("ROLLBACK")
        stopped.terminate()


async def test_a_server_that_is_not_there(postgres: Server) -> None:
    url = "postgresql://gateway:secret@127.0.0.1:1/db"
    with pytest.raises(StoreError, match="can't be reached") as error:
        await Books(url).__aenter__()
    assert "secret" not in str(error.value)
    missing = postgres.database() + "_missing"
    with pytest.raises(StoreError, match="InvalidCatalogNameError"):
        await Books(missing).__aenter__()


async def test_two_replicas_that_start_at_once_migrate_once(postgres_url: str) -> None:
    stores = [Database(postgres_url, committed=lambda entries, seconds: None) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    rows = await stores[0].read("SELECT number FROM migrations")
    assert len(rows) == len({row["number"] for row in rows}) >= 1
    for store in stores:
        await store.close()


@pytest.mark.parametrize("alone", [True, False])
async def test_replicas_that_wait_for_each_other_both_get_through(
    postgres: Server, alone: bool
) -> None:
    """Each holds what the other wants next; the server ends one of the two, which writes again.

    ``alone``: both locks are of one entry, else of two entries that are one group.
    """
    url, both_hold = postgres.database(), asyncio.Barrier(2)
    tries = 0

    async def lock(conn: Any, groups: list[tuple[int, ...]]) -> list[str]:
        nonlocal tries
        tries += 1
        first, *others = [number for numbers in groups for number in numbers]
        await conn.execute("SELECT pg_advisory_xact_lock($1)", first)
        if tries <= 2:
            await both_hold.wait()
        for number in others:
            await conn.execute("SELECT pg_advisory_xact_lock($1)", number)
        return ["locked"] * len(groups)

    def write(books: Books, *numbers: int) -> list[asyncio.Future[Any]]:
        entries = [numbers] if alone else [(number,) for number in numbers]
        return [books.store._db.write(lock, entry, "normal") for entry in entries]

    async with Books(url) as a, Books(url) as b:
        answers = await asyncio.gather(*write(a, 1, 2), *write(b, 2, 1))
    assert set(answers) == {"locked"}
    assert tries == (3 if alone else 4), "the one that was ended, again: each of its entries"
