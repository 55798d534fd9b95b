"""Usage is read from the daily roll-ups, however many rows there are."""

from __future__ import annotations

import time
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.store import sql, usagequery
from gateway.store.base import UsageQuery
from gateway.store.rows import ROLLUP_KEY, ROLLUP_SUMS
from tests.store.booking import NOON, Books

MANY_LINES = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
    INSERT INTO calls (id, at, project, key_id, key_name, alias, origin, stream, config_hash,
        status, lease_until, holds_slot)
    SELECT 'old_' || i, 0, 'default', 'key_1', 'dev', 'smart', 'openai-chat', 0, 'h',
        'completed', 0, 0 FROM n"""


async def spend(books: Books) -> None:
    for day in range(3):
        books.clock.at = NOON + day * 86_400
        for key, alias, prompt in (("a", "smart", None), ("a", "fast", "p1"), ("b", "smart", None)):
            ticket = await books.open(
                key_id=f"key_{key}", key_name=f"name of {key}", alias=alias, prompt=prompt
            )
            await books.settle(ticket, cost_nano=100 + day)


async def lines(books: Books, *by: str, **query: Any) -> list[tuple[Any, ...]]:
    found = await books.store.usage(UsageQuery(by=by, **query))
    return [(*(line[name] for name in by), line["requests"], line["cost_nano"]) for line in found]


async def test_groups(books: Books) -> None:
    await spend(books)
    assert await lines(books) == [(9, 909)]
    assert await lines(books, "key") == [("name of a", 6, 606), ("name of b", 3, 303)]
    assert await lines(books, "alias") == [("fast", 3, 303), ("smart", 6, 606)]
    assert await lines(books, "prompt") == [("", 6, 606), ("p1", 3, 303)]
    assert await lines(books, "provider", "model") == [("openai", "gpt", 9, 909)]
    assert await lines(books, "project") == [("default", 9, 909)]
    assert await lines(books, "day") == [
        ("2024-10-04", 3, 300),
        ("2024-10-05", 3, 303),
        ("2024-10-06", 3, 306),
    ]
    assert len(await lines(books, "key", "alias", "day")) == 9


async def test_a_period_takes_in_whole_days(books: Books) -> None:
    await spend(books)
    second = NOON // 86_400 * 86_400 + 86_400
    assert await lines(books, "day", since=second, until=second + 86_400) == [
        ("2024-10-05", 3, 303)
    ]
    assert len(await lines(books, "day", since=second + 5, until=second + 86_401)) == 2
    assert await lines(books, since=second + 10 * 86_400) == [(0, 0)]
    assert await lines(books, "key", since=second + 10 * 86_400) == []
    assert await lines(books, project="theirs") == [(0, 0)]


async def test_sums_are_whole_numbers(books: Books) -> None:
    await spend(books)
    (line,) = await books.store.usage(UsageQuery(by=()))
    assert {name: type(line[name]) for name in ROLLUP_SUMS} == dict.fromkeys(ROLLUP_SUMS, int)
    assert line["output_tokens"] == 180


async def test_an_unknown_group_is_the_callers_mistake(books: Books) -> None:
    with pytest.raises(Fault, match="key, alias") as fault:
        await books.store.usage(UsageQuery(by=("key_id; DROP TABLE keys",)))
    assert fault.value.kind == "bad_request"


@pytest.mark.parametrize("group", [*usagequery.GROUPS, ""])
async def test_no_plan_touches_the_rows(books: Books, group: str) -> None:
    query = UsageQuery(by=(group,) if group else (), since=NOON, until=NOON + 86_400)
    statement, values = usagequery.statement(query)
    explain = "EXPLAIN QUERY PLAN" if books.url.startswith("sqlite") else "EXPLAIN"
    plan = str(await books.sql(f"{explain} {statement}", *values))
    assert "rollups" in plan
    assert "requests" not in plan
    assert "attempts" not in plan


async def test_the_days_are_found_by_the_key(sqlite_url: str) -> None:
    async with Books(sqlite_url) as books:
        query = UsageQuery(by=("model",), since=NOON, until=NOON + 86_400)
        statement, values = usagequery.statement(query)
        (first, *_) = await books.sql(f"EXPLAIN QUERY PLAN {statement}", *values)
        assert "USING PRIMARY KEY (day>? AND day<?)" in first["detail"]


async def test_many_rows_change_nothing(sqlite_url: str) -> None:
    async with Books(sqlite_url) as books:
        await spend(books)
        await books.store._db.write(lambda conn, _: [conn.execute(MANY_LINES)], None, "normal")
        began = time.perf_counter()
        assert await lines(books) == [(9, 909)]
        assert time.perf_counter() - began < 3


async def test_every_sum_has_its_place(books: Books) -> None:
    """The statement that adds names each column once; a swapped pair would show here."""
    ticket = await books.open(nano=5)
    await books.settle(
        ticket,
        usage_source="estimated",
        fault="stream_truncated",
        input_tokens=1,
        output_tokens=2,
        cache_read_tokens=3,
        cache_write_tokens=4,
        reasoning_tokens=6,
        cost_nano=12,
    )
    (line,) = await books.sql(f"SELECT {sql.columns([*ROLLUP_KEY, *ROLLUP_SUMS])} FROM rollups")
    expected = {
        "day": 20_000,
        "project": "default",
        "key_id": "key_1",
        "alias": "smart",
        "provider": "openai",
        "model": "gpt",
        "prompt": "",
        "requests": 1,
        "attempts": 1,
        "refused": 0,
        "faults": 1,
        "unknown_usage": 0,
        "estimated_usage": 1,
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_tokens": 3,
        "cache_write_tokens": 4,
        "reasoning_tokens": 6,
        "cost_nano": 12,
        "estimated_nano": 12,
        "overrun_nano": 7,
    }
    assert line == expected
