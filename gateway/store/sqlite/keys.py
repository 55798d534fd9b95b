"""The keys in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from gateway.store import statements as s
from gateway.store.base import KeyRow
from gateway.store.books.keys import VERSION, KeysBook
from gateway.store.keyrows import key_values


def _add(conn: sqlite3.Connection, entries: Sequence[KeyRow]) -> list[bool]:
    answers = []
    for row in entries:
        free = conn.execute(s.KEY_NAMED, (row.name,)).fetchone() is None
        if free:
            conn.execute(s.ADD_KEY, key_values(row))
        answers.append(free)
    if any(answers):
        conn.execute(s.COUNT, (VERSION,))
    return answers


def _revoke(conn: sqlite3.Connection, entries: Sequence[tuple[str, float]]) -> list[bool]:
    answers = [conn.execute(s.REVOKE_KEY, (at, key_id)).rowcount > 0 for key_id, at in entries]
    if any(answers):
        conn.execute(s.COUNT, (VERSION,))
    return answers


class SqliteKeys(KeysBook):
    """:class:`KeysBook` in SQLite."""

    write_key = staticmethod(_add)
    write_revocation = staticmethod(_revoke)
