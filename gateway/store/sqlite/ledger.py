"""The ledger in SQLite: load, let :class:`Batch` decide, write; all within one group."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence

from adapters.canonical.clock import Clock
from adapters.canonical.faults import Fault
from adapters.wire.json import dumps
from gateway.settings.snapshot import Limits
from gateway.store import rows, sql
from gateway.store.base import (
    AttemptRow,
    Hold,
    Opened,
    RateState,
    RequestEnd,
    RequestRow,
    Settlement,
)
from gateway.store.batch import Batch, Writes, batches
from gateway.store.entries import (
    Attempt,
    Call,
    Close,
    Entry,
    Open,
    Settle,
    interrupted,
    never_sent,
)
from gateway.store.limits import Account
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.writer import Durability

_SEQ = "(SELECT seq FROM requests WHERE id = ?)"
_CALL = "r.id, r.at, r.project, r.key_id, r.key_name, r.alias, r.prompt, r.holds_slot"
_IDS = "(SELECT value FROM json_each(?))"
_JOINED = f"""
    SELECT a.id, a.number, a.at, a.day, a.provider, a.model, a.reserved_tokens, a.reserved_nano,
           r.status = 'open', {_CALL}
    FROM attempts AS a JOIN requests AS r ON r.seq = a.request_seq
    WHERE a.status = 'open' AND """  # noqa: S608

LOAD_ATTEMPTS = f"{_JOINED} a.id IN {_IDS}"
LOAD_EXPIRED = f"{_JOINED} a.lease_until < ?"
LOAD_CALLS = f"SELECT r.status = 'open', {_CALL} FROM requests AS r WHERE r.id IN {_IDS}"  # noqa: S608
LOAD_EXPIRED_CALLS = """
    SELECT id FROM requests AS r WHERE status = 'open' AND lease_until < ? AND NOT EXISTS
        (SELECT 1 FROM attempts AS a WHERE a.request_seq = r.seq AND a.status = 'open')"""
LOAD_ACCOUNTS = f"SELECT {', '.join(rows.ACCOUNT)} FROM accounts WHERE key_id IN {_IDS}"  # noqa: S608

ADD_REQUEST = sql.insert("requests", rows.REQUEST)
ADD_ATTEMPT = sql.insert("attempts", ["request_seq", *rows.ATTEMPT]).replace("(?,", f"({_SEQ},", 1)
SETTLE = f"""UPDATE attempts SET {sql.assignments(rows.ATTEMPT_END)}
    WHERE id = ? AND status = 'open'"""  # noqa: S608
CLOSE = f"""UPDATE requests SET {sql.assignments(rows.REQUEST_END)}
    WHERE id = ? AND status = 'open'"""  # noqa: S608
KEEP = "UPDATE requests SET lease_until = max(lease_until, ?) WHERE id = ? AND status = 'open'"
RENEW = f"UPDATE attempts SET lease_until = ? WHERE status = 'open' AND id IN {_IDS}"  # noqa: S608
RENEW_CALLS = f"""UPDATE requests SET lease_until = max(lease_until, ?) WHERE seq IN
    (SELECT request_seq FROM attempts WHERE status = 'open' AND id IN {_IDS})"""  # noqa: S608
ADD_ROLLUP = (
    sql.insert("rollups", [*rows.ROLLUP_KEY, "key_name", *rows.ROLLUP_SUMS])
    + f" ON CONFLICT ({', '.join(rows.ROLLUP_KEY)}) DO UPDATE SET key_name = excluded.key_name, "
    + sql.added("rollups", rows.ROLLUP_SUMS)
)
PUT_ACCOUNT = (
    sql.insert("accounts", rows.ACCOUNT)
    + f" ON CONFLICT (key_id) DO UPDATE SET {sql.replaced(rows.ACCOUNT[1:])}"
)


class LedgerBook:
    """Attempts, calls and what keys have used; see :class:`gateway.store.base.Store`."""

    _db: Database
    _clock: Clock
    _durability: Durability

    async def open_attempt(self, request: RequestRow | None, row: AttemptRow, hold: Hold) -> Opened:
        entry = Open(request, row, hold)
        try:
            opened: Opened = await self._db.write(_apply, entry, self._durability)
        except asyncio.CancelledError:
            # The row may be there by now, and nobody is left to settle it: the queue is in
            # order, so this settlement finds the row if it was written.
            unsent = never_sent(entry, self._clock.wall())
            self._db.write(_apply, unsent, self._durability, must=True)
            raise
        return opened

    async def settle_attempt(self, settlement: Settlement) -> None:
        await self._db.write(_apply, Settle(settlement), self._durability, must=True)

    async def record_refusal(self, request: RequestRow, end: RequestEnd) -> None:
        entry = Close(request.id, self._clock.wall(), end, request)
        await self._db.write(_apply, entry, self._durability, must=True)

    async def renew(self, attempt_ids: Sequence[str], lease_until: float) -> None:
        if attempt_ids:
            await self._db.write(_renew, (list(attempt_ids), lease_until), self._durability)

    async def expire(self, now: float) -> int:
        return await self._settle_lapsed(now, now)

    async def _settle_lapsed(self, lease_before: float, at: float) -> int:
        """Settle at ``at`` what has a lease that ends before ``lease_before``."""
        settled: int = await self._db.write(_expire, (lease_before, at), self._durability)
        return settled

    async def rates(self, key_id: str, limits: Limits, now: float) -> Mapping[str, RateState]:
        account = Account(key_id)
        for row in await self._db.read(LOAD_ACCOUNTS, (_list([key_id]),)):
            account = Account.loaded(list(row.values()))
        account.advance(now)
        return account.rates(limits, now)


def _apply(conn: sqlite3.Connection, entries: Sequence[Entry]) -> list[Opened | Fault | None]:
    """Enter a group's entries in the ledger."""
    results: list[Opened | Fault | None] = []
    for part in batches(entries):
        batch = Batch(part)
        attempts = [
            Attempt.loaded(tuple(row)) for row in _rows(conn, LOAD_ATTEMPTS, batch.attempt_ids)
        ]
        calls = _rows(conn, LOAD_CALLS, batch.request_ids)
        batch.load(
            attempts,
            [Call.loaded(tuple(row)[1:]) for row in calls if row[0]],
            {row["id"] for row in calls},
        )
        accounts = {key_id: Account(key_id) for key_id in batch.key_ids}
        for row in _rows(conn, LOAD_ACCOUNTS, batch.key_ids):
            accounts[row["key_id"]] = Account.loaded(tuple(row))
        results += batch.decide(accounts)
        _write(conn, batch.writes)
    return results


def _write(conn: sqlite3.Connection, writes: Writes) -> None:
    for statement, values in (
        (ADD_REQUEST, writes.requests),
        (ADD_ATTEMPT, writes.attempts),
        (SETTLE, writes.settled),
        (KEEP, writes.kept),
        (CLOSE, writes.closed),
        (ADD_ROLLUP, [(*k, r.key_name, *r.sums) for k, r in writes.rollups.items()]),
        (PUT_ACCOUNT, [account.values() for account in writes.accounts.values()]),
    ):
        if values:
            conn.executemany(statement, values)


def _renew(conn: sqlite3.Connection, entries: Sequence[tuple[list[str], float]]) -> list[None]:
    for ids, lease_until in entries:
        conn.execute(RENEW, (lease_until, _list(ids)))
        conn.execute(RENEW_CALLS, (lease_until, _list(ids)))
    return [None] * len(entries)


def _expire(conn: sqlite3.Connection, entries: Sequence[tuple[float, float]]) -> list[int]:
    """Settle what nobody settled in time; the answers count attempts and calls."""
    answers = []
    for before, at in entries:
        lapsed = [Attempt.loaded(tuple(row)) for row in conn.execute(LOAD_EXPIRED, (before,))]
        _apply(conn, [interrupted(attempt, at) for attempt in lapsed])
        left = [row["id"] for row in conn.execute(LOAD_EXPIRED_CALLS, (before,))]
        end = RequestEnd("interrupted", 0, fault="interrupted")
        _apply(conn, [Close(request_id, at, end) for request_id in left])
        answers.append(len(lapsed) + len(left))
    return answers


def _rows(conn: sqlite3.Connection, statement: str, ids: Sequence[str]) -> list[sqlite3.Row]:
    return conn.execute(statement, (_list(ids),)).fetchall() if ids else []


def _list(ids: Sequence[str]) -> str:
    return dumps(ids).decode()
