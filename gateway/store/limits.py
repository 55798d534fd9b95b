"""What a key has used and may still use: the arithmetic behind promise 9, without any SQL.

An :class:`Account` is one key's row in memory. Both stores load it under a lock, let it decide,
and write it back in the same transaction, so that "check" and "take" are one step (fault kind
K15). Money is integer nano-dollars, times are Unix seconds.

Rates are counted in slots of one second, and a slot counts until its last moment is 60 s old:
in no window of 60 s is more than the limit let through, at the price that a place may come
free up to one second late. A wall clock that jumps forward ages the slots by as much.

A clock that goes back gives nothing away: slots "in the future" are taken as of now, and a
budget's day and month never go back.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import ceil
from typing import Any, NamedTuple

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.settings.money import dollars
from gateway.settings.snapshot import Limits
from gateway.store.base import Hold, RateState
from gateway.store.periods import DAY, day_of, month_end, month_of

WINDOW = 60
"""Seconds over which ``rpm`` and ``tpm`` are counted."""

FREE_SOON = 1.0
"""Seconds to wait for what others hold now and will give back: nobody knows when."""


class Refusal(NamedTuple):
    """Why a reservation is refused. ``wait`` is ``None`` where waiting does not help."""

    kind: str
    limit: str
    message: str
    wait: float | None

    def fault(self) -> Fault:
        """As the fault that the caller sees."""
        return Fault(self.kind, self.message, retry_after=self.wait, data={"limit": self.limit})


class Window:
    """Requests and tokens of the last minute, by second, and their sums. ``slots`` has three
    numbers for each second: which, requests, tokens."""

    __slots__ = ("_latest", "slots", "sums")

    def __init__(self, packed: bytes = b"") -> None:
        self.slots: list[int] = list(struct.unpack(f"<{len(packed) // 8}q", packed))
        self.sums = [sum(self.slots[1::3]), sum(self.slots[2::3])]
        self._latest: int | None = None

    def pack(self) -> bytes:
        """The bytes that the constructor takes."""
        return struct.pack(f"<{len(self.slots)}q", *self.slots)

    def advance(self, now: float) -> None:
        """Forget slots that are past; date those back that a clock put into the future."""
        second = int(now)
        if second == self._latest:
            return  # nothing ages within a second
        self._latest = second
        oldest, seconds = now - WINDOW - 1, self.slots[::3]
        if not seconds or oldest < min(seconds) <= max(seconds) <= second:
            return
        for place in reversed(range(0, len(self.slots), 3)):
            there, requests, tokens = self.slots[place : place + 3]
            if oldest < there <= second:
                continue
            del self.slots[place : place + 3]
            self.sums[0] -= requests
            self.sums[1] -= tokens
            if there > second:
                self.add(second, requests, tokens)

    def add(self, second: int, requests: int, tokens: int) -> None:
        """Count ``requests`` and ``tokens`` in one slot; negative tokens take back what was
        counted there, never more."""
        place = self._place(second)
        if place is None:
            place = len(self.slots)
            self.slots += (second, 0, 0)
        self._count(place, requests, tokens)

    def correct(self, second: int, tokens: int) -> None:
        """Count ``tokens`` more, or less, in a slot as long as it is there."""
        place = self._place(second)
        if place is not None:
            self._count(place, 0, tokens)

    def _count(self, place: int, requests: int, tokens: int) -> None:
        tokens = max(tokens, -self.slots[place + 2])
        self.slots[place + 1] += requests
        self.slots[place + 2] += tokens
        self.sums[0] += requests
        self.sums[1] += tokens

    def _place(self, second: int) -> int | None:
        """Where the slot of ``second`` begins: mostly it is the last one."""
        if self.slots and self.slots[-3] == second:
            return len(self.slots) - 3
        seconds = self.slots[::3]
        return seconds.index(second) * 3 if second in seconds else None

    def wait(self, column: int, excess: int, now: float) -> float:
        """Seconds until ``excess`` requests (column 0) or tokens (1) have left the window."""
        for second, used in sorted(zip(self.slots[::3], self.slots[column + 1 :: 3], strict=True)):
            excess -= used
            if excess <= 0:
                return second + WINDOW + 1 - now
        return 0.0

    def empty_in(self, now: float) -> float:
        """Seconds until all that is counted has left the window, after :meth:`advance`."""
        if not self.slots:
            return 0.0
        latest = self.slots[-3]
        if latest != int(now):  # else it is: nothing is later than now
            latest = max(self.slots[::3])
        return latest + WINDOW + 1 - now


@record(slots=True)
class Account:
    """One key's use: money spent by day, month and for ever; what is reserved and under way.

    ``day_nano`` belongs to ``day``, ``month_nano`` to the month of ``day``.
    """

    key_id: str
    day: int = 0
    day_nano: int = 0
    month_nano: int = 0
    total_nano: int = 0
    reserved_nano: int = 0
    in_flight: int = 0
    window: Window = field(default_factory=Window)

    @classmethod
    def loaded(cls, values: Sequence[Any]) -> Account:
        """From columns in the order of the fields, the window packed."""
        key_id, day, day_nano, month_nano, total, reserved, in_flight, window = values
        return cls(key_id, day, day_nano, month_nano, total, reserved, in_flight, Window(window))

    def values(self) -> tuple[Any, ...]:
        """What :meth:`loaded` takes."""
        return (
            self.key_id,
            self.day,
            self.day_nano,
            self.month_nano,
            self.total_nano,
            self.reserved_nano,
            self.in_flight,
            self.window.pack(),
        )

    def advance(self, now: float) -> None:
        """Start the day, month and minute that ``now`` lies in, where they are new."""
        day = day_of(now)
        if day > self.day:
            if month_of(day) != month_of(self.day):
                self.month_nano = 0
            self.day, self.day_nano = day, 0
        self.window.advance(now)

    def take(self, hold: Hold, now: float) -> Mapping[str, RateState]:
        """Reserve all of ``hold``, or nothing.

        :raises Fault: ``budget_exceeded`` or ``rate_limited``, naming the limit.
        """
        self.advance(now)
        refusal = self._over_budget(hold, now) or self._over_rate(hold, now)
        if refusal is not None:
            raise refusal.fault()
        self.reserved_nano += hold.nano
        if hold.new_call:
            self.in_flight += 1
        if hold.limits.rpm is not None or hold.limits.tpm is not None:
            self.window.add(int(now), 1 if hold.new_call else 0, hold.tokens)
        return self.rates(hold.limits, now)

    def settle(self, reserved: int, charge: int, day: int) -> None:
        """Give back a reservation and book its real cost on the day that it was taken."""
        self.reserved_nano = max(0, self.reserved_nano - reserved)
        self.total_nano += charge
        if day == self.day:
            self.day_nano += charge
            self.month_nano += charge
        elif month_of(day) == month_of(self.day):
            self.month_nano += charge

    def retoken(self, at: float, reserved: int, real: int) -> None:
        """Correct the tokens reserved at ``at``, as long as that second still counts."""
        self.window.correct(int(at), real - reserved)

    def release_call(self) -> None:
        """A call has ended: its place among the concurrent ones is free."""
        self.in_flight = max(0, self.in_flight - 1)

    def rates(self, limits: Limits, now: float) -> Mapping[str, RateState]:
        """The state of the limits that are set: ``requests`` and ``tokens``."""
        states: dict[str, RateState] = {}
        if limits.rpm is None and limits.tpm is None:
            return states
        reset, (requests, tokens) = self.window.empty_in(now), self.window.sums
        if limits.rpm is not None:
            states["requests"] = RateState(limits.rpm, max(0, limits.rpm - requests), reset)
        if limits.tpm is not None:
            states["tokens"] = RateState(limits.tpm, max(0, limits.tpm - tokens), reset)
        return states

    def _over_budget(self, hold: Hold, now: float) -> Refusal | None:
        limits, wanted = hold.limits, self.reserved_nano + hold.nano
        for name, limit, spent in (
            ("usd_total", limits.nano_total, self.total_nano),
            ("usd_per_month", limits.nano_per_month, self.month_nano),
            ("usd_per_day", limits.nano_per_day, self.day_nano),
        ):
            if limit is not None and (limit == 0 or spent + wanted > limit):
                return self._no_money(name, limit, spent, hold.nano, now)
        return None

    def _no_money(self, name: str, limit: int, spent: int, nano: int, now: float) -> Refusal:
        word, ends = _BUDGETS[name]
        if limit == 0 or nano > limit:
            renewed = None  # a new day does not make the budget larger
        elif spent + nano <= limit:
            renewed = FREE_SOON
        else:
            renewed = ends(self.day) * DAY - now if ends else None
        left = limit - spent - self.reserved_nano
        return Refusal("budget_exceeded", name, _too_dear(nano, left, word, limit), renewed)

    def _over_rate(self, hold: Hold, now: float) -> Refusal | None:
        """The refusal that lasts longest; ``None`` where everything fits."""
        limits, (requests, tokens) = hold.limits, self.window.sums
        most = limits.concurrent if hold.new_call else None
        found = []
        if most is not None and self.in_flight >= most:
            message = f"This key may have {most} calls under way at once, and has."
            found.append(
                Refusal("rate_limited", "concurrent", message, FREE_SOON if most else None)
            )
        for name, limit, used, wanted in (
            ("rpm", limits.rpm, requests, 1 if hold.new_call else 0),
            ("tpm", limits.tpm, tokens, hold.tokens),
        ):
            if limit is None or (limit > 0 and (wanted == 0 or used + wanted <= limit)):
                continue
            found.append(self._no_room(name, limit, used, wanted, now))
        return max(found, key=_lasting) if found else None

    def _no_room(self, name: str, limit: int, used: int, wanted: int, now: float) -> Refusal:
        word, column = _RATES[name]
        message = f"This key's limit is {limit} {word} a minute"
        if limit == 0 or wanted > limit:
            message += f"; this call counts as {wanted}, so waiting does not help."
            return Refusal("rate_limited", name, message, None)
        wait = self.window.wait(column, used + wanted - limit, now)
        message += f". There is room in {ceil(wait)} s."
        return Refusal("rate_limited", name, message, wait)


_BUDGETS: Mapping[str, tuple[str, Callable[[int], int] | None]] = {
    "usd_total": ("whole", None),
    "usd_per_month": ("monthly", month_end),
    "usd_per_day": ("daily", lambda day: day + 1),
}
"""In words, and with what day a budget is renewed."""
_RATES = {"rpm": ("requests", 0), "tpm": ("tokens", 1)}
"""In words, and which of a window's sums."""


def _too_dear(nano: int, left: int, which: str, limit: int) -> str:
    """What a call may cost, what there is for it, and what would help."""
    message = (
        f"This call may cost up to ${dollars(nano)}, and ${dollars(max(0, left))} is left of this "
        f"key's {which} budget of ${dollars(limit)}."
    )
    advice = " A call with a lower limit of output tokens may cost less."
    return message + advice if 0 < left < nano else message


def _lasting(refusal: Refusal) -> float:
    return float("inf") if refusal.wait is None else refusal.wait
