"""What may be entered in the ledger, and what the ledger holds open, as plain values.

An entry waits in the writer's queue until its group is committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from adapters.canonical.record import record
from gateway.store.base import AttemptRow, Opening, RequestEnd, RequestRow, Settlement


class Close(NamedTuple):
    """End a call outside of any attempt. ``request`` is written if it is not there yet."""

    request_id: str
    at: float
    end: RequestEnd
    request: RequestRow | None = None


Entry = Opening | Settlement | Close


class Call(NamedTuple):
    """A call that is still open, and whether it holds one of its key's places."""

    row: RequestRow
    holds_slot: bool


@record(frozen=True, slots=True)
class Attempt:
    """An attempt that is still open, with the call that it belongs to.

    ``day`` is the budget day that its money was reserved on. ``call_open`` is false where the
    call was ended before its attempt.
    """

    row: AttemptRow
    call: RequestRow
    day: int
    holds_slot: bool
    call_open: bool = True

    @classmethod
    def loaded(cls, values: Sequence[Any]) -> Attempt:
        """From a row that each database's ``LOAD_ATTEMPTS`` finds."""
        day, holds_slot, call_open, *columns = values
        own = len(AttemptRow._fields)
        row, call = AttemptRow._make(columns[:own]), RequestRow._make(columns[own:])
        return cls(row, call, day, holds_slot, call_open)


def interrupted(attempt: Attempt, at: float) -> Settlement:
    """How an attempt is settled that nobody will settle any more (promise 8): its real usage
    is unknown, so it pays what it had reserved."""
    row = attempt.row
    return Settlement(
        row.id,
        row.request_id,
        max(at, row.at),
        "interrupted",
        "estimated",
        fault="interrupted",
        fault_message="The gateway stopped before this attempt was settled.",
        request=RequestEnd("interrupted", fault="interrupted", attempts=row.number),
    )


def never_sent(opening: Opening, at: float) -> Settlement:
    """How an attempt is settled whose caller left while it was being opened: it cost nothing."""
    row, end = opening.row, None
    if opening.request is not None:  # a later attempt's call has an owner, who will end it
        end = RequestEnd("cancelled", 499, fault="cancelled", attempts=row.number)
    return Settlement(
        row.id,
        row.request_id,
        at,
        "cancelled",
        "unknown",
        cost_nano=0,
        fault="cancelled",
        request=end,
    )
