"""One circuit breaker per deployment: whom to leave alone, and when to ask again.

``closed`` --(rate or streak of failures)--> ``open`` --(cooldown over)--> ``half_open``: exactly
one call is let through as a probe; its success closes, its failure opens for twice as long.

Everything that affects the state lives in this file. What counts as a failure is
:attr:`adapters.canonical.faults.Fault.trips` and nothing else, so a fault of a request can never
take a deployment away from other callers (fault kind K11). Must not know aliases or
strategies; the policy comes with each report because aliases may share a deployment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from random import random as system_random
from typing import Any, Literal

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import BreakerPolicy

State = Literal["closed", "half_open", "open"]
Admission = Literal["closed", "probe", "open"]

PROBE_BOUND = 120.0
"""Seconds after which a probe that was never reported back is given up for lost."""

PROBE_WAIT = 1.0
"""What :meth:`Breakers.wait` says, in seconds, while a probe is under way."""

LONGEST_WINDOW = 600
"""Seconds of history kept; a policy with a longer window sees this much."""

JITTER = 0.1
"""A cooldown is lengthened by up to this share, so that replicas do not probe in step."""

NO_SECOND = [-1, 0, 0]
"""An entry of the history that is no second's."""


class _Breaker:
    """The state of one deployment. ``until`` is ``None`` exactly while it is closed."""

    __slots__ = (
        "cooldown",
        "last_fault",
        "latest",
        "probe_until",
        "seconds",
        "streak",
        "until",
        "window",
    )

    def __init__(self) -> None:
        self.seconds: deque[list[int]] = deque(maxlen=LONGEST_WINDOW)
        """``[second, calls, failures]``, one entry for each second with a call."""
        self.latest = NO_SECOND
        """The last of them."""
        self.streak = 0
        self.until: float | None = None
        self.cooldown = 0.0
        self.probe_until: float | None = None
        self.last_fault: str | None = None
        self.window = 0.0

    def count(self, now: float, failures: int) -> None:
        latest, second = self.latest, int(now)
        if latest[0] != second:
            latest = self.latest = [second, 0, 0]
            self.seconds.append(latest)
        latest[1] += 1
        if failures:
            latest[2] += failures

    def totals(self, now: float, window: float) -> tuple[int, int]:
        """Calls and failures of the last ``window`` seconds."""
        since = now - window
        calls = failures = 0
        for second, made, failed in reversed(self.seconds):
            if second < since:
                break
            calls += made
            failures += failed
        return calls, failures

    def probing(self, now: float) -> bool:
        return self.probe_until is not None and now < self.probe_until

    def open(self, now: float, cooldown: float, jitter: float) -> None:
        self.cooldown = cooldown
        self.until = now + cooldown * (1.0 + JITTER * jitter)
        self.probe_until = None

    def close(self) -> None:
        self.until = self.probe_until = None
        self.cooldown = 0.0
        self.streak = 0
        self.seconds.clear()
        self.latest = NO_SECOND


class Breakers:
    """The breakers of all deployments, by deployment name; owned by one event loop.

    Every method is synchronous, so taking the probe is atomic among the loop's tasks. The
    number of breakers is bounded by the configuration: call :meth:`retain` after a reload.
    """

    __slots__ = ("_breakers", "_random", "tripped")

    def __init__(self, random: Callable[[], float] = system_random) -> None:
        self._breakers: dict[str, _Breaker] = {}
        self.tripped: dict[str, _Breaker] = {}
        """Those that are not closed; none on most days, and every call may go where it likes."""
        self._random = random

    def admit(self, name: str, now: float, *, forced: bool = False) -> Admission:
        """May a call go to ``name`` now? Ask just before the call leaves, not earlier.

        ``probe`` was taken by asking: report the call with ``probe=True``. ``forced`` asks for
        the probe before its time (a plan with no other target left); still one at a time.
        """
        breaker = self.tripped.get(name)
        if breaker is None:
            return "closed"
        due = forced or (breaker.until is not None and now >= breaker.until)
        if not due or breaker.probing(now):
            return "open"
        breaker.probe_until = now + PROBE_BOUND
        return "probe"

    def record(
        self, name: str, policy: BreakerPolicy, now: float, *, fault: Fault | None, probe: bool
    ) -> None:
        """Report how a call ended: ``fault`` is ``None`` for a success.

        A probe may be reported as a success at its first content, which closes the breaker for
        everybody at once; its end is then reported as an ordinary call. What an ordinary call
        says while the breaker is open is old news and changes nothing.
        """
        breaker = self._breakers.get(name)
        if breaker is None:
            breaker = self._breakers[name] = _Breaker()
        if fault is None and breaker.until is None:
            breaker.window = policy.window
            breaker.streak = 0
            breaker.count(now, 0)
            return
        trips = "" if fault is None else fault.trips
        if breaker.until is not None:
            if probe:
                self._judge_probe(name, breaker, policy, now, trips)
            return
        if fault is None or trips == "no":
            return
        breaker.window = policy.window
        breaker.last_fault = fault.kind
        breaker.count(now, 1)
        breaker.streak += trips == "yes"
        calls, failures = breaker.totals(now, policy.window)
        if breaker.streak >= policy.streak or (
            calls >= policy.minimum and failures >= policy.rate * calls
        ):
            breaker.open(now, policy.cooldown, self._random())
            self.tripped[name] = breaker

    def _judge_probe(
        self, name: str, breaker: _Breaker, policy: BreakerPolicy, now: float, trips: str
    ) -> None:
        """A fault that says nothing about the provider (``no``) only gives the probe back."""
        breaker.probe_until = None
        if trips == "":
            breaker.close()
            del self.tripped[name]
        elif trips != "no" and breaker.until is not None and now >= breaker.until:
            # A forced probe that fails before the cooldown is over leaves the clock as it was.
            longer = min(breaker.cooldown * 2, policy.max_cooldown)
            breaker.open(now, longer, self._random())

    def state(self, name: str, now: float) -> State:
        """Look without taking anything: ``half_open`` means that a probe is due and free."""
        breaker = self.tripped.get(name)
        if breaker is None or breaker.until is None:
            return "closed"
        return "open" if now < breaker.until or breaker.probing(now) else "half_open"

    def states(self, now: float) -> dict[str, State]:
        """The states of all deployments that are not closed, for the metrics."""
        return {name: self.state(name, now) for name in self.tripped}

    def wait(self, name: str, now: float) -> float:
        """Seconds until ``name`` may be probed; 0 when it may be called now."""
        breaker = self.tripped.get(name)
        if breaker is None or breaker.until is None:
            return 0.0
        if now < breaker.until:
            return breaker.until - now
        return PROBE_WAIT if breaker.probing(now) else 0.0

    def probing(self, name: str, now: float) -> bool:
        """Whether a probe of ``name`` is under way."""
        breaker = self.tripped.get(name)
        return breaker is not None and breaker.probing(now)

    def retain(self, names: Collection[str]) -> None:
        """Forget every deployment that is not in ``names`` (the new configuration's)."""
        for name in [known for known in self._breakers if known not in names]:
            del self._breakers[name]
            self.tripped.pop(name, None)

    def snapshot(self, now: float) -> list[dict[str, Any]]:
        """A row for each deployment that has been called, for ``GET /admin/deployments``."""
        rows: list[dict[str, Any]] = []
        for name, breaker in sorted(self._breakers.items()):
            calls, failures = breaker.totals(now, breaker.window)
            rows.append(
                {
                    "deployment": name,
                    "state": self.state(name, now),
                    "calls": calls,
                    "failures": failures,
                    "streak": breaker.streak,
                    "last_fault": breaker.last_fault,
                    "cooldown_seconds": breaker.cooldown,
                    "probe_in_seconds": round(self.wait(name, now), 3),
                    "probing": breaker.probing(now),
                }
            )
        return rows
