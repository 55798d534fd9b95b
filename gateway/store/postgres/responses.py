"""Kept responses and conversations in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.store.books.responses import ResponsesBook, Script
from gateway.store.postgres.driver import Connection
from gateway.store.sql import numbered


async def _run(conn: Connection, entries: Sequence[Script]) -> list[bool]:
    return [await _run_one(conn, script) for script in entries]


async def _run_one(conn: Connection, script: Script) -> bool:
    (first, (values,)), *rest = script
    if (await conn.execute(numbered(first), *values)).endswith(" 0"):
        return False
    for statement, rows in rest:
        await conn.executemany(numbered(statement), rows)
    return True


class PostgresResponses(ResponsesBook):
    """:class:`ResponsesBook` in PostgreSQL."""

    run_script = staticmethod(_run)
