"""The keys in SQLite. Always written in full: a revoked key stays revoked after a power cut."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from gateway.store import keyrows, sql
from gateway.store.base import KeyRow
from gateway.store.sqlite.database import Database

_ADD = sql.insert("keys", keyrows.KEY)
_REVOKE = "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
_ALL = f"SELECT {', '.join(keyrows.KEY)} FROM keys ORDER BY created_at, id"  # noqa: S608
_CHANGED = "UPDATE counters SET value = value + 1 WHERE name = 'keys_version'"
_VERSION = "SELECT value FROM counters WHERE name = 'keys_version'"


class KeysBook:
    """Keys; see :class:`gateway.store.base.Store`."""

    _db: Database

    async def add_key(self, row: KeyRow) -> None:
        await self._db.write(_add, row, "full")

    async def keys(self) -> list[KeyRow]:
        return [keyrows.key_row(row) for row in await self._db.read(_ALL)]

    async def revoke_key(self, key_id: str, at: float) -> bool:
        revoked: bool = await self._db.write(_revoke, (key_id, at), "full")
        return revoked

    async def keys_version(self) -> int:
        (row,) = await self._db.read(_VERSION)
        return int(row["value"])


def _add(conn: sqlite3.Connection, entries: Sequence[KeyRow]) -> list[None]:
    conn.executemany(_ADD, [keyrows.key_values(row) for row in entries])
    conn.execute(_CHANGED)
    return [None] * len(entries)


def _revoke(conn: sqlite3.Connection, entries: Sequence[tuple[str, float]]) -> list[bool]:
    answers = [conn.execute(_REVOKE, (at, key_id)).rowcount > 0 for key_id, at in entries]
    if any(answers):
        conn.execute(_CHANGED)
    return answers
