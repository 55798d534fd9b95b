"""Housekeeping in PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from gateway.store import statements as s
from gateway.store.books.upkeep import Clearing, UpkeepBook
from gateway.store.postgres.calls import DELETE_CALL
from gateway.store.postgres.driver import Connection
from gateway.store.sql import numbered

PROBE = """UPDATE counters SET value = value + 1 WHERE name =
    (SELECT name FROM counters WHERE name = $1 FOR UPDATE SKIP LOCKED)"""
"""Another replica's probe is not waited for: it may have stopped in the middle of it. That the
database takes no writes at all is told either way."""


async def _probe(conn: Connection, entries: Sequence[None]) -> Sequence[None]:
    await conn.execute(PROBE, "probe")
    return entries


def _each(
    delete: Callable[[Connection, Any], Awaitable[int]],
) -> Callable[[Connection, Sequence[Any]], Awaitable[list[int]]]:
    """An ``apply`` that deletes for one entry after another."""

    async def apply(conn: Connection, entries: Sequence[Any]) -> list[int]:
        return [await delete(conn, entry) for entry in entries]

    return apply


async def _clear(conn: Connection, clearing: Clearing) -> int:
    keys = [tuple(row) for row in await conn.fetch(numbered(clearing.find), *clearing.values)]
    for statement in clearing.deletes:
        await conn.executemany(numbered(statement), keys)
    return len(keys)


async def _sums(conn: Connection, project: str) -> int:
    deleted = await conn.fetch(f"{numbered(s.DELETE_PROJECT_SUMS)} RETURNING day", project)
    return len(deleted)


class PostgresUpkeep(UpkeepBook):
    """:class:`UpkeepBook` in PostgreSQL."""

    delete_call = DELETE_CALL

    probe = staticmethod(_probe)
    clear = staticmethod(_each(_clear))
    delete_sums = staticmethod(_each(_sums))
