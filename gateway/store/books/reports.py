"""What an administrator reads of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.store import statements, usagequery
from gateway.store.base import UsageQuery
from gateway.store.books import Database
from gateway.store.rows import readable


class ReportsBook:
    """See :class:`gateway.store.base.Store`."""

    _db: Database

    async def request(self, request_id: str, project: str | None) -> Mapping[str, Any] | None:
        found = await self._db.read(statements.REQUEST, (request_id,))
        if not found or (project is not None and found[0]["project"] != project):
            return None
        row = readable(found[0])
        attempts = await self._db.read(statements.ATTEMPTS, (row.pop("seq"),))
        for attempt in attempts:
            del attempt["request_seq"]
        row["attempts"] = [readable(attempt) for attempt in attempts]
        return row

    async def usage(self, query: UsageQuery) -> list[Mapping[str, Any]]:
        statement, values = usagequery.statement(query)
        return [usagequery.shown(row) for row in await self._db.read(statement, values)]
