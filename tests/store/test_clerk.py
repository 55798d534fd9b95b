"""What the clerk remembers is what the tables say: he writes the same with and without it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import Limits
from gateway.store.base import Opening, RequestEnd, RequestRow, Settlement
from gateway.store.batch import Batch, _cut
from gateway.store.entries import Close, Entry
from gateway.store.migrations import migrations
from gateway.store.sqlite import clerk as clerks
from gateway.store.sqlite.clerk import Clerk
from tests.store.booking import Books

TABLES = {
    "requests": "seq",
    "attempts": "request_seq, number",
    "accounts": "key_id",
    "rollups": "day, alias, key_id, provider",
}
LIMITS = Limits(nano_per_day=9_000, concurrent=3, rpm=12, tpm=2_000)
ENDS = {
    "done": {"usage_source": "provider", "input_tokens": 10, "output_tokens": 7, "cost_nano": 500},
    "dear": {"usage_source": "provider", "input_tokens": 1, "output_tokens": 9, "cost_nano": 5_000},
    "lost": {"usage_source": "unknown", "cost_nano": None},
    "free": {"usage_source": "unknown", "cost_nano": 0},
    "wrong": {"usage_source": "provider", "input_tokens": -4, "output_tokens": 1, "cost_nano": 3},
}

OPENS = st.tuples(st.just("open"), st.integers(0, 1), st.sampled_from([0, 700, 3_000]))
RETRIES = st.tuples(st.just("retry"), st.integers(0, 6), st.sampled_from([0, 700]))
SETTLES = st.tuples(
    st.sampled_from(["settle", "give up"]), st.integers(0, 6), st.sampled_from([*ENDS])
)
CLOSES = st.tuples(st.sampled_from(["close", "refuse"]), st.integers(0, 6), st.just(0))
TIMES = st.tuples(st.just("wait"), st.sampled_from([0.4, 7, 61, 90_000, -30, -90_000]), st.just(0))
LAPSES = st.tuples(st.just("lapse"), st.integers(0, 200), st.just(0))
STEPS = st.one_of(OPENS, OPENS, RETRIES, SETTLES, SETTLES, CLOSES, TIMES, LAPSES)


class Story:
    """Makes entries of steps; remembers only which calls and attempts there are."""

    def __init__(self) -> None:
        self.books = Books("sqlite:///none.db")
        self.opens: list[Opening] = []
        self.calls: list[RequestRow] = []

    def entry(self, kind: str, which: int, what: Any) -> Entry | None:
        """``None`` where the step speaks of what is not there."""
        if kind == "open":
            call = self.books.request(key_id=f"key_{which}", alias=f"alias_{which}")
            self.calls.append(call)
            return self._open(call, call, 1, what)
        if kind == "refuse":
            call = self.books.request()
            return Close(call.id, self.books.clock.at, RequestEnd("failed", 429), call)
        if not self.opens:
            return None
        before = self.opens[-1 - which % len(self.opens)]
        if kind == "retry":
            call = next(call for call in self.calls if call.id == before.row.request_id)
            return self._open(call, None, before.row.number + 1, what)
        if kind == "close":
            return Close(before.row.request_id, self.books.clock.at, RequestEnd("failed", 503))
        return Settlement(
            attempt_id=before.row.id,
            request_id=before.row.request_id,
            ended_at=self.books.clock.at,
            status="completed",
            request=RequestEnd("completed", 200) if kind == "settle" else None,
            **ENDS[what],
        )

    def _open(
        self, call: RequestRow, request: RequestRow | None, number: int, nano: int
    ) -> Opening:
        row = self.books.attempt(call.id, number=number, reserved_nano=nano)
        self.opens.append(self.books.opening(request, row, LIMITS, call.key_id))
        return self.opens[-1]


@contextmanager
def ledger() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        for step in migrations("sqlite"):
            conn.executescript(step.sql)
        yield conn


def rows(conn: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    return {
        table: conn.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
        for table, order in TABLES.items()
    }


def said(answers: Sequence[Any]) -> list[Any]:
    return [(a.kind, a.message, a.data) if isinstance(a, Fault) else a for a in answers]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(STEPS, min_size=1, max_size=6), min_size=1, max_size=10))
def test_he_decides_and_writes_the_same_without_his_memory(
    groups: list[list[tuple[str, Any, Any]]],
) -> None:
    story, knows, asks = Story(), Clerk(), Clerk()
    with ledger() as one, ledger() as other:
        for group in groups:
            entries: list[Entry] = []
            for kind, which, what in group:
                if kind == "wait":
                    story.books.clock.at += which
                elif kind == "lapse":
                    lapse = [(story.books.clock.at + which, story.books.clock.at)]
                    asks.forget()
                    assert knows.settle_lapsed(one, lapse) == asks.settle_lapsed(other, lapse)
                elif (entry := story.entry(kind, which, what)) is not None:
                    entries.append(entry)
            if Batch(entries).stands_alone():
                assert list(_cut(entries)) == [entries]
            asks.forget()
            # An attempt of an unknown call fails the whole group, with and without.
            told = [_entered(knows, one, entries), _entered(asks, other, entries)]
            assert told[0] == told[1]
            assert rows(one) == rows(other)


def _entered(clerk: Clerk, conn: sqlite3.Connection, entries: list[Entry]) -> Any:
    conn.execute("BEGIN")
    try:
        answers = said(clerk.enter(conn, entries))
    except sqlite3.IntegrityError as error:
        clerk.forget()
        conn.execute("ROLLBACK")
        return str(error)
    conn.execute("COMMIT")
    return answers


async def test_he_asks_only_for_what_he_can_not_know(sqlite_url: str) -> None:
    async with Books(sqlite_url) as books:
        asked: list[str] = []
        await books.settle(await books.open())
        books.store._file._writer._conn.set_trace_callback(asked.append)
        await books.settle(await books.open())
        assert [query for query in asked if query.lstrip().startswith("SELECT")] == []
        await books.settle(await books.again(await books.open()))
        assert [query for query in asked if query.lstrip().startswith("SELECT")] != []


async def test_what_another_process_writes_is_seen(sqlite_url: str) -> None:
    limits = Limits(nano_total=10_000)
    async with Books(sqlite_url) as books:
        ticket = await books.open(limits, nano=1_000)
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as other, other:
            other.execute("UPDATE accounts SET total_nano = 9500")
        with pytest.raises(Fault) as fault:
            await books.open(limits, nano=1_000)
        assert fault.value.kind == "budget_exceeded"
        await books.settle(ticket, cost_nano=100)
        assert (await books.account())["total_nano"] == 9_600


async def test_what_was_rolled_back_is_forgotten(sqlite_url: str) -> None:
    def broken(conn: sqlite3.Connection, entries: Sequence[None]) -> Sequence[None]:
        raise ValueError("a defect in another book")

    async def broken_book() -> None:
        await books.store._db.write(broken, None, "normal")

    limits = Limits(concurrent=3)
    async with Books(sqlite_url) as books:
        await books.open(limits)
        together = books.open(limits), broken_book(), books.open(limits)
        told = await asyncio.gather(*together, return_exceptions=True)
        assert [type(answer).__name__ for answer in told] == ["Ticket", "Fault", "Ticket"]
        account = await books.account()
        assert (account["in_flight"], account["reserved_nano"]) == (3, 3_000)


async def test_a_refusal_moves_no_day_on(sqlite_url: str) -> None:
    limits = Limits(nano_per_day=1_000)
    async with Books(sqlite_url) as books:
        await books.settle(await books.open(limits, nano=900), cost_nano=900)
        books.clock.at += 86_400
        with pytest.raises(Fault):
            await books.open(limits, nano=5_000)
        books.clock.at -= 86_400
        with pytest.raises(Fault):
            await books.open(limits, nano=900)


async def test_he_does_not_remember_everything(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clerks, "REMEMBERED", 5)
    async with Books(sqlite_url) as books:
        tickets = [await books.open(key_id=f"key_{number}") for number in range(20)]
        clerk: Clerk = books.store.enter.__self__
        assert max(len(clerk._accounts), len(clerk._attempts)) <= 6
        for ticket in tickets:
            await books.settle(ticket)
        spent = await books.sql("SELECT total_nano, reserved_nano, in_flight FROM accounts")
        assert [tuple(row.values()) for row in spent] == [(600, 0, 0)] * 20
