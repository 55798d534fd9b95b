"""Runs in the books, over both databases: one writer at a time, no gap, no second truth."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.store.runs import (
    Addition,
    AgentRow,
    Birth,
    EventRow,
    RunQuery,
    RunRow,
    Standing,
    TaskRow,
)
from tests.store.booking import NOON, Books

DAY = 86_400.0


def birth(run_id: str = "run_1", **changes: object) -> Birth:
    return replace(Birth(run_id, "p1", "key_1", "agent", "helper", NOON), **changes)  # type: ignore[arg-type]


def event(seq: int, type: str = "model.started", run_id: str = "run_1") -> EventRow:
    return EventRow(run_id, seq, type, NOON + seq, 0, "main/1", "helper", "{}")


def addition(
    *seqs: int, status: str = "running", epoch: int = 0, run_id: str = "run_1", **standing: object
) -> Addition:
    events = [event(seq, run_id=run_id) for seq in seqs]
    stands = Standing(status, seqs[-1], NOON + seqs[-1], **standing)  # type: ignore[arg-type]
    return Addition(run_id, seqs[0] - 1, epoch, events, stands)


async def created(books: Books, run_id: str = "run_1", **changes: object) -> None:
    first = addition(1, status="queued", run_id=run_id)
    assert await books.store.create_run(birth(run_id, **changes), first, None, None) is None


async def seqs(books: Books, run_id: str = "run_1") -> list[int]:
    return [row.seq for row in await books.store.run_events(run_id, 0, 1000)]


async def test_a_run_comes_back_as_it_was_written(books: Books) -> None:
    made = birth(metadata={"a": "b"}, parent="run_0", idempotency_key="k", digest=b"\0x")
    summary = {"output": {"text": "hi"}}
    first = addition(1, status="queued", children=["run_2"], wake_at=NOON + 5, summary=summary)
    task = TaskRow("run_1", "main/1", 1, "model", "smart", None, None, "running", NOON, None, None)
    first = replace(first, tasks=[task])
    assert await books.store.create_run(made, first, None, None) is None
    row = await books.store.run("run_1", "p1")
    assert row is not None
    assert (row.birth, row.standing) == (made, first.standing)
    assert (row.epoch, row.owner, row.pausing, row.swept) == (0, None, False, False)
    assert await books.store.run_events("run_1", 0, 10) == first.events
    assert await books.store.run_tasks("run_1") == [task]
    assert await books.store.run("run_1", "p2") is None, "another project's"


async def test_of_two_who_add_at_once_one_does(books: Books) -> None:
    await created(books)
    adding = [books.store.add_run_events(addition(2, 3)) for _ in range(20)]
    assert sum(await asyncio.gather(*adding)) == 1
    assert await seqs(books) == [1, 2, 3]
    assert not await books.store.add_run_events(addition(5)), "a gap"
    assert await seqs(books) == [1, 2, 3]


async def test_deltas_move_nothing_but_the_place(books: Books) -> None:
    await created(books)
    delta = Addition("run_1", 1, 0, [event(2, "message.delta")], None)
    assert await books.store.add_run_events(delta)
    row = await books.store.run("run_1")
    assert row is not None
    assert (row.standing.status, row.standing.last_seq) == ("queued", 2)
    left = await books.store.run_events("run_1", 0, 10, leave_out=("message.delta",))
    assert [row.seq for row in left] == [1]


async def test_a_page_of_events_is_bounded_in_bytes_and_never_empty(books: Books) -> None:
    await created(books)
    assert await books.store.add_run_events(addition(2, 3, 4, 5))
    (size,) = {len(row.data) for row in await books.store.run_events("run_1", 1, 10)}
    for max_bytes, count in ((1, 1), (size, 1), (size + 1, 2), (3 * size, 3), (99 * size, 4)):
        page = await books.store.run_events("run_1", 1, 10, max_bytes=max_bytes)
        assert [row.seq for row in page] == [2, 3, 4, 5][:count]


async def test_one_key_makes_one_run(books: Books) -> None:
    made = await asyncio.gather(
        *(
            books.store.create_run(
                birth(f"run_{n}", idempotency_key="k"),
                addition(1, status="queued", run_id=f"run_{n}"),
                None,
                None,
            )
            for n in range(10)
        )
    )
    (winner,) = [f"run_{n}" for n, found in enumerate(made) if found is None]
    assert {found.birth.id for found in made if found is not None} == {winner}
    other = birth("run_x", project="p2", idempotency_key="k")
    first = addition(1, status="queued", run_id="run_x")
    assert await books.store.create_run(other, first, None, None) is None, "another project's key"
    assert len(await books.store.runs(RunQuery("p1"))) == 1


async def test_a_claim_is_one_owner_s_and_a_later_one_fences_it(books: Books) -> None:
    await created(books)
    claims = await asyncio.gather(
        *(books.store.claim_runs(f"w{n}", NOON, NOON + 15, 5) for n in range(5))
    )
    assert sum(len(rows) for rows in claims) == 1
    assert await books.store.add_run_events(addition(2, epoch=1))
    assert not await books.store.claim_runs("late", NOON + 14, NOON + 30, 5)
    assert len(await books.store.claim_runs("late", NOON + 16, NOON + 30, 5)) == 1
    assert not await books.store.add_run_events(addition(3, epoch=1)), "its lease is lost"
    assert await books.store.add_run_events(addition(3, epoch=2))
    assert await books.store.renew_runs("late", ["run_1", "run_2"], NOON + 99) == ["run_1"]
    assert await books.store.renew_runs("other", ["run_1"], NOON + 99) == []
    await books.store.release_run("run_1", 1)
    assert not await books.store.claim_runs("w", NOON + 50, NOON + 60, 5)
    await books.store.release_run("run_1", 2)
    assert len(await books.store.claim_runs("w", NOON + 50, NOON + 60, 5)) == 1


async def test_what_waits_is_not_claimed_until_its_child_has_ended(books: Books) -> None:
    await created(books)
    await created(books, "run_2", parent="run_1")
    waits = addition(2, status="waiting", waiting_for="approval", children=["run_2"])
    assert await books.store.add_run_events(waits)
    child = addition(2, status="waiting", run_id="run_2")
    assert await books.store.add_run_events(child)
    assert await books.store.claim_runs("w", NOON, NOON + 9, 5) == []
    ended = addition(3, status="completed", run_id="run_2", ended_at=NOON)
    assert await books.store.add_run_events(ended)
    assert [row.birth.id for row in await books.store.claim_runs("w", NOON, NOON + 9, 5)] == [
        "run_1"
    ]


async def test_pausing_is_asked_of_a_running_run_and_forgotten_when_it_stops(books: Books) -> None:
    await created(books)
    await books.store.set_pausing("run_1", True)
    row = await books.store.run("run_1")
    assert row is not None
    assert not row.pausing, "nobody works on it"
    await books.store.add_run_events(addition(2))
    await books.store.set_pausing("run_1", True)
    await books.store.add_run_events(addition(3))
    row = await books.store.run("run_1")
    assert row is not None
    assert row.pausing
    await books.store.add_run_events(addition(4, status="waiting"))
    row = await books.store.run("run_1")
    assert row is not None
    assert row.pausing, "it is to be paused once it could go on"
    await books.store.add_run_events(addition(5, status="paused"))
    row = await books.store.run("run_1")
    assert row is not None
    assert not row.pausing


async def test_runs_are_listed_newest_first_in_pages(books: Books) -> None:
    for n in range(5):
        await created(books, f"run_{n}", created_at=NOON + n, agent="ab"[n % 2])
    page = await books.store.runs(RunQuery("p1", limit=2))
    assert [row.birth.id for row in page] == ["run_4", "run_3"]
    page = await books.store.runs(RunQuery("p1", limit=2, before="run_3", agent="a"))
    assert [row.birth.id for row in page] == ["run_2", "run_0"]
    assert await books.store.runs(RunQuery("p1", status="failed")) == []
    assert await books.store.runs(RunQuery("p2")) == []


async def test_a_claim_that_nobody_names_ends(books: Books) -> None:
    await created(books)
    assert await books.store.claim_runs("w", NOON, NOON + 15, 5)
    await books.store.renew_runs("w", ["run_2"], NOON + 99)
    assert len(await books.store.claim_runs("w", NOON + 16, NOON + 30, 5)) == 1


async def test_of_claims_that_are_made_at_once_one_may_fail(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        await created(books, f"run_{n}", created_at=NOON + n)
    claim = books.store.claim_run
    error: Exception = Fault("store_unavailable", "not now")

    async def claim_run(row: RunRow, *more: Any) -> RunRow | None:
        if row.birth.id == "run_1":
            raise error
        return await claim(row, *more)

    monkeypatch.setattr(books.store, "claim_run", claim_run)
    claimed = await books.store.claim_runs("w", NOON, NOON + 15, 5)
    assert [row.birth.id for row in claimed] == ["run_0", "run_2"]
    with pytest.raises(Fault, match="not now"):
        await books.store.claim_runs("w", NOON, NOON + 15, 5)
    await created(books, "run_3", created_at=NOON + 3)
    error = TypeError("a mistake of ours")
    with pytest.raises(TypeError, match="of ours"):
        await books.store.claim_runs("w", NOON, NOON + 15, 5)


async def test_ended_runs_are_not_read_through_to_claim_renew_or_filter(sqlite_url: str) -> None:
    """However many there are: SQLite's own plan of each statement."""
    asked: list[tuple[str, Sequence[object]]] = []
    async with Books(sqlite_url) as books:
        store = books.store

        async def read(statement: str, values: Sequence[object] = ()) -> list[dict[str, object]]:
            asked.append((statement, values))
            return []

        def write(apply: object, entry: object, *more: object) -> asyncio.Future[bool]:
            asked.extend((statement, rows[0]) for statement, rows in entry if rows)  # type: ignore[attr-defined]
            found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            found.set_result(True)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store._db, "read", read)
            for name in ("status", "agent", "parent"):
                await store.runs(RunQuery("p1", **{name: "x"}))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store._db, "read", read)
            patch.setattr(store._db, "write", write)
            await store.claim_runs("a", NOON, NOON + 9, 9)
            await store.renew_runs("a", ["x", "y"], NOON + 9)
            await store.free_runs()
            await store.due_runs(NOON, 9)
            await store.run_of_key("p1", "k")
        plans = []
        for statement, values in asked:
            rows = await books.sql(f"EXPLAIN QUERY PLAN {statement}", *values)
            plans.append("; ".join(str(row["detail"]) for row in rows))
        for plan in plans:
            assert "SCAN runs;" not in f"{plan};"
            assert "TEMP B-TREE" not in plan
        for name, plan in zip(("status", "agent", "parent"), plans, strict=False):
            assert f"{name}=?" in plan


async def test_a_task_has_one_row_a_try(books: Books) -> None:
    await created(books)
    row = TaskRow("run_1", "c1", 1, "tool", "add", "a", "main/1", "pending", NOON, None, None)
    tries = [
        row,
        row._replace(status="completed", ended_at=NOON + 1, detail='{"x":1}'),
        row._replace(attempt=2, created_at=NOON + 2),
    ]
    for seq, task in enumerate(tries, 2):
        assert await books.store.add_run_events(replace(addition(seq), tasks=[task]))
    assert await books.store.run_tasks("run_1") == [tries[1], tries[2]]


async def test_due_runs_and_deletion(books: Books) -> None:
    await created(books)
    await books.store.add_run_events(addition(2, status="waiting", wake_at=NOON + 10))
    assert await books.store.due_runs(NOON + 9, 5) == []
    assert await books.store.due_runs(NOON + 10, 5) == ["run_1"]
    await books.store.delete_run("run_1")
    assert await books.store.run("run_1") is None
    assert await seqs(books) == []


async def test_past_its_retention_a_run_is_empty_then_forgotten(books: Books) -> None:
    await created(books, metadata={"a": "b"})
    ended = addition(2, status="completed", ended_at=NOON, summary={"output": 1})
    await books.store.add_run_events(ended)
    await books.store.sweep(NOON + 29 * DAY, {})
    assert await seqs(books) == [1, 2]
    assert (await books.store.sweep(NOON + 31 * DAY, {}))["runs"] == 1
    row = await books.store.run("run_1")
    assert row is not None
    assert row.swept
    assert row.standing.summary == {}
    assert not row.birth.metadata
    assert await seqs(books) == []
    await books.store.sweep(NOON + 366 * DAY, {})
    assert await books.store.run("run_1") is None


async def test_a_project_s_runs_are_forgotten_on_request(books: Books) -> None:
    for run_id, project in (("run_1", "p1"), ("run_2", "p2")):
        await created(books, run_id, project=project, end_user="ann")
        await books.store.add_run_events(addition(2, status="failed", ended_at=NOON, run_id=run_id))
    await books.store.forget(project="p1")
    assert await books.store.run("run_1") is None
    assert await seqs(books, "run_2") == [1, 2]
    await books.store.forget(end_user="ann")
    assert await seqs(books, "run_2") == []


async def test_agents_have_versions(books: Books) -> None:
    first = AgentRow("p1", "helper", 1, NOON, {"model": "m"})
    assert await books.store.put_agent(first)
    assert not await books.store.put_agent(first)
    assert await books.store.put_agent(first._replace(version=2, spec={"model": "n"}))
    assert await books.store.agent("p1", "helper", 1) == first
    newest = await books.store.agent("p1", "helper", None)
    assert newest is not None
    assert newest.version == 2
    assert await books.store.agents("p1") == [newest]
    assert await books.store.agent("p2", "helper", None) is None
    assert await books.store.delete_agent("p1", "helper")
    assert await books.store.agents("p1") == []
    assert not await books.store.delete_agent("p1", "helper")


async def test_a_stream_token_opens_one_run_for_a_while(books: Books) -> None:
    await books.store.add_stream_token(b"\1\2", "run_1", NOON, NOON + 60)
    assert await books.store.stream_token(b"\1\2", NOON + 59) == "run_1"
    assert await books.store.stream_token(b"\1\2", NOON + 60) is None
    assert await books.store.stream_token(b"\1\3", NOON) is None


async def test_usage_of_calls_is_the_sum_of_their_attempts(books: Books) -> None:
    assert await books.store.calls_usage([]) == (0, 0, 0)
    ticket = await books.open()
    await books.settle(ticket)
    used = await books.store.calls_usage([ticket.request_id])
    assert used.cost_nano > 0
    assert used.input_tokens > 0
    cut = await books.open()
    reserved = (await books.store.calls_usage([cut.request_id])).cost_nano
    assert reserved > 0
    assert await books.store.expire(books.clock.wall() + DAY) == 1
    assert (await books.store.calls_usage([cut.request_id])).cost_nano == reserved


async def test_another_process_shows_in_the_version(books: Books) -> None:
    before = await books.store.runs_version()
    async with Books(books.url, serving=False) as other:
        await created(other)
    assert await books.store.runs_version() != before


async def test_where_news_is_heard_nobody_need_look(postgres_url: str) -> None:
    """What it tells: whose news it is, and whether somebody may take the run up."""
    news: asyncio.Queue[tuple[str, bool]] = asyncio.Queue()
    async with Books(postgres_url) as books, Books(postgres_url, serving=False) as other:
        ear = asyncio.create_task(books.store.hear_runs(lambda *one: news.put_nowait(one)))
        assert await news.get() == ("", False), "who begins to listen may have missed some"
        version = await books.store.runs_version()
        await created(books, "run_own")
        await created(other)
        assert await news.get() == ("run_1", True), "not of one's own writing"
        assert [r.birth.id for r in await other.store.claim_runs("b", NOON, NOON + 9, 9)]
        assert await other.store.add_run_events(addition(2, epoch=1))
        assert await news.get() == ("run_1", False), "it is worked on"
        assert await books.store.runs_version() == version
        await books.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        assert await asyncio.wait_for(news.get(), 10) == ("", False), "and listens again"
        await created(other, "run_2")
        assert await news.get() == ("run_2", True)
        ear.cancel()
        await asyncio.wait([ear])
        assert await books.store.runs_version() != version
