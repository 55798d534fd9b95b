"""Calls and attempts in SQLite: a call and its first attempt are one row of ``calls``.

Later attempts have rows of their own; the views ``requests`` and ``attempts`` show all of it as
PostgreSQL's tables of these names do, for whoever reads. This is for who writes, and for the few
questions about what is under way, which those views would answer too slowly.

With a row for the call and one for its attempt, what a call's statements and its part of the
commits took was 26 µs instead of 19, in groups of seven.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapters.wire.json import dumps
from gateway.store import rows
from gateway.store.base import AttemptRow, RequestRow
from gateway.store.batch import Row, Writes
from gateway.store.sql import assignments, columns, insert


def among(mark: str = "?") -> str:
    """A condition whose value is what :func:`listed` makes."""
    return f"IN (SELECT value FROM json_each({mark}))"  # noqa: S608


def listed(ids: Sequence[str]) -> str:
    """See :func:`among`."""
    return dumps(ids).decode()


def _first(name: str) -> str:
    return f"first_{name}"


def _numbered(names: list[str], start: int) -> dict[str, str]:
    return {name: f"?{number}" for number, name in enumerate(names, start)}


_OPEN = {"status": "'open'"}

_REQUEST = _numbered(rows.REQUEST, 1)
_FIRST = {
    _first(name): mark
    for name, mark in _numbered(rows.FIRST_ATTEMPT, len(rows.REQUEST) + 1).items()
    if name != "request_id"
}
_BEGUN = _REQUEST | _FIRST | _OPEN
_BEGUN |= {_first("status"): "'open'", _first("lease_until"): _REQUEST["lease_until"]}

ADD_CALL = insert("calls", [*_BEGUN], _BEGUN)
ADD_REFUSED = insert("calls", [*rows.REQUEST, "status"], _OPEN)
_SEQ = "(SELECT seq FROM calls WHERE id = ?)"
ADD_ATTEMPT = insert(
    "later_attempts",
    ["request_seq" if name == "request_id" else name for name in rows.ATTEMPT] + ["status"],
    {**_OPEN, "request_seq": _SEQ},
)

_ENDED = _numbered(rows.REQUEST_END, 1)
_FIRST_ENDED = {
    _first(name): mark for name, mark in _numbered(rows.ATTEMPT_END, len(_ENDED)).items()
}
_IDS = len(_ENDED) + len(_FIRST_ENDED)
END_CALL = f"""UPDATE calls
    SET {columns([f"{name} = {mark}" for name, mark in (_ENDED | _FIRST_ENDED).items()])}
    WHERE id = ?{_IDS + 1} AND first_id = ?{_IDS} AND status = 'open' AND first_status = 'open'"""  # noqa: S608
SETTLE_FIRST = f"""UPDATE calls SET {assignments([*map(_first, rows.ATTEMPT_END)])}
    WHERE first_id = ? AND id = ? AND first_status = 'open'"""  # noqa: S608
SETTLE_LATER = f"""UPDATE later_attempts SET {assignments(rows.ATTEMPT_END)}
    WHERE id = ? AND request_seq = {_SEQ} AND status = 'open'"""  # noqa: S608
CLOSE = f"""UPDATE calls SET {assignments(rows.REQUEST_END)}
    WHERE id = ? AND status = 'open'"""  # noqa: S608
KEEP = "UPDATE calls SET lease_until = ? WHERE id = ? AND status = 'open'"

_THESE = among("?2")
_LATER_ONES = f"(SELECT request_seq FROM later_attempts WHERE status = 'open' AND id {_THESE})"  # noqa: S608
# Said of the whole as well, an index tells what is under way; of its parts alone, it would not.
RENEW = (
    f"""UPDATE calls SET lease_until = ?1 WHERE (status = 'open' OR first_status = 'open')
        AND (first_status = 'open' AND first_id {_THESE} OR seq IN {_LATER_ONES})""",  # noqa: S608
    f"UPDATE calls SET first_lease_until = ?1 WHERE first_status = 'open' AND first_id {_THESE}",  # noqa: S608
    f"UPDATE later_attempts SET lease_until = ?1 WHERE status = 'open' AND id {_THESE}",  # noqa: S608
)
"""Each takes the new lease and a list of attempts, and is run in this order."""

_FIRST_ROW = columns([*map(_first, AttemptRow._fields)]).replace("first_request_id", "calls.id")
_LATER_ROW = columns([f"a.{name}" for name in AttemptRow._fields]).replace(
    "a.request_id", "calls.id"
)
_CALL = columns([f"calls.{name}" for name in RequestRow._fields])
_OPEN_FIRST = f"""SELECT first_day, holds_slot, status = 'open', {_FIRST_ROW}, {_CALL}
    FROM calls WHERE first_status = 'open' AND """  # noqa: S608
_OPEN_LATER = f"""SELECT a.day, holds_slot, calls.status = 'open', {_LATER_ROW}, {_CALL}
    FROM later_attempts AS a JOIN calls ON calls.seq = a.request_seq
    WHERE a.status = 'open' AND """  # noqa: S608
LOAD_ATTEMPTS = f"{_OPEN_FIRST} id {among('?1')} UNION ALL {_OPEN_LATER} a.id {among('?2')}"
"""Open attempts, as :meth:`Attempt.loaded` takes them: the first ones of some calls, and some later
ones, each by their ids."""
LOAD_LAPSED = f"""{_OPEN_FIRST} first_lease_until < ?1
    UNION ALL {_OPEN_LATER} a.lease_until < ?1"""
LEFT_CALLS = """SELECT id FROM calls WHERE status = 'open' AND lease_until < ?
    AND first_status IS NOT 'open' AND NOT EXISTS
        (SELECT 1 FROM later_attempts AS a WHERE a.request_seq = calls.seq AND a.status = 'open')"""
"""Open calls past their lease that have no open attempt."""

DELETE_CALL = (
    "DELETE FROM later_attempts WHERE request_seq = ?",
    "DELETE FROM calls WHERE seq = ?",
)


def statements(writes: Writes) -> Iterator[tuple[str, Sequence[Row]]]:
    """Each statement with its rows, in the order in which they are to be run."""
    if writes.begun:
        yield ADD_CALL, writes.begun
    if writes.ended:
        yield END_CALL, writes.ended
    for statement, values in (
        (ADD_REFUSED, writes.refused),
        (ADD_ATTEMPT, writes.attempts),
        (SETTLE_FIRST, writes.settled),
        (SETTLE_LATER, writes.settled),
        (KEEP, writes.kept),
        (CLOSE, writes.closed),
    ):
        if values:
            yield statement, values
    yield from writes.sums()
