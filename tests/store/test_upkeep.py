"""Retention, deletion on request, readiness, backup."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from pathlib import Path

import pytest

from gateway.store.base import RequestEnd, StoreError, UsageQuery
from gateway.store.retention import CHUNK, DAYS
from tests.store.booking import NOON, Books

DAY = 86_400.0


async def call(books: Books, **request: object) -> str:
    ticket = await books.open(**request)
    await books.settle(ticket)
    return ticket.request_id


async def counts(books: Books) -> tuple[int, int]:
    (row,) = await books.sql(
        "SELECT (SELECT count(*) FROM requests) AS r, (SELECT count(*) FROM attempts) AS a"
    )
    return row["r"], row["a"]


async def test_what_is_past_its_days_goes(books: Books) -> None:
    await call(books)
    books.clock.at = NOON + 10 * DAY
    young = await call(books)
    open_ = await books.open()
    gone = await books.store.sweep(NOON + 15 * DAY, {"requests": 10})
    assert (gone["requests"], gone["rollups"]) == (1, 0)
    assert await counts(books) == (2, 2)
    assert await books.store.request(young, None) is not None
    gone = await books.store.sweep(NOON + 100 * DAY, {"requests": 10, "rollups": 50})
    assert (gone["requests"], gone["rollups"]) == (1, 2), "days, of the roll-ups"
    assert (await books.shown(open_))["status"] == "open", "what is under way stays"
    assert (await books.account())["total_nano"] == 1200, "budgets are not forgotten"


async def test_defaults_hold_and_for_ever_is_for_ever(books: Books) -> None:
    await call(books)
    now = NOON + 10_000 * DAY
    gone = await books.store.sweep(now, dict.fromkeys(DAYS, math.inf))
    assert set(gone.values()) <= {0}
    assert await counts(books) == (1, 1)
    assert (await books.store.sweep(now, {}))["requests"] == 1


async def test_a_sweep_takes_small_steps(books: Books) -> None:
    end = RequestEnd("failed", 429, fault="rate_limited")
    rows = [books.request() for _ in range(CHUNK + 20)]
    await asyncio.gather(*(books.store.record_refusal(row, end) for row in rows))
    assert (await books.store.sweep(NOON + 91 * DAY, {}))["requests"] == CHUNK + 20
    assert await counts(books) == (0, 0)


async def test_a_table_without_retention_is_named(books: Books) -> None:
    with pytest.raises(StoreError, match="requests"):
        await books.store.sweep(NOON, {"keys": 5})


async def test_an_end_user_is_forgotten_and_the_sums_stay(books: Books) -> None:
    for project, user in (("p1", "ann"), ("p1", "bob"), ("p2", "ann")):
        await call(books, project=project, end_user=user)
    assert await books.store.forget(project="p1", end_user="ann") == 1
    assert await books.store.forget(end_user="ann") == 1
    assert await counts(books) == (1, 1)
    (line,) = await books.store.usage(UsageQuery(by=()))
    assert line["requests"] == 3


async def test_a_project_is_forgotten_with_its_sums(books: Books) -> None:
    await call(books, project="p1", end_user="ann")
    await call(books, project="p2")
    assert await books.store.forget(project="p1") == 1
    lines = await books.store.usage(UsageQuery(by=("project",)))
    assert [line["project"] for line in lines] == ["p2"]
    assert await books.store.forget() == 0
    assert await counts(books) == (1, 1)


async def test_readiness_is_a_row_written(books: Books) -> None:
    before = await books.sql("SELECT value FROM counters WHERE name = 'probe'")
    await books.store.ready()
    after = await books.sql("SELECT value FROM counters WHERE name = 'probe'")
    assert after[0]["value"] == before[0]["value"] + 1


async def test_a_backup_is_whole_though_calls_go_on(sqlite_url: str, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    async with Books(sqlite_url) as books:
        await call(books)
        busy = asyncio.create_task(_calls(books))
        await books.store.backup(str(target))
        busy.cancel()
        with pytest.raises(StoreError, match="never overwrites"):
            await books.store.backup(str(target))
    assert target.stat().st_mode & 0o777 == 0o600
    copy = sqlite3.connect(target)
    assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert copy.execute("SELECT count(*) FROM requests").fetchone()[0] >= 1
    copy.close()
    async with Books(f"sqlite:///{target}") as restored:
        (line,) = await restored.store.usage(UsageQuery(by=()))
        assert line["cost_nano"] >= 600


async def _calls(books: Books) -> None:
    while True:
        await call(books)


async def test_a_backup_that_can_not_be_made_leaves_nothing(
    sqlite_url: str, tmp_path: Path
) -> None:
    async with Books(sqlite_url) as books:
        with pytest.raises(StoreError, match="There is no folder"):
            await books.store.backup(str(tmp_path / "no such folder" / "copy.db"))


async def test_postgres_says_how_to_back_it_up(postgres_url: str) -> None:
    async with Books(postgres_url) as books:
        with pytest.raises(StoreError, match="pg_dump"):
            await books.store.backup("copy.dump")
