"""What happens after a try failed: again, the next target, or stop. All retrying is here.

The decision reads the fault's row in :data:`adapters.canonical.faults.KINDS` and the alias's
caps; it has one deadline and one cap over all targets (promise 14). Must not know sockets,
dialects or how a repair is asked for; it sleeps for nobody: the delay is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS
from gateway.routing.plan import Candidate
from gateway.settings.snapshot import Alias

Action = Literal["again", "next", "stop", "repair", "more_room"]

BACKOFF_BASE = 0.25
"""Seconds: the upper end of the first back-off; it doubles with each try on a target."""

BACKOFF_CAP = 8.0
"""Seconds: no back-off of ours is longer. A provider's ``Retry-After`` may be."""

LONGEST_HINT = 86_400.0
"""Seconds: a ``Retry-After`` shown to a caller is at most a day (case R09: absurd numbers)."""


class Decision(NamedTuple):
    """``delay``: seconds to wait first. ``why`` is one phrase for the logs and the ledger."""

    action: Action
    delay: float = 0.0
    why: str = ""


class Attempts:
    """The tries of one call over the targets of its plan.

    ``begin`` counts a try, ``after`` decides on its failure and moves on; ``candidate`` is the
    target whose turn it is. ``chain`` holds the faults so far, the first cause first.
    """

    made = 0
    _at = 0
    _tries = 0
    _narrow = 0
    """The widest window that was too small so far."""
    _refused: Mapping[str, str] = NO_EXTRAS
    """Which deployment was the first to refuse with a kind that the request may explain."""

    def __init__(
        self,
        alias: Alias,
        targets: Sequence[Candidate],
        started_at: float,
        random: Callable[[], float],
    ) -> None:
        self._alias = alias
        self._targets = targets
        self.candidate = targets[0]
        self._random = random
        self.deadline_at = started_at + alias.deadline
        self.chain: list[Fault] = []

    def begin(self) -> int:
        """Count a try on the candidate (a repair is one too); its number, from 1."""
        self.made += 1
        self._tries += 1
        return self.made

    def room(self, now: float) -> bool:
        """Whether the caps leave room for one more try: asked before a repair, too."""
        return self.made < self._alias.max_attempts and now < self.deadline_at

    def skip(self, now: float) -> Decision:
        """The candidate's breaker said ``open`` at the last moment: go on without counting."""
        return self._next(now, lambda _: True, "breaker open")

    def after(self, fault: Fault, now: float, *, committed: bool) -> Decision:
        """What follows the failure of the current try."""
        self.chain.append(fault)
        if committed:
            return Decision("stop", why="the answer was already under way")
        if not self.room(now):
            spent = self.made >= self._alias.max_attempts
            return Decision("stop", why="max_attempts reached" if spent else "deadline reached")
        if fault.row.again in ("yes", "after") and self._tries <= self._alias.retries:
            delay = self._delay(fault)
            if delay is not None and now + delay < self.deadline_at:
                return Decision("again", delay, fault.kind)
        return self._leave(fault, now)

    def _delay(self, fault: Fault) -> float | None:
        """Full jitter, on top of the provider's own hint where there is one; ``None`` if the
        hint is longer than the alias waits."""
        ceiling = min(BACKOFF_CAP, BACKOFF_BASE * 2.0 ** min(self._tries - 1, 16))
        hint = _hint(fault)
        if hint is None:
            return self._random() * ceiling
        if hint > self._alias.retry_after_cap:
            return None
        return hint + self._random() * BACKOFF_BASE

    def _leave(self, fault: Fault, now: float) -> Decision:
        """Another target, where the kind's row (or the alias, where the row asks it) says so."""
        rule = fault.row.next
        if rule == "yes":
            return self._next(now, lambda _: True, fault.kind)
        if rule == "wider":
            window = self.candidate.target.deployment.facts.window
            self._narrow = max(self._narrow, window or 0)
            return self._next(now, self._wider, "context_overflow: a wider window")
        if rule == "alias" and fault.kind in self._alias.next_on:
            self._refused = {fault.kind: self.candidate.name, **self._refused}
            if self._refused[fault.kind] != self.candidate.name:
                return Decision("stop", why=f"{fault.kind} on two deployments: it is the request")
            return self._next(now, lambda _: True, f"{fault.kind}: next_on")
        return Decision("stop", why=f"{fault.kind} is not retried")

    def _wider(self, candidate: Candidate) -> bool:
        window = candidate.target.deployment.facts.window
        return window is not None and window > self._narrow

    def _next(self, now: float, wanted: Callable[[Candidate], bool], why: str) -> Decision:
        if not self.room(now):
            return Decision("stop", why="no attempt or no time left")
        for at in range(self._at + 1, len(self._targets)):
            if wanted(self._targets[at]):
                self._at = at
                self.candidate = self._targets[at]
                self._tries = 0
                return Decision("next", why=why)
        return Decision("stop", why="no further target")


def _hint(fault: Fault) -> float | None:
    """A ``retry_after`` that means something: negative ones and NaN do not (case R09)."""
    hint = fault.retry_after
    return None if hint is None or not hint >= 0 else hint


def failure(chain: Sequence[Fault]) -> Fault:
    """The fault that the caller sees: the first cause, with the whole chain in ``attempts``.

    ``retry_after`` is the smallest that a deployment asked for last: then one is free again.

    :raises ValueError: for an empty chain.
    """
    if not chain:
        raise ValueError("a failure has a cause")
    first = chain[0]
    latest = {fault.deployment: _hint(fault) for fault in chain}
    hints = [min(hint, LONGEST_HINT) for hint in latest.values() if hint is not None]
    shown = Fault(
        first.kind,
        first.message,
        code=first.code,
        detail=first.detail,
        param=first.param,
        deployment=first.deployment,
        upstream_status=first.upstream_status,
        upstream_code=first.upstream_code,
        upstream_request_id=first.upstream_request_id,
        retry_after=min(hints, default=None),
        phase=first.phase,
        billed=first.billed,
        data=first.data,
    )
    shown.attempts = tuple(chain)
    return shown
