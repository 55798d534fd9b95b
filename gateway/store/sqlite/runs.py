"""Runs in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from gateway.store.books.runs import RunsBook


def _look(conn: sqlite3.Connection, entries: Sequence[None]) -> list[int]:
    """SQLite counts what other connections commit, for whoever asks on his own."""
    (version,) = conn.execute("PRAGMA data_version").fetchone()
    return [version] * len(entries)


class SqliteRuns(RunsBook):
    """:class:`RunsBook` in SQLite."""

    look = staticmethod(_look)
