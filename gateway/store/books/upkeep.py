"""Housekeeping: readiness, retention, deletion on request. All in small transactions, so that
no call waits long behind them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import Any

from gateway.store import statements
from gateway.store.books import Apply, Database
from gateway.store.jobs import Durability
from gateway.store.retention import CHUNK, cutoffs


class UpkeepBook:
    """See :class:`gateway.store.base.Store`."""

    _db: Database

    probe: Apply
    """Writes something that nobody reads."""
    sweeps: Mapping[str, Apply]
    """By table of ``retention.DAYS``: takes a time, deletes at most ``CHUNK`` older calls or days,
    answers their number."""
    delete_found: Apply
    """Takes a query for the ``seq`` of calls and its values; deletes them, answers a number."""
    delete_sums: Apply
    """Takes a project; deletes its roll-ups, answers a number."""

    async def ready(self) -> None:
        await self._db.write(self.probe, None, "normal")

    async def sweep(self, now: float, retention: Mapping[str, float]) -> Mapping[str, int]:
        return {
            table: await self._all(self.sweeps[table], before, "normal")
            for table, before in cutoffs(now, retention).items()
            if not isinf(before)
        }

    async def forget(self, *, project: str | None = None, end_user: str | None = None) -> int:
        given = {"project": project, "end_user": end_user}
        where = {name: value for name, value in given.items() if value is not None}
        if not where:
            return 0
        conditions = [statements.CLOSED, *(f"{name} = ?" for name in where)]
        find = f"{' AND '.join(conditions)} LIMIT {CHUNK}"
        deleted = await self._all(self.delete_found, (find, tuple(where.values())), "full")
        if end_user is None:
            await self._db.write(self.delete_sums, project, "full")
        return deleted

    async def _all(self, apply: Apply, entry: Any, durability: Durability) -> int:
        """Repeat until a chunk is not full."""
        total = 0
        while True:
            deleted: int = await self._db.write(apply, entry, durability)
            total += deleted
            if deleted < CHUNK:
                return total
