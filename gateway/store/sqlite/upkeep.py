"""Housekeeping in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from gateway.store import statements as s
from gateway.store.books.upkeep import UpkeepBook
from gateway.store.periods import day_of
from gateway.store.retention import CHUNK


def _probe(conn: sqlite3.Connection, entries: Sequence[None]) -> Sequence[None]:
    conn.execute(s.COUNT, ("probe",))
    return entries


def _each(
    delete: Callable[[sqlite3.Connection, Any], int],
) -> Callable[[sqlite3.Connection, Sequence[Any]], list[int]]:
    """An ``apply`` that deletes for one entry after another."""

    def apply(conn: sqlite3.Connection, entries: Sequence[Any]) -> list[int]:
        return [delete(conn, entry) for entry in entries]

    return apply


def _found(conn: sqlite3.Connection, entry: tuple[str, Sequence[Any]]) -> int:
    query, values = entry
    seqs = conn.execute(query, values).fetchall()
    conn.executemany(s.DELETE_ATTEMPTS, seqs)
    conn.executemany(s.DELETE_REQUEST, seqs)
    return len(seqs)


def _old_requests(conn: sqlite3.Connection, before: float) -> int:
    return _found(conn, (s.OLD_REQUESTS, (before, before, CHUNK)))


def _old_rollups(conn: sqlite3.Connection, before: float) -> int:
    days = conn.execute(s.OLD_DAYS, (day_of(before), CHUNK)).fetchall()
    conn.executemany(s.DELETE_DAY, days)
    return len(days)


def _sums(conn: sqlite3.Connection, project: str) -> int:
    return conn.execute(s.DELETE_PROJECT_SUMS, (project,)).rowcount


class SqliteUpkeep(UpkeepBook):
    """:class:`UpkeepBook` in SQLite."""

    probe = staticmethod(_probe)
    sweeps = {"requests": _each(_old_requests), "rollups": _each(_old_rollups)}  # noqa: RUF012
    delete_found = staticmethod(_each(_found))
    delete_sums = staticmethod(_each(_sums))
