"""The ledger in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from math import inf

from gateway.store.books.ledger import LedgerBook
from gateway.store.sqlite.calls import RENEW, listed
from gateway.store.sqlite.clerk import Clerk


def _renew(
    conn: sqlite3.Connection, entries: Sequence[tuple[tuple[str, ...], float]]
) -> list[None]:
    for ids, lease_until in entries:
        for statement in RENEW:
            conn.execute(statement, (lease_until, listed(ids)))
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
