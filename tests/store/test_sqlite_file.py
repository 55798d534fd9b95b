"""The SQLite file: one server at a time, the command line beside it, and what can be wrong."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import StoreSettings
from gateway.store import connect
from gateway.store.base import KeyRow, StoreError, UsageQuery
from gateway.store.sqlite import writer
from tests.store.booking import Books


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


async def test_a_second_server_is_refused_and_told_by_whom(sqlite_url: str) -> None:
    async with Books(sqlite_url) as books:
        with pytest.raises(StoreError, match=f"served by process {os.getpid()}"):
            await Books(sqlite_url).__aenter__()
        await books.open()
    async with Books(sqlite_url):
        pass


async def test_the_command_line_reads_and_writes_beside_a_server(sqlite_url: str) -> None:
    async with Books(sqlite_url) as server:
        ticket = await server.open()
        async with Books(sqlite_url, serving=False) as client:
            assert (await client.shown(ticket))["status"] == "open", "nobody's row is settled"
            await client.store.add_key(KeyRow("key_9", "x", b"9" * 32, "caller", "default", 1.0))
            assert [key.id for key in await server.store.keys()] == ["key_9"]
            both = [server.settle(ticket), client.store.revoke_key("key_9", 5.0)]
            await asyncio.gather(*both)
            (line,) = await client.store.usage(UsageQuery(by=()))
            assert line["requests"] == 1


async def test_the_command_line_can_come_first(sqlite_url: str) -> None:
    async with Books(sqlite_url, serving=False) as client:
        await client.store.add_key(KeyRow("key_9", "x", b"9" * 32, "caller", "default", 1.0))
    async with Books(sqlite_url) as server:
        assert len(await server.store.keys()) == 1


async def test_a_restart_settles_what_was_open_whatever_its_lease(sqlite_url: str) -> None:
    async with Books(sqlite_url) as books:
        ticket = await books.open(nano=1000)
    async with Books(sqlite_url) as books:
        row = await books.shown(ticket)
        attempt = row["attempts"][0]
        assert (row["status"], attempt["status"]) == ("interrupted", "interrupted")
        assert (attempt["usage_source"], attempt["charged_nano"]) == ("estimated", 1000)
        assert (row["ended_at"], row["http_status"]) == (books.clock.at, None)
        account = await books.account()
        assert (account["reserved_nano"], account["in_flight"]) == (0, 0)


async def test_the_file_is_its_owners_alone_and_closes_clean(sqlite_url: str) -> None:
    file = file_of(sqlite_url)
    async with Books(sqlite_url):
        assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == ["gateway.db", "gateway.db.lock"]


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:///:memory:", "sqlite:///folder/"])
def test_a_url_without_a_file(url: str) -> None:
    with pytest.raises(StoreError, match=r"gateway\.db"):
        connect(StoreSettings(url=url))


def test_a_url_of_another_database() -> None:
    with pytest.raises(StoreError, match="postgresql://"):
        connect(StoreSettings(url="mysql://u:secret@h/db"))


async def test_a_file_that_is_no_database(sqlite_url: str) -> None:
    file_of(sqlite_url).write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreError, match="not a database"):
        await Books(sqlite_url).__aenter__()


def test_a_file_that_is_no_database_is_let_go(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_of(sqlite_url).write_bytes(b"not a database, but long enough to be looked at" * 100)
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def recorded(*args: Any, **options: Any) -> sqlite3.Connection:
        made.append(connect(*args, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", recorded)
    with pytest.raises(sqlite3.DatabaseError):
        writer.connection(file_of(sqlite_url))
    (conn,) = made
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        conn.execute("SELECT 1")


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"\[store\] url"):
        await Books(f"sqlite:///{tmp_path}/none/gateway.db").__aenter__()


@contextmanager
def full(books: Books) -> Iterator[None]:
    """No page more: what SQLite does when the disk is full."""
    conn = books.store._file._writer._conn
    (count,) = conn.execute("PRAGMA page_count").fetchone()
    conn.execute(f"PRAGMA max_page_count = {count}")
    try:
        yield
    finally:
        conn.execute("PRAGMA max_page_count = 1000000")


async def _until_full(books: Books) -> None:
    for _ in range(500):
        await books.open(end_user="x" * 500)
    raise AssertionError("the file never filled up")


async def test_a_full_disk_refuses_calls_and_loses_no_settlement(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE", 0.1)
    monkeypatch.setattr(writer, "PAUSE", 0.02)
    async with Books(sqlite_url) as books:
        tickets = [await books.open() for _ in range(20)]
        with full(books):
            with pytest.raises(Fault) as fault:
                await _until_full(books)
            assert fault.value.kind == "store_unavailable"
            assert "SQLITE_FULL" in str(fault.value.detail)
            long = {"upstream_request_id": "y" * 3000}
            settling = [books.settle(ticket, **long) for ticket in tickets]
            told = await asyncio.gather(*settling, return_exceptions=True)
            assert {type(answer) for answer in told} == {Fault}
            assert (await books.shown(tickets[0]))["status"] == "open", "they wait for room"
        await asyncio.sleep(0.1)
        await books.store.ready()
        for ticket in tickets:
            assert (await books.shown(ticket))["status"] == "completed"


async def test_another_process_that_writes_long_only_delays(sqlite_url: str) -> None:
    """Case A06: the database is locked during a flush."""
    async with Books(sqlite_url) as books:
        ticket = await books.open()
        with closing(sqlite3.connect(file_of(sqlite_url), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            settling = asyncio.create_task(books.settle(ticket))
            await asyncio.sleep(0.3)
            assert not settling.done()
            other.execute("COMMIT")
        await settling
        assert (await books.shown(ticket))["status"] == "completed"


async def test_not_ready_while_locked_and_ready_again(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case F03."""
    monkeypatch.setattr(writer, "BUSY", 0.05)
    async with Books(sqlite_url) as books:
        with closing(sqlite3.connect(file_of(sqlite_url), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Fault) as fault:
                await books.store.ready()
            assert fault.value.kind == "store_unavailable"
            other.execute("COMMIT")
        await books.store.ready()


async def test_the_queue_has_an_end(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "QUEUE", 3)
    async with Books(sqlite_url) as books:
        ticket = await books.open()
        with closing(sqlite3.connect(file_of(sqlite_url), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            first = asyncio.create_task(books.open())
            await asyncio.sleep(0.1)  # the writer has taken it and waits for the lock
            waiting = [asyncio.create_task(books.open()) for _ in range(5)]
            settling = asyncio.create_task(books.settle(ticket))
            await asyncio.sleep(0)
            other.execute("COMMIT")
        await asyncio.gather(first, settling)
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert [isinstance(answer, Fault) for answer in answers] == [False] * 3 + [True] * 2


async def test_reads_do_not_wait_for_writes(sqlite_url: str) -> None:
    async with Books(sqlite_url) as books:
        ticket = await books.open()
        with closing(sqlite3.connect(file_of(sqlite_url), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            began = time.perf_counter()
            assert (await books.shown(ticket))["status"] == "open"
            assert time.perf_counter() - began < 4, "a writer would wait for 5 s"
            other.execute("COMMIT")


@asynccontextmanager
async def counted(url: str) -> AsyncIterator[tuple[Any, list[int]]]:
    """A store, and how many entries each of its groups had."""
    told: list[int] = []
    store = connect(StoreSettings(url=url), committed=lambda entries, seconds: told.append(entries))
    await store.open()
    told.clear()
    try:
        yield store, told
    finally:
        await store.close()


def entered(store: Any) -> asyncio.Future[Any]:
    """A job that writes next to nothing."""
    future: asyncio.Future[Any] = store._db.write(store.probe, None, "normal")
    return future


async def test_groups_are_told_and_keys_are_written_in_full(sqlite_url: str) -> None:
    async with counted(sqlite_url) as (store, told):
        await store.ready()
        assert store._file._writer._synchronous == "normal"
        await store.add_key(KeyRow("key_9", "x", b"9" * 32, "caller", "default", 1.0))
        assert store._file._writer._synchronous == "full"
        await asyncio.gather(*(entered(store) for _ in range(50)))
        assert store._file._writer._synchronous == "normal"
    assert sum(told) == 52
    assert len(told) < 30, "what waits together is written together"


async def test_what_comes_in_turn_is_written_as_one_group(sqlite_url: str) -> None:
    """A job in each turn of the event loop, and then those that come while the thread writes."""
    at_work, go_on = threading.Event(), threading.Event()

    def slow(conn: sqlite3.Connection, entries: Sequence[None]) -> Sequence[None]:
        at_work.set()
        go_on.wait(60)
        return entries

    async with counted(sqlite_url) as (store, told):
        jobs = []
        for _ in range(5):
            jobs.append(entered(store))
            await asyncio.sleep(0)
            time.sleep(0.01)  # noqa: ASYNC251  a long turn: the thread would have its time
        await asyncio.gather(*jobs)
        assert told == [5]
        jobs = [store._db.write(slow, None, "normal")]
        await asyncio.to_thread(at_work.wait)
        for _ in range(writer.ENOUGH + 2):
            jobs.append(entered(store))
            await asyncio.sleep(0.001)
        go_on.set()
        await asyncio.gather(*jobs)
        assert told == [5, 1, writer.ENOUGH + 2]


async def test_a_busy_event_loop_does_not_keep_jobs_waiting(sqlite_url: str) -> None:
    """Every turn brings another job: the thread is woken before they end."""
    async with counted(sqlite_url) as (store, told):
        jobs = []
        while not told:
            jobs.append(entered(store))
            await asyncio.sleep(0)
            assert len(jobs) < 10_000, "nothing is written as long as more comes"
        await asyncio.gather(*jobs)
    assert sum(told) == len(jobs)
