"""Kept responses and conversations in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from gateway.store.books.responses import ResponsesBook, Script


def _run(conn: sqlite3.Connection, entries: Sequence[Script]) -> list[bool]:
    return [_run_one(conn, script) for script in entries]


def _run_one(conn: sqlite3.Connection, script: Script) -> bool:
    (first, (values,)), *rest = script
    if not conn.execute(first, values).rowcount:
        return False
    for statement, rows in rest:
        conn.executemany(statement, rows)
    return True


class SqliteResponses(ResponsesBook):
    """:class:`ResponsesBook` in SQLite."""

    run_script = staticmethod(_run)
