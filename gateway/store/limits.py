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
from itertools import chain
from math import ceil
from typing import Any, NamedTuple

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.settings.money import dollars
from gateway.settings.snapshot import Limits
from gateway.store.base import Rates, RateState
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
    """Requests and tokens of the last minute, and their sums. ``slots`` has a line for each
    second that counts: which, requests, tokens."""

    __slots__ = ("requests", "slots", "tokens")

    def __init__(self, packed: bytes = b"") -> None:
        lines = struct.iter_unpack("<3q", packed)
        self.slots: dict[int, list[int]] = {line[0]: list(line) for line in lines}
        self.requests = sum(requests for _, requests, _ in self.slots.values())
        self.tokens = sum(tokens for _, _, tokens in self.slots.values())

    def pack(self) -> bytes:
        """The bytes that the constructor takes."""
        numbers = chain.from_iterable(self.slots.values())
        return struct.pack(f"<{3 * len(self.slots)}q", *numbers)

    def advance(self, now: float) -> None:
        """Forget slots that are past; date those back that a clock put into the future."""
        second, oldest, slots = int(now), now - WINDOW - 1, self.slots
        if not slots or oldest < min(slots) <= max(slots) <= second:
            return
        for there in [there for there in slots if not oldest < there <= second]:
            _, requests, tokens = slots.pop(there)
            self.requests -= requests
            self.tokens -= tokens
            if there > second:
                self.add(second, requests, tokens)

    def add(self, second: int, requests: int, tokens: int) -> None:
        """Count ``requests`` and ``tokens`` in one slot."""
        slot = self.slots.get(second)
        if slot is None:
            slot = self.slots[second] = [second, 0, 0]
        slot[1] += requests
        slot[2] += tokens
        self.requests += requests
        self.tokens += tokens

    def correct(self, second: int, tokens: int) -> None:
        """Count ``tokens`` more in a slot as long as it is there; negative ones take back what
        was counted there, never more."""
        slot = self.slots.get(second)
        if slot is not None:
            if tokens + slot[2] < 0:
                tokens = -slot[2]
            slot[2] += tokens
            self.tokens += tokens

    def wait(self, column: int, excess: int, now: float) -> float:
        """Seconds until ``excess`` requests (column 1) or tokens (2) have left the window."""
        for slot in sorted(self.slots.values()):
            excess -= slot[column]
            if excess <= 0:
                return slot[0] + WINDOW + 1 - now
        return 0.0

    def empty_in(self, now: float) -> float:
        """Seconds until all that is counted has left the window, after :meth:`advance`."""
        if not self.slots:
            return 0.0
        return max(self.slots) + WINDOW + 1 - now


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
    second: int | None = None
    """The one that the account was last looked at in."""

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
        self.second = int(now)
        day = day_of(now)
        if day > self.day:
            if month_of(day) != month_of(self.day):
                self.month_nano = 0
            self.day, self.day_nano = day, 0
        self.window.advance(now)

    def take(self, limits: Limits, tokens: int, nano: int, new_call: bool, now: float) -> Rates:
        """Reserve all that an attempt may need, or nothing; a ``new_call`` also counts as one.

        :raises Fault: ``budget_exceeded`` or ``rate_limited``, naming the limit.
        """
        second = int(now)
        if second != self.second:  # nothing ages within a second
            self.advance(now)
        if not self._surely_fits(limits, tokens, nano):
            refusal = self._over_budget(limits, nano, now) or self._over_rate(
                limits, tokens, new_call, now
            )
            if refusal is not None:
                raise refusal.fault()
        self.reserved_nano += nano
        self.in_flight += new_call
        if limits.rpm is None and limits.tpm is None:
            return {}
        self.window.add(second, new_call, tokens)
        return self._rates(limits, second + WINDOW + 1 - now)

    def _surely_fits(self, limits: Limits, tokens: int, nano: int) -> bool:
        """Whether a call is far from every limit. Each is asked for something, so that a limit of
        zero has no room; what is refused here is looked at closely."""
        window, wanted = self.window, self.reserved_nano + (nano or 1)
        return (
            (limits.rpm is None or window.requests < limits.rpm)
            and (limits.tpm is None or window.tokens + (tokens or 1) <= limits.tpm)
            and (limits.concurrent is None or self.in_flight < limits.concurrent)
            and (limits.nano_per_day is None or self.day_nano + wanted <= limits.nano_per_day)
            and (limits.nano_per_month is None or self.month_nano + wanted <= limits.nano_per_month)
            and (limits.nano_total is None or self.total_nano + wanted <= limits.nano_total)
        )

    def settle(self, reserved: int, charge: int, day: int) -> None:
        """Give back what was reserved on a day, and book what it really cost."""
        self.reserved_nano = max(0, self.reserved_nano - reserved)
        self.total_nano += charge
        if day == self.day:
            self.day_nano += charge
            self.month_nano += charge
        elif month_of(day) == month_of(self.day):
            self.month_nano += charge

    def release_calls(self, number: int) -> None:
        """Calls have ended: their places among the concurrent ones are free."""
        self.in_flight = max(0, self.in_flight - number)

    def rates(self, limits: Limits, now: float) -> Rates:
        """The state of the limits that are set, after :meth:`advance`."""
        return self._rates(limits, self.window.empty_in(now))

    def _rates(self, limits: Limits, reset: float) -> Rates:
        states: dict[str, RateState] = {}
        rpm, tpm, window = limits.rpm, limits.tpm, self.window
        if rpm is not None:
            states["requests"] = RateState(rpm, max(0, rpm - window.requests), reset)
        if tpm is not None:
            states["tokens"] = RateState(tpm, max(0, tpm - window.tokens), reset)
        return states

    def _over_budget(self, limits: Limits, nano: int, now: float) -> Refusal | None:
        wanted = self.reserved_nano + nano
        for name, limit, spent in (
            ("usd_total", limits.nano_total, self.total_nano),
            ("usd_per_month", limits.nano_per_month, self.month_nano),
            ("usd_per_day", limits.nano_per_day, self.day_nano),
        ):
            if limit is not None and (limit == 0 or spent + wanted > limit):
                return self._no_money(name, limit, spent, nano, now)
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

    def _over_rate(self, limits: Limits, tokens: int, new_call: bool, now: float) -> Refusal | None:
        """The refusal that lasts longest; ``None`` where everything fits."""
        window = self.window
        most = limits.concurrent if new_call else None
        found = []
        if most is not None and self.in_flight >= most:
            message = f"This key may have {most} calls under way at once, and has."
            found.append(
                Refusal("rate_limited", "concurrent", message, FREE_SOON if most else None)
            )
        for name, limit, used, wanted in (
            ("rpm", limits.rpm, window.requests, 1 if new_call else 0),
            ("tpm", limits.tpm, window.tokens, tokens),
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
_RATES = {"rpm": ("requests", 1), "tpm": ("tokens", 2)}
"""In words, and which column of a window's slots."""


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
