"""Housekeeping in PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from gateway.store import statements as s
from gateway.store.books.upkeep import UpkeepBook
from gateway.store.periods import day_of
from gateway.store.postgres.driver import Connection
from gateway.store.retention import CHUNK
from gateway.store.sql import numbered


async def _probe(conn: Connection, entries: Sequence[None]) -> Sequence[None]:
    await conn.execute(numbered(s.COUNT), "probe")
    return entries


def _each(
    delete: Callable[[Connection, Any], Awaitable[int]],
) -> Callable[[Connection, Sequence[Any]], Awaitable[list[int]]]:
    """An ``apply`` that deletes for one entry after another."""

    async def apply(conn: Connection, entries: Sequence[Any]) -> list[int]:
        return [await delete(conn, entry) for entry in entries]

    return apply


async def _found(conn: Connection, entry: tuple[str, Sequence[Any]]) -> int:
    query, values = entry
    seqs = [tuple(row) for row in await conn.fetch(numbered(query), *values)]
    await conn.executemany(numbered(s.DELETE_ATTEMPTS), seqs)
    await conn.executemany(numbered(s.DELETE_REQUEST), seqs)
    return len(seqs)


async def _old_requests(conn: Connection, before: float) -> int:
    return await _found(conn, (s.OLD_REQUESTS, (before, before, CHUNK)))


async def _old_rollups(conn: Connection, before: float) -> int:
    days = await conn.fetch(numbered(s.OLD_DAYS), day_of(before), CHUNK)
    await conn.executemany(numbered(s.DELETE_DAY), [tuple(day) for day in days])
    return len(days)


async def _sums(conn: Connection, project: str) -> int:
    deleted = await conn.fetch(f"{numbered(s.DELETE_PROJECT_SUMS)} RETURNING day", project)
    return len(deleted)


class PostgresUpkeep(UpkeepBook):
    """:class:`UpkeepBook` in PostgreSQL."""

    probe = staticmethod(_probe)
    sweeps = {"requests": _each(_old_requests), "rollups": _each(_old_rollups)}  # noqa: RUF012
    delete_found = staticmethod(_each(_found))
    delete_sums = staticmethod(_each(_sums))
