"""What may be entered in the ledger, and what the ledger holds open, as plain values.

An entry waits in the writer's queue until its group is committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from adapters.canonical.record import record
from gateway.store.base import AttemptRow, Hold, RequestEnd, RequestRow, Settlement


@record(frozen=True, slots=True)
class Open:
    """Reserve and write an attempt; ``request`` comes with a call's first one."""

    request: RequestRow | None
    row: AttemptRow
    hold: Hold

    needs: ClassVar[None] = None
    """The id of what must be in the database first."""


@record(frozen=True, slots=True)
class Settle:
    """Settle an attempt, and its call where the settlement says so."""

    settlement: Settlement

    @property
    def needs(self) -> str:
        return self.settlement.attempt_id


@record(frozen=True, slots=True)
class Close:
    """End a call outside of any attempt. ``request`` is written if it is not there yet."""

    request_id: str
    at: float
    end: RequestEnd
    request: RequestRow | None = None

    @property
    def needs(self) -> str:
        return self.request_id


Entry = Open | Settle | Close


class Call(NamedTuple):
    """A call that is still open, as loaded: the columns in their order."""

    id: str
    at: float
    project: str
    key_id: str
    key_name: str
    alias: str
    prompt: str | None
    holds_slot: bool

    @classmethod
    def begun(cls, row: RequestRow, holds_slot: bool) -> Call:
        """As it is loaded once ``row`` is written."""
        return cls(
            row.id,
            row.at,
            row.project,
            row.key_id,
            row.key_name,
            row.alias,
            row.prompt,
            holds_slot,
        )


class Attempt(NamedTuple):
    """An attempt that is still open, as loaded, with the call that it belongs to.

    ``day`` is the budget day that its money was reserved on. ``call_open`` is false where the
    call was ended before its attempt.
    """

    id: str
    number: int
    at: float
    day: int
    provider: str
    model: str
    reserved_tokens: int
    reserved_nano: int
    call_open: bool
    call: Call

    @classmethod
    def loaded(cls, values: Sequence[Any]) -> Attempt:
        """From its own columns and, after them, the call's."""
        return cls._make([*values[:9], Call._make(values[9:])])

    @classmethod
    def begun(cls, call: Call, row: AttemptRow, day: int) -> Attempt:
        """As it is loaded once its row, the first of ``call``, is written."""
        return cls(
            row.id,
            row.number,
            row.at,
            day,
            row.provider,
            row.model,
            row.reserved_tokens,
            row.reserved_nano,
            True,
            call,
        )


def interrupted(attempt: Attempt, at: float) -> Settle:
    """How an attempt is settled that nobody will settle any more (promise 8): its real usage
    is unknown, so it pays what it had reserved."""
    end = RequestEnd("interrupted", 0, fault="interrupted", attempts=attempt.number)
    return Settle(
        Settlement(
            attempt_id=attempt.id,
            request_id=attempt.call.id,
            ended_at=max(at, attempt.at),
            status="interrupted",
            usage_source="estimated",
            fault="interrupted",
            fault_message="The gateway stopped before this attempt was settled.",
            request=end,
        )
    )


def never_sent(entry: Open, at: float) -> Settle:
    """How an attempt is settled whose caller left while it was being opened: it cost nothing."""
    end = RequestEnd("cancelled", 499, fault="cancelled", attempts=entry.row.number)
    settlement = Settlement(
        attempt_id=entry.row.id,
        request_id=entry.row.request_id,
        ended_at=at,
        status="cancelled",
        usage_source="unknown",
        cost_nano=0,
        fault="cancelled",
        request=end,
    )
    # A later attempt's call is not ours to end: its owner is still there and will.
    return Settle(settlement if entry.request is not None else replace(settlement, request=None))
