"""The ledger in PostgreSQL: lock and load, let :class:`Batch` decide, write; in one transaction.

Every replica locks in the same order: attempts, then calls, then accounts by key. Only lapsed
leases are ever touched by two replicas, and those are skipped while another has them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from adapters.canonical.faults import Fault
from gateway.store import statements as s
from gateway.store.base import Rates, RequestEnd, RequestRow
from gateway.store.batch import batches
from gateway.store.books.ledger import LedgerBook
from gateway.store.entries import Attempt, Call, Close, Entry, interrupted
from gateway.store.limits import Account
from gateway.store.postgres.calls import (
    KEEP_CALLS,
    LOAD_ATTEMPTS,
    LOAD_CALLS,
    LOAD_LAPSED,
    LOAD_LEFT,
    RENEW,
    statements,
)
from gateway.store.postgres.database import Database
from gateway.store.postgres.driver import Connection
from gateway.store.rows import ACCOUNT
from gateway.store.sql import insert, numbered

SETTLED_AFTER = 15.0
"""Seconds of a standing connection before this replica settles others' lapsed leases: an outage
of the database lets everybody's lapse at once, and the living renew first."""

LOAD_ACCOUNTS = f"{s.ACCOUNTS} key_id = ANY($1) ORDER BY key_id FOR UPDATE"
NEW_ACCOUNT = f"{numbered(insert('accounts', ACCOUNT))} ON CONFLICT (key_id) DO NOTHING"


async def _enter(conn: Connection, entries: Sequence[Entry]) -> list[Rates | Fault | None]:
    """Enter a group's entries in the ledger."""
    results: list[Rates | Fault | None] = []
    for batch in batches(entries):
        attempts = await _rows(conn, LOAD_ATTEMPTS, [end.attempt_id for end in batch.settlements])
        rows = await _rows(conn, LOAD_CALLS, batch.request_ids)
        calls = [(is_open, Call(RequestRow._make(row), slot)) for is_open, slot, *row in rows]
        batch.load(
            {attempt.row.id: attempt for attempt in map(Attempt.loaded, attempts)},
            {call.row.id: call for is_open, call in calls if is_open},
            [call.row.id for _, call in calls],
        )
        results += batch.decide(await _accounts(conn, sorted(batch.key_ids)))
        for statement, values in statements(batch.writes):
            await conn.executemany(numbered(statement), values)
    return results


async def _accounts(conn: Connection, key_ids: list[str]) -> dict[str, Account]:
    """The accounts, locked; a key's first use makes its row, so that there is one to lock."""
    rows = await _rows(conn, LOAD_ACCOUNTS, key_ids)
    if len(rows) < len(key_ids):
        missing = set(key_ids) - {row[0] for row in rows}
        new = [Account(key_id).values() for key_id in sorted(missing)]
        await conn.executemany(NEW_ACCOUNT, new)
        rows = await _rows(conn, LOAD_ACCOUNTS, key_ids)
    return {row[0]: Account.loaded(row) for row in rows}


async def _renew(conn: Connection, entries: Sequence[tuple[tuple[str, ...], float]]) -> list[None]:
    for ids, lease_until in entries:
        await conn.execute(RENEW, lease_until, ids)
        await conn.execute(KEEP_CALLS, lease_until, ids)
    return [None] * len(entries)


async def _settle_lapsed(conn: Connection, entries: Sequence[tuple[float, float]]) -> list[int]:
    """Settle what nobody settled in time; the answers count attempts and calls."""
    answers = []
    end = RequestEnd("interrupted", fault="interrupted")
    for before, at in entries:
        lapsed = [Attempt.loaded(tuple(r)) for r in await conn.fetch(LOAD_LAPSED, before)]
        await _enter(conn, [interrupted(attempt, at) for attempt in lapsed])
        left = await conn.fetch(LOAD_LEFT, before)
        await _enter(conn, [Close(request_id, at, end) for (request_id,) in left])
        answers.append(len(lapsed) + len(left))
    return answers


async def _rows(conn: Connection, statement: str, ids: Sequence[str]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await conn.fetch(statement, ids)] if ids else []


class PostgresLedger(LedgerBook):
    """:class:`LedgerBook` in PostgreSQL."""

    _server: Database
    settled_after: float = SETTLED_AFTER

    enter = staticmethod(_enter)
    renew_leases = staticmethod(_renew)
    settle_lapsed = staticmethod(_settle_lapsed)

    async def expire(self, now: float) -> int:
        since = self._server.connected_at
        if since is None or time.monotonic() - since < self.settled_after:
            return 0
        return await super().expire(now)
