"""Housekeeping in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from gateway.store import statements as s
from gateway.store.books.upkeep import Clearing, UpkeepBook
from gateway.store.sqlite.calls import DELETE_CALL


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


def _clear(conn: sqlite3.Connection, clearing: Clearing) -> int:
    keys = conn.execute(clearing.find, clearing.values).fetchall()
    for statement in clearing.deletes:
        conn.executemany(statement, keys)
    return len(keys)


def _sums(conn: sqlite3.Connection, project: str) -> int:
    return conn.execute(s.DELETE_PROJECT_SUMS, (project,)).rowcount


class SqliteUpkeep(UpkeepBook):
    """:class:`UpkeepBook` in SQLite."""

    delete_call = DELETE_CALL

    probe = staticmethod(_probe)
    clear = staticmethod(_each(_clear))
    delete_sums = staticmethod(_each(_sums))
