"""The ledger in SQLite: load, let :class:`Batch` decide, write; all within one group."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from math import inf
from typing import Any

from adapters.canonical.faults import Fault
from adapters.wire.json import dumps
from gateway.store import statements as s
from gateway.store.base import Opened, RequestEnd
from gateway.store.batch import Batch, Writes, batches
from gateway.store.books.ledger import LedgerBook
from gateway.store.entries import Attempt, Call, Close, Entry, interrupted
from gateway.store.limits import Account

_IDS = "IN (SELECT value FROM json_each(?))"
LOAD_ATTEMPTS = f"{s.OPEN_ATTEMPTS} a.id {_IDS}"
LOAD_LAPSED = f"{s.OPEN_ATTEMPTS} a.lease_until < ?"
LOAD_CALLS = f"{s.CALLS} r.id {_IDS}"
LOAD_ACCOUNTS = f"{s.ACCOUNTS} key_id {_IDS}"
KEEP_CALLS = f"""UPDATE requests SET lease_until = ? WHERE seq IN
    (SELECT request_seq FROM attempts WHERE status = 'open' AND id {_IDS})"""  # noqa: S608


def _enter(conn: sqlite3.Connection, entries: Sequence[Entry]) -> list[Opened | Fault | None]:
    """Enter a group's entries in the ledger."""
    results: list[Opened | Fault | None] = []
    for part in batches(entries):
        batch = Batch(part)
        attempts = [Attempt.loaded(row) for row in _rows(conn, LOAD_ATTEMPTS, batch.attempt_ids)]
        calls = _rows(conn, LOAD_CALLS, batch.request_ids)
        batch.load(
            attempts, [Call._make(row[1:]) for row in calls if row[0]], {r[1] for r in calls}
        )
        accounts = {key_id: Account(key_id) for key_id in batch.key_ids}
        for row in _rows(conn, LOAD_ACCOUNTS, batch.key_ids):
            accounts[row[0]] = Account.loaded(row)
        results += batch.decide(accounts)
        _write(conn, batch.writes)
    return results


def _write(conn: sqlite3.Connection, writes: Writes) -> None:
    for statement, values in writes.statements():
        conn.executemany(statement, values)


def _renew(
    conn: sqlite3.Connection, entries: Sequence[tuple[tuple[str, ...], float]]
) -> list[None]:
    for ids, lease_until in entries:
        conn.executemany(s.RENEW, [(lease_until, attempt_id) for attempt_id in ids])
        conn.execute(KEEP_CALLS, (lease_until, _list(ids)))
    return [None] * len(entries)


def _settle_lapsed(conn: sqlite3.Connection, entries: Sequence[tuple[float, float]]) -> list[int]:
    """Settle what nobody settled in time; the answers count attempts and calls."""
    answers = []
    end = RequestEnd("interrupted", 0, fault="interrupted")
    for before, at in entries:
        lapsed = [Attempt.loaded(row) for row in conn.execute(LOAD_LAPSED, (before,))]
        _enter(conn, [interrupted(attempt, at) for attempt in lapsed])
        left = conn.execute(s.LEFT_CALLS, (before,)).fetchall()
        _enter(conn, [Close(request_id, at, end) for (request_id,) in left])
        answers.append(len(lapsed) + len(left))
    return answers


def _rows(conn: sqlite3.Connection, statement: str, ids: Sequence[str]) -> list[tuple[Any, ...]]:
    return conn.execute(statement, (_list(ids),)).fetchall() if ids else []


def _list(ids: Sequence[str]) -> str:
    return dumps(ids).decode()


class SqliteLedger(LedgerBook):
    """:class:`LedgerBook` in SQLite."""

    enter = staticmethod(_enter)
    renew_leases = staticmethod(_renew)
    settle_lapsed = staticmethod(_settle_lapsed)

    async def settle_orphans(self) -> None:
        """Settle all that is open, whatever its lease: the lock proves that whoever opened it
        is dead."""
        entry = (inf, self._clock.wall())
        await self._db.write(self.settle_lapsed, entry, self._durability)
