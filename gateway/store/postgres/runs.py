"""Runs in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.store.books.runs import RunsBook
from gateway.store.postgres.driver import Connection


async def _look(conn: Connection, entries: Sequence[None]) -> list[int]:
    """Where the server's log stands: it moves with whatever anybody writes."""
    rows = await conn.fetch("SELECT (pg_current_wal_lsn() - '0/0')::bigint AS version")
    return [rows[0]["version"]] * len(entries)


class PostgresRuns(RunsBook):
    """:class:`RunsBook` in PostgreSQL."""

    look = staticmethod(_look)
