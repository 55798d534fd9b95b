"""One group of ledger entries, computed in memory: what to load, what to answer, what to write.

Both stores use it the same way, inside one transaction::

    batch = Batch(entries)
    batch.load(<open attempts of batch.settlements>, <open calls named by batch.request_ids>)
    results = batch.decide(<accounts named by batch.key_ids, locked>)
    <write batch.writes>

Knows no database. Settlements come before openings, so that what they give back
can be taken at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from operator import add
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.store import rows, statements
from gateway.store.base import Opened, RequestEnd, Settlement
from gateway.store.entries import Attempt, Call, Close, Entry, Open, Settle
from gateway.store.limits import Account
from gateway.store.periods import day_of

BETWEEN_ATTEMPTS = 120.0
"""Seconds that a call stays alive between two attempts, beyond the pause that it makes itself."""

RollupKey = tuple[int, str, str, str, str, str, str]
_REQUESTS = rows.ROLLUP_SUMS.index("requests")
_REFUSED = rows.ROLLUP_SUMS.index("refused")


@record(slots=True)
class Rollup:
    """What one group adds to one line of the daily roll-up."""

    key_name: str
    sums: list[int] = field(default_factory=lambda: [0] * len(rows.ROLLUP_SUMS))

    def add(self, amounts: Iterable[int]) -> None:
        """Add to all sums, in the order of ``rows.ROLLUP_SUMS``."""
        self.sums = list(map(add, self.sums, amounts))

    def add_call(self, *, refused: bool = False) -> None:
        """One more has ended, apart from any attempt."""
        self.sums[_REQUESTS] += 1
        self.sums[_REFUSED] += refused


@record(slots=True)
class Writes:
    """Rows to write; the values are as ``rows`` makes them, ``kept`` are pairs of a new lease and
    a call's id."""

    requests: list[tuple[Any, ...]] = field(default_factory=list)
    attempts: list[tuple[Any, ...]] = field(default_factory=list)
    settled: list[tuple[Any, ...]] = field(default_factory=list)
    closed: list[tuple[Any, ...]] = field(default_factory=list)
    kept: list[tuple[float, str]] = field(default_factory=list)
    rollups: dict[RollupKey, Rollup] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)

    def statements(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """Each statement with its rows, in the order in which everybody writes them."""
        rollups = [(*key, r.key_name, *r.sums) for key, r in sorted(self.rollups.items())]
        accounts = [account.values() for account in self.accounts.values()]
        for statement, values in (
            (statements.ADD_REQUEST, self.requests),
            (statements.ADD_ATTEMPT, self.attempts),
            (statements.SETTLE, self.settled),
            (statements.KEEP, self.kept),
            (statements.CLOSE, self.closed),
            (statements.ADD_ROLLUP, rollups),
            (statements.PUT_ACCOUNT, accounts),
        ):
            if values:
                yield statement, values


def batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Cut a group where an entry needs to find what an earlier one of the group has opened."""
    current: list[Entry] = []
    opened: set[str] = set()
    for entry in entries:
        if isinstance(entry, Open):
            opened.add(entry.row.id)
            opened.add(entry.row.request_id)
        elif opened and entry.needs in opened:
            yield current
            current, opened = [], set()
        current.append(entry)
    if current:
        yield current


class Batch:
    """See the module."""

    __slots__ = (
        "_accounts",
        "_attempts",
        "_calls",
        "_closes",
        "_known",
        "_opens",
        "_size",
        "begun",
        "refused",
        "settlements",
        "writes",
    )

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._size = len(entries)
        self.settlements: list[Settlement] = []
        """Whose attempts to load (those that are open) before :meth:`load`."""
        self._closes: list[Close] = []
        self._opens: list[tuple[int, Open]] = []
        for place, entry in enumerate(entries):
            if isinstance(entry, Open):
                self._opens.append((place, entry))
            elif isinstance(entry, Settle):
                self.settlements.append(entry.settlement)
            else:
                self._closes.append(entry)
        self._attempts: dict[str, Attempt] = {}
        self._calls: dict[str, Call] = {}
        self._known: set[str] = set()
        self._accounts: Mapping[str, Account] = {}
        self.writes = Writes()
        self.begun: list[Attempt] = []
        """The first attempts of calls that :meth:`decide` has opened, as they will be loaded."""
        self.refused: set[str] = set()
        """Keys whose accounts :meth:`decide` has refused something."""

    @property
    def request_ids(self) -> list[str]:
        """Calls to load before :meth:`load`."""
        return [close.request_id for close in self._closes]

    def load(self, attempts: Sequence[Attempt], calls: Sequence[Call], known: set[str]) -> None:
        """Take the open attempts and calls that were asked for.

        :param known: which of ``request_ids`` have a row, open or not.
        """
        self._attempts = {attempt.id: attempt for attempt in attempts}
        self._calls = {call.id: call for call in calls}
        self._calls.update((a.call.id, a.call) for a in attempts if a.call_open)
        self._known = known

    @property
    def key_ids(self) -> list[str]:
        """Keys whose accounts to load and lock, in the order in which everybody locks them."""
        found = {attempt.call.key_id for attempt in self._attempts.values()}
        found.update([call.key_id for call in self._calls.values()])
        found.update([entry.hold.key_id for _, entry in self._opens])
        return sorted(found)

    def decide(self, accounts: Mapping[str, Account]) -> list[Opened | Fault | None]:
        """Answer every entry in its place and fill :attr:`writes`. A refusal is a value."""
        self._accounts = accounts
        results: list[Opened | Fault | None] = [None] * self._size
        for settlement in self.settlements:
            self._settle(settlement)
        for close in self._closes:
            self._close(close)
        for place, entry in self._opens:
            results[place] = self._open(entry)
        return results

    def _open(self, entry: Open) -> Opened | Fault:
        request, row, hold, writes = entry.request, entry.row, entry.hold, self.writes
        account = self._accounts[hold.key_id]
        try:
            rates = account.take(hold, row.at)
        except Fault as refusal:
            self.refused.add(hold.key_id)
            return refusal
        writes.accounts[hold.key_id] = account
        lease, day = hold.lease_until, account.day
        if request is not None:
            writes.requests.append(rows.request_values(request, lease, hold.new_call))
            self.begun.append(Attempt.begun(Call.begun(request, hold.new_call), row, day))
        else:
            writes.kept.append((lease, row.request_id))
        writes.attempts.append(rows.attempt_values(row, day, lease))
        return Opened(rates)

    def _settle(self, end: Settlement) -> None:
        attempt = self._attempts.pop(end.attempt_id, None)
        if attempt is None:
            return  # settled already: the first settlement stands
        counts = _counts(end)
        if min(counts) < 0:
            end = _unknown(end)
            counts = _counts(end)
        call, reserved = attempt.call, attempt.reserved_nano
        charge = reserved if end.cost_nano is None else end.cost_nano
        overrun = max(0, charge - reserved, end.overrun_nano)
        account = self.writes.accounts[call.key_id] = self._accounts[call.key_id]
        account.settle(reserved, charge, attempt.day)
        tokens = _real_tokens(end)
        if tokens is not None:
            account.retoken(attempt.at, attempt.reserved_tokens, tokens)
        self.writes.settled.append(rows.settled_values(end, charge, overrun))
        ended = False
        if end.request is None:
            alive_until = end.ended_at + end.pause + BETWEEN_ATTEMPTS
            self.writes.kept.append((alive_until, call.id))
        else:
            ended = self._end_call(call.id, end.request, end.ended_at)
        rollup = self._rollup(attempt.day, call, attempt.provider, attempt.model)
        rollup.add(_amounts(end, counts, charge, overrun, ended))

    def _close(self, entry: Close) -> None:
        call, row = self._calls.get(entry.request_id), entry.request
        if call is not None:
            self._end_call(call.id, entry.end, entry.at)
            self._rollup(day_of(call.at), call, "", "").add_call()
        elif row is not None and row.id not in self._known:
            self.writes.requests.append(rows.request_values(row, entry.at, holds_slot=False))
            self.writes.closed.append(rows.request_end_values(entry.end, entry.at, row.id))
            refused = Call.begun(row, holds_slot=False)
            self._rollup(day_of(row.at), refused, "", "").add_call(refused=True)
            self._known.add(row.id)

    def _end_call(self, request_id: str, end: RequestEnd, at: float) -> bool:
        """Write a call's end and free its place; false where it had ended before."""
        call = self._calls.pop(request_id, None)
        if call is None:
            return False
        self.writes.closed.append(rows.request_end_values(end, at, request_id))
        if call.holds_slot:
            account = self.writes.accounts[call.key_id] = self._accounts[call.key_id]
            account.release_call()
        return True

    def _rollup(self, day: int, call: Call, provider: str, model: str) -> Rollup:
        key = (day, call.project, call.key_id, call.alias, provider, model, call.prompt or "")
        rollup = self.writes.rollups.get(key)
        if rollup is None:
            rollup = self.writes.rollups[key] = Rollup(call.key_name)
        return rollup


def _counts(end: Settlement) -> tuple[int, ...]:
    """What a provider tells: tokens and, last, the cost; what is unknown counts as nothing."""
    return (
        end.input_tokens or 0,
        end.output_tokens or 0,
        end.cache_read_tokens or 0,
        end.cache_write_tokens or 0,
        end.reasoning_tokens or 0,
        end.cost_nano or 0,
    )


def _amounts(
    end: Settlement, counts: tuple[int, ...], charge: int, overrun: int, ended: bool
) -> tuple[int, ...]:
    """What an attempt adds to the sums, its call's end included."""
    guessed = end.cost_nano is None or end.usage_source != "provider"
    return (
        ended,
        1,
        0,
        end.fault is not None,
        end.usage_source == "unknown",
        end.usage_source == "estimated",
        *counts[:-1],
        charge,
        charge if guessed else 0,
        overrun,
    )


def _unknown(end: Settlement) -> Settlement:
    """In place of a settlement with a negative number. No sum ever falls: those are refused here
    too, whoever let them by (K13)."""
    return replace(
        end,
        usage_invalid=True,
        input_tokens=None,
        output_tokens=None,
        cache_read_tokens=None,
        cache_write_tokens=None,
        reasoning_tokens=None,
        cost_nano=None,
    )


def _real_tokens(end: Settlement) -> int | None:
    """All tokens of an attempt; ``None`` where they are not known, so that the reservation
    stays. What cost nothing and reported nothing did no work."""
    if end.input_tokens is None and end.output_tokens is None:
        return 0 if end.cost_nano == 0 else None
    if end.input_tokens is None or end.output_tokens is None:
        return None
    return end.input_tokens + end.output_tokens
