"""The ledger in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from math import inf

from gateway.store import statements as s
from gateway.store.books.ledger import LedgerBook
from gateway.store.sqlite.clerk import IN, Clerk, listed

KEEP_CALLS = f"""UPDATE requests SET lease_until = ? WHERE seq IN
    (SELECT request_seq FROM attempts WHERE status = 'open' AND id {IN})"""  # noqa: S608


def _renew(
    conn: sqlite3.Connection, entries: Sequence[tuple[tuple[str, ...], float]]
) -> list[None]:
    for ids, lease_until in entries:
        conn.executemany(s.RENEW, [(lease_until, attempt_id) for attempt_id in ids])
        conn.execute(KEEP_CALLS, (lease_until, listed(ids)))
    return [None] * len(entries)


class SqliteLedger(LedgerBook):
    """:class:`LedgerBook` in SQLite."""

    renew_leases = staticmethod(_renew)

    def __init__(self, clerk: Clerk) -> None:
        self.enter = clerk.enter
        self.settle_lapsed = clerk.settle_lapsed

    async def settle_orphans(self) -> None:
        """Settle all that is open, whatever its lease: the lock proves that whoever opened it
        is dead."""
        entry = (inf, self._clock.wall())
        await self._db.write(self.settle_lapsed, entry, self._durability)
