"""The SQL that both databases understand, with ``?`` for values.

PostgreSQL gets it through :func:`gateway.store.sql.numbered`. What only one of them can say
stands in that one's package.
"""

from __future__ import annotations

from gateway.store import keyrows, rows
from gateway.store.base import AttemptRow, RequestRow
from gateway.store.sql import added, assignments, columns, insert, replaced

_CALL = columns([f"r.{name}" for name in RequestRow._fields])
_ATTEMPT = columns([f"a.{name}" for name in AttemptRow._fields]).replace("a.request_id", "r.id")

OPEN_ATTEMPTS = f"""
    SELECT a.day, r.holds_slot, r.status = 'open', {_ATTEMPT}, {_CALL}
    FROM attempts AS a JOIN requests AS r ON r.seq = a.request_seq
    WHERE a.status = 'open' AND """  # noqa: S608
"""Columns of :meth:`Attempt.loaded`; a condition follows."""
CALLS = f"SELECT r.status = 'open', r.holds_slot, {_CALL} FROM requests AS r WHERE "  # noqa: S608
"""Whether it is open, whether it holds a place, and its row; a condition follows."""
LEFT_CALLS = """
    SELECT r.id FROM requests AS r WHERE r.status = 'open' AND r.lease_until < ? AND NOT EXISTS
        (SELECT 1 FROM attempts AS a WHERE a.request_seq = r.seq AND a.status = 'open')"""
"""Open calls past their lease that have no open attempt."""
ACCOUNTS = f"SELECT {columns(rows.ACCOUNT)} FROM accounts WHERE "  # noqa: S608

_OPEN = {"status": "'open'", "request_seq": "(SELECT seq FROM requests WHERE id = ?)"}

ADD_REQUEST = insert("requests", [*rows.REQUEST, "status"], _OPEN)
ADD_ATTEMPT = insert(
    "attempts",
    ["request_seq" if n == "request_id" else n for n in rows.ATTEMPT] + ["status"],
    _OPEN,
)
SETTLE = f"""UPDATE attempts SET {assignments(rows.ATTEMPT_END)}
    WHERE id = ? AND status = 'open'"""  # noqa: S608
CLOSE = f"""UPDATE requests SET {assignments(rows.REQUEST_END)}
    WHERE id = ? AND status = 'open'"""  # noqa: S608
KEEP = "UPDATE requests SET lease_until = ? WHERE id = ? AND status = 'open'"
RENEW = "UPDATE attempts SET lease_until = ? WHERE id = ? AND status = 'open'"
ADD_ROLLUP = (
    insert("rollups", [*rows.ROLLUP_KEY, "key_name", *rows.ROLLUP_SUMS])
    + f" ON CONFLICT ({columns(rows.ROLLUP_KEY)}) DO UPDATE SET key_name = excluded.key_name, "
    + added("rollups", rows.ROLLUP_SUMS)
)
PUT_ACCOUNT = (
    insert("accounts", rows.ACCOUNT)
    + f" ON CONFLICT (key_id) DO UPDATE SET {replaced(rows.ACCOUNT[1:])}"
)

ADD_KEY = insert("keys", keyrows.KEY)
REVOKE_KEY = "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
KEY_NAMED = "SELECT id FROM keys WHERE name = ? AND revoked_at IS NULL"
KEYS = f"SELECT {columns(keyrows.KEY)} FROM keys ORDER BY created_at, id"  # noqa: S608
COUNT = "UPDATE counters SET value = value + 1 WHERE name = ?"
COUNTER = "SELECT value FROM counters WHERE name = ?"

REQUEST = "SELECT * FROM requests WHERE id = ?"
ATTEMPTS = "SELECT * FROM attempts WHERE request_seq = ? ORDER BY number"

# Rows are in the order of their time, so the search stops at the first one to keep.
OLD_REQUESTS = """SELECT seq FROM requests WHERE status <> 'open' AND at < ? AND seq < coalesce(
    (SELECT seq FROM requests WHERE at >= ? ORDER BY seq LIMIT 1), 9223372036854775807)
    ORDER BY seq LIMIT ?"""
OLD_DAYS = "SELECT DISTINCT day FROM rollups WHERE day < ? ORDER BY day LIMIT ?"
CLOSED = "SELECT seq FROM requests WHERE status <> 'open'"
DELETE_CALL = (
    "DELETE FROM attempts WHERE request_seq = ?",
    "DELETE FROM requests WHERE seq = ?",
)
DELETE_DAY = "DELETE FROM rollups WHERE day = ?"
DELETE_PROJECT_SUMS = "DELETE FROM rollups WHERE project = ?"
