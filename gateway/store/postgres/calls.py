"""Calls and attempts in PostgreSQL: the tables ``requests`` and ``attempts``, a row for each."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.store import rows
from gateway.store import statements as s
from gateway.store.base import AttemptRow, RequestRow
from gateway.store.batch import Row, Writes
from gateway.store.sql import assignments, columns, insert

_CALL = columns([f"r.{name}" for name in RequestRow._fields])
_ATTEMPT = columns([f"a.{name}" for name in AttemptRow._fields]).replace("a.request_id", "r.id")
_OPEN_ATTEMPTS = f"""SELECT a.day, r.holds_slot, r.status = 'open', {_ATTEMPT}, {_CALL}
    FROM attempts AS a JOIN requests AS r ON r.seq = a.request_seq
    WHERE a.status = 'open' AND """  # noqa: S608
"""Columns of :meth:`Attempt.loaded`; a condition follows."""
LOAD_ATTEMPTS = f"{_OPEN_ATTEMPTS} a.id = ANY($1) ORDER BY a.id FOR UPDATE"
LOAD_LAPSED = f"{_OPEN_ATTEMPTS} a.lease_until < $1 FOR UPDATE SKIP LOCKED"
LOAD_LEFT = """
    SELECT r.id FROM requests AS r WHERE r.status = 'open' AND r.lease_until < $1 AND NOT EXISTS
        (SELECT 1 FROM attempts AS a WHERE a.request_seq = r.seq AND a.status = 'open')
    FOR UPDATE SKIP LOCKED"""
"""Open calls past their lease that have no open attempt."""
LOAD_CALLS = f"{s.CALLS} id = ANY($1) ORDER BY id FOR UPDATE"
_OPEN = {"status": "'open'", "request_seq": "(SELECT seq FROM requests WHERE id = ?)"}
ADD_REQUEST = insert("requests", [*rows.REQUEST, "status"], _OPEN)
ADD_ATTEMPT = insert(
    "attempts",
    ["request_seq" if name == "request_id" else name for name in rows.ATTEMPT] + ["status"],
    _OPEN,
)
SETTLE = f"""UPDATE attempts SET {assignments(rows.ATTEMPT_END)}
    WHERE id = ? AND status = 'open'"""  # noqa: S608
KEEP = "UPDATE requests SET lease_until = ? WHERE id = ? AND status = 'open'"
CLOSE = f"""UPDATE requests SET {assignments(rows.REQUEST_END)}
    WHERE id = ? AND status = 'open'"""  # noqa: S608
DELETE_CALL = (
    "DELETE FROM attempts WHERE request_seq = ?",
    "DELETE FROM requests WHERE seq = ?",
)
RENEW = "UPDATE attempts SET lease_until = $1 WHERE status = 'open' AND id = ANY($2)"
KEEP_CALLS = """UPDATE requests SET lease_until = $1 WHERE seq IN
    (SELECT request_seq FROM attempts WHERE status = 'open' AND id = ANY($2))"""

_ADDED, _ENDED, _LEASE = len(rows.REQUEST), len(rows.REQUEST_END), rows.REQUEST.index("lease_until")


def statements(writes: Writes) -> Iterator[tuple[str, list[Row]]]:
    """Each statement with its rows, in the order in which every replica writes them: a call and
    its first attempt come as one row and are two."""
    begun, ended = writes.begun, writes.ended
    first = [(*row[_ADDED:], row[_LEASE]) for row in begun]
    settled = [row[_ENDED - 1 : -1] for row in ended] + [row[:-1] for row in writes.settled]
    closed = [(*row[:_ENDED], row[-1]) for row in ended] + writes.closed
    for statement, values in (
        (ADD_REQUEST, [row[:_ADDED] for row in begun] + writes.refused),
        (ADD_ATTEMPT, first + writes.attempts),
        (SETTLE, settled),
        (KEEP, writes.kept),
        (CLOSE, closed),
    ):
        if values:
            yield statement, values
    yield from writes.sums()
