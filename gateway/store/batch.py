"""One group of ledger entries, computed in memory: what to load, what to answer, what to write.

Both stores use it the same way, inside one transaction, for each of a group's :func:`batches`::

    batch.load(<open attempts of batch.settlements>, <open calls named by batch.request_ids>)
    results = batch.decide(<accounts named by batch.key_ids, locked>)
    <write batch.writes>

Knows no database. Settlements come before openings, so that what they give back
can be taken at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from operator import attrgetter, itemgetter
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.store import rows, statements
from gateway.store.base import Opening, Rates, Settlement
from gateway.store.entries import Attempt, Call, Close, Entry
from gateway.store.limits import Account
from gateway.store.periods import day_of

BETWEEN_ATTEMPTS = 120.0
"""Seconds that a call stays alive between two attempts, beyond the pause that it makes itself."""

Row = tuple[Any, ...]

_NOTHING = dict.fromkeys([*rows.ROLLUP_SUMS, "reserved_nano", "slots"], 0)
"""What is summed up for each line of the daily roll-up; the last two are given back to the key's
account."""
CALL_ENDED = {**_NOTHING, "requests": 1}
"""What a call that ends outside of any attempt adds to the sums."""
CALL_REFUSED = tuple({**_NOTHING, "requests": 1, "refused": 1}.values())

Line = tuple[int, tuple[Any, ...], str, str]
"""A line of the daily roll-up: the day, who paid, and which provider's model, if one was asked."""

_payer = attrgetter("project", "key_id", "alias", "prompt", "key_name")
_told = itemgetter(
    *map(
        Settlement._fields.index,
        (
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "reasoning_tokens",
            "cost_nano",
            "usage_source",
            "fault",
            "ended_at",
            "request",
        ),
    )
)
"""What is asked of each settlement; one by one, by their names, it took a third longer."""


@record(slots=True)
class Writes:
    """What a group changes, as rows; how many statements a row takes is the database's own matter.

    Nearly every call has one attempt, begins with it and ends with it: ``begun`` and ``ended`` are
    those. All else is told in pieces.
    """

    begun: list[Row] = field(default_factory=list)
    """Calls with their first attempt: ``rows.REQUEST``, then ``rows.FIRST_ATTEMPT``."""
    refused: list[Row] = field(default_factory=list)
    """Calls that had none: ``rows.REQUEST``."""
    attempts: list[Row] = field(default_factory=list)
    """Later attempts: ``rows.ATTEMPT``."""
    ended: list[Row] = field(default_factory=list)
    """First attempts that ended their call: ``rows.REQUEST_END`` and ``rows.ATTEMPT_END``, which
    share the time; then the ids of the attempt and of the call."""
    settled: list[Row] = field(default_factory=list)
    """Other attempts: ``rows.ATTEMPT_END`` and both ids."""
    closed: list[Row] = field(default_factory=list)
    """Other calls: ``rows.REQUEST_END`` and the id."""
    kept: list[tuple[float, str]] = field(default_factory=list)
    """Calls that go on: their new lease and the id."""
    rollups: list[Row] = field(default_factory=list)
    accounts: dict[str, Account] = field(default_factory=dict)

    def sums(self) -> Iterator[tuple[str, list[Row]]]:
        """The statements for roll-ups and accounts; everybody writes them in this order, and
        last."""
        if self.rollups:
            yield statements.ADD_ROLLUP, sorted(self.rollups)
        if self.accounts:
            yield statements.PUT_ACCOUNT, [account.values() for account in self.accounts.values()]


def batches(entries: Sequence[Entry]) -> list[Batch]:
    """One for the whole group, or more where an entry needs to find what an earlier one of the
    group has opened. That is rare: who settles has heard that the opening is committed."""
    whole = Batch(entries)
    return [whole] if whole.stands_alone() else [Batch(part) for part in _cut(entries)]


def _cut(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    current: list[Entry] = []
    opened: set[str] = set()
    for entry in entries:
        if isinstance(entry, Opening):
            opened.update((entry.row.id, entry.row.request_id))
        elif (entry.request_id if isinstance(entry, Close) else entry.attempt_id) in opened:
            yield current
            current, opened = [], set()
        current.append(entry)
    yield current


_ATTEMPT = attrgetter("attempt_id")
_OPENED, _OPENED_FOR, _HELD_BY = map(attrgetter, ("row.id", "row.request_id", "key_id"))
_PAID_BY = attrgetter("call.key_id")


class Batch:
    """See the module."""

    __slots__ = (
        "_accounts",
        "_attempts",
        "_calls",
        "_closes",
        "_ended",
        "_known",
        "_opens",
        "_places",
        "_size",
        "_sums",
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
        self._opens: list[Opening] = []
        self._places: list[int] = []
        for place, entry in enumerate(entries):
            if isinstance(entry, Opening):
                self._opens.append(entry)
                self._places.append(place)
            elif isinstance(entry, Settlement):
                self.settlements.append(entry)
            else:
                self._closes.append(entry)
        self._attempts: dict[str, Attempt] = {}
        self._calls: Mapping[str, Call] = {}
        self._known: set[str] = set()
        self._ended: set[str] = set()
        self._accounts: Mapping[str, Account] = {}
        self._sums: defaultdict[Line, list[Row]] = defaultdict(list)
        self.writes = Writes()
        self.begun: dict[str, Attempt] = {}
        """The first attempts of calls that :meth:`decide` has opened, as they will be loaded."""
        self.refused: set[str] = set()
        """Keys whose accounts :meth:`decide` has refused something."""

    @property
    def request_ids(self) -> list[str]:
        """Calls to load before :meth:`load`."""
        return [close.request_id for close in self._closes]

    def stands_alone(self) -> bool:
        """Whether nothing in it needs what it opens itself."""
        needed = {*map(_ATTEMPT, self.settlements), *self.request_ids}
        return needed.isdisjoint(map(_OPENED, self._opens)) and needed.isdisjoint(
            map(_OPENED_FOR, self._opens)
        )

    def load(
        self, attempts: dict[str, Attempt], calls: Mapping[str, Call], known: Iterable[str]
    ) -> None:
        """Take the open attempts and calls that were asked for, by their ids.

        :param known: which of ``request_ids`` have a row, open or not.
        """
        self._attempts = attempts
        self._calls = calls
        self._known = set(known)

    @property
    def key_ids(self) -> Set[str]:
        """Keys whose accounts to load; everybody locks them in the order of their names."""
        found = {*map(_HELD_BY, self._opens), *map(_PAID_BY, self._attempts.values())}
        found.update([call.row.key_id for call in self._calls.values()])
        return found

    def decide(self, accounts: Mapping[str, Account]) -> list[Rates | Fault | None]:
        """Answer every entry in its place and fill :attr:`writes`. A refusal is a value."""
        self._accounts = accounts
        self._settle()
        for close in self._closes:
            self._close(close)
        for line, amounts in self._sums.items():
            self._add(line, amounts)
        results: list[Rates | Fault | None] = [None] * self._size
        for place, answer in zip(self._places, map(self._open, self._opens), strict=True):
            results[place] = answer
        return results

    def _open(self, opening: Opening) -> Rates | Fault:
        request, row, key_id = opening.request, opening.row, opening.key_id
        limits, lease = opening.limits, opening.lease_until
        account, new_call = self._accounts[key_id], request is not None
        try:
            rates = account.take(limits, row.reserved_tokens, row.reserved_nano, new_call, row.at)
        except Fault as refusal:
            self.refused.add(key_id)
            return refusal
        writes, day = self.writes, account.day
        writes.accounts[key_id] = account
        if request is not None:
            writes.begun.append((*request, lease, new_call, *row, day))
            self.begun[request.id] = Attempt(row, request, day, new_call)
        else:
            writes.kept.append((lease, row.request_id))
            writes.attempts.append((*row, day, lease))
        return rates

    def _settle(self) -> None:
        """Each attempt once: the first settlement stands."""
        for end in self.settlements:
            attempt = self._attempts.pop(end.attempt_id, None)
            if attempt is not None:
                self._end(end, attempt)

    def _end(self, end: Settlement, attempt: Attempt) -> None:
        """Unknown tokens count as none, an unknown cost as what was reserved."""
        given, made, read, written, thought, cost, source, fault, ended_at, request = _told(end)
        if min(given or 0, made or 0, read or 0, written or 0, thought or 0, cost or 0) < 0:
            self._end(_unknown(end), attempt)
            return
        row, call, day = attempt.row, attempt.call, attempt.day
        ends_call = request is not None and attempt.call_open and call.id not in self._ended
        reserved, writes = row.reserved_nano, self.writes
        charge = reserved if cost is None else cost
        overrun = max(0, charge - reserved, end.overrun_nano)
        amounts = (
            ends_call,
            1,
            0,
            fault is not None,
            source == "unknown",
            source == "estimated",
            given or 0,
            made or 0,
            read or 0,
            written or 0,
            thought or 0,
            charge,
            charge if cost is None or source != "provider" else 0,
            overrun,
            reserved,
            ends_call and attempt.holds_slot,
        )
        self._sums[day, _payer(call), row.provider, row.model].append(amounts)
        tokens = _real_tokens(given, made, cost)
        if tokens is not None:
            window = self._accounts[call.key_id].window
            window.correct(int(row.at), tokens - row.reserved_tokens)
        settled = (*rows.written(end), charge, overrun, row.id, call.id)
        if ends_call:
            self._ended.add(call.id)
        if ends_call and row.number == 1:  # a first one with another number takes the long way
            writes.ended.append((*request, *settled))
            return
        writes.settled.append(settled)
        if request is None:
            writes.kept.append((ended_at + end.pause + BETWEEN_ATTEMPTS, call.id))
        elif ends_call:
            writes.closed.append((*request, ended_at, call.id))

    def _close(self, entry: Close) -> None:
        request_id, at, end, request = entry
        call = self._calls.get(request_id)
        if call is not None and request_id not in self._ended:
            row = call.row
            self._ended.add(request_id)
            self.writes.closed.append((*end, at, request_id))
            ended = tuple({**CALL_ENDED, "slots": call.holds_slot}.values())
            self._sums[day_of(row.at), _payer(row), "", ""].append(ended)
        elif request is not None and request_id not in self._known:
            self._known.add(request_id)
            self.writes.refused.append((*request, at, False))
            self.writes.closed.append((*end, at, request_id))
            self._sums[day_of(request.at), _payer(request), "", ""].append(CALL_REFUSED)

    def _add(self, line: Line, amounts: list[Row]) -> None:
        """Add up what belongs to one line of the roll-up, and book it on the key's account."""
        day, (project, key_id, alias, prompt, key_name), provider, model = line
        *sums, reserved, slots = map(sum, zip(*amounts, strict=True))
        names = day, project, key_id, alias, provider, model, prompt or "", key_name
        self.writes.rollups.append((*names, *sums))
        if sums[_ATTEMPTS] or slots:  # what was refused outright has taken nothing
            account = self.writes.accounts[key_id] = self._accounts[key_id]
            account.settle(reserved, sums[_CHARGE], day)
            account.release_calls(slots)


_ATTEMPTS, _CHARGE = map(rows.ROLLUP_SUMS.index, ("attempts", "cost_nano"))


def _unknown(end: Settlement) -> Settlement:
    """In place of a settlement with a negative number. No sum ever falls: those are refused here
    too, whoever let them by (K13)."""
    return end._replace(
        usage_invalid=True,
        input_tokens=None,
        output_tokens=None,
        cache_read_tokens=None,
        cache_write_tokens=None,
        reasoning_tokens=None,
        cost_nano=None,
    )


def _real_tokens(given: int | None, made: int | None, cost: int | None) -> int | None:
    """All tokens of an attempt; ``None`` where they are not known, so that the reservation
    stays. What cost nothing and reported nothing did no work."""
    if given is None and made is None:
        return 0 if cost == 0 else None
    if given is None or made is None:
        return None
    return given + made
