"""The SQL that both databases understand, with ``?`` for values.

PostgreSQL gets it through :func:`gateway.store.sql.numbered`. What only one of them can say
stands in that one's package.
"""

from __future__ import annotations

from gateway.store import keyrows, rows
from gateway.store.base import RequestRow
from gateway.store.sql import added, columns, insert, replaced

CALLS = f"""SELECT status = 'open', holds_slot, {columns(RequestRow._fields)}
    FROM requests WHERE """  # noqa: S608
"""Whether it is open, whether it holds a place, and its row; a condition follows."""
ACCOUNTS = f"SELECT {columns(rows.ACCOUNT)} FROM accounts WHERE "  # noqa: S608

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
DELETE_DAY = "DELETE FROM rollups WHERE day = ?"
DELETE_PROJECT_SUMS = "DELETE FROM rollups WHERE project = ?"
