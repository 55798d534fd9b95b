"""What an administrator reads, and how old rows go, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from math import isinf
from pathlib import Path
from typing import Any

from gateway.store import usagequery
from gateway.store.base import UsageQuery
from gateway.store.periods import day_of
from gateway.store.retention import CHUNK, cutoffs
from gateway.store.rows import readable
from gateway.store.sqlite.database import Database

_REQUEST = "SELECT * FROM requests WHERE id = ?"
_ATTEMPTS = "SELECT * FROM attempts WHERE request_seq = ? ORDER BY number"
_PROBE = "UPDATE counters SET value = value + 1 WHERE name = 'probe'"

# Rows are in the order of their time, so the search stops at the first one to keep.
_OLD_REQUESTS = """SELECT seq FROM requests WHERE status != 'open' AND at < ?1 AND seq < coalesce(
    (SELECT seq FROM requests WHERE at >= ?1 ORDER BY seq LIMIT 1), 9223372036854775807)
    ORDER BY seq LIMIT ?2"""
_OLD_ROLLUPS = """SELECT day, project, key_id, alias, provider, model, prompt FROM rollups
    WHERE day < ?1 LIMIT ?2"""
_FORGOTTEN = """SELECT seq FROM requests WHERE status != 'open'
    AND (?1 IS NULL OR project = ?1) AND (?2 IS NULL OR end_user = ?2) LIMIT ?3"""


class ReportsBook:
    """Reading and housekeeping; see :class:`gateway.store.base.Store`."""

    _db: Database

    async def ready(self) -> None:
        await self._db.write(_probe, None, "normal")

    async def request(self, request_id: str, project: str | None) -> Mapping[str, Any] | None:
        found = await self._db.read(_REQUEST, (request_id,))
        if not found or (project is not None and found[0]["project"] != project):
            return None
        row = readable(found[0])
        attempts = await self._db.read(_ATTEMPTS, (row.pop("seq"),))
        row["attempts"] = [_shown(attempt) for attempt in attempts]
        return row

    async def usage(self, query: UsageQuery) -> list[Mapping[str, Any]]:
        statement, values = usagequery.statement(query)
        return [usagequery.shown(row) for row in await self._db.read(statement, values)]

    async def sweep(self, now: float, retention: Mapping[str, float]) -> Mapping[str, int]:
        deleted = {}
        for table, before in cutoffs(now, retention).items():
            if isinf(before):
                continue
            count = more = await self._db.write(_SWEEPS[table], before, "normal")
            while more >= CHUNK:
                more = await self._db.write(_SWEEPS[table], before, "normal")
                count += more
            deleted[table] = count
        return deleted

    async def forget(self, *, project: str | None = None, end_user: str | None = None) -> int:
        if project is None and end_user is None:
            return 0
        count = more = await self._db.write(_forget, (project, end_user), "full")
        while more >= CHUNK:
            more = await self._db.write(_forget, (project, end_user), "full")
            count += more
        return int(count)

    async def backup(self, path: str) -> None:
        await self._db.backup(Path(path))


def _shown(attempt: Mapping[str, Any]) -> dict[str, Any]:
    row = readable(attempt)
    del row["request_seq"]
    return row


def _probe(conn: sqlite3.Connection, entries: Sequence[None]) -> Sequence[None]:
    conn.execute(_PROBE)
    return entries


def _delete(conn: sqlite3.Connection, seqs: Sequence[tuple[int]]) -> int:
    conn.executemany("DELETE FROM attempts WHERE request_seq = ?", seqs)
    conn.executemany("DELETE FROM requests WHERE seq = ?", seqs)
    return len(seqs)


def _sweep_requests(conn: sqlite3.Connection, entries: Sequence[float]) -> list[int]:
    return [
        _delete(conn, [tuple(row) for row in conn.execute(_OLD_REQUESTS, (before, CHUNK))])
        for before in entries
    ]


def _sweep_rollups(conn: sqlite3.Connection, entries: Sequence[float]) -> list[int]:
    answers = []
    for before in entries:
        old = conn.execute(_OLD_ROLLUPS, (day_of(before), CHUNK)).fetchall()
        conn.executemany(
            "DELETE FROM rollups WHERE (day, project, key_id, alias, provider, model, prompt)"
            " = (?, ?, ?, ?, ?, ?, ?)",
            [tuple(row) for row in old],
        )
        answers.append(len(old))
    return answers


def _forget(
    conn: sqlite3.Connection, entries: Sequence[tuple[str | None, str | None]]
) -> list[int]:
    answers = []
    for project, end_user in entries:
        found = conn.execute(_FORGOTTEN, (project, end_user, CHUNK))
        answers.append(_delete(conn, [tuple(row) for row in found]))
        if end_user is None:
            conn.execute("DELETE FROM rollups WHERE project = ?", (project,))
    return answers


_SWEEPS = {"requests": _sweep_requests, "rollups": _sweep_rollups}
